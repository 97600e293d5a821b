package software.amazon.awssdk.auth.credentials;

/** The shape of the AWS SDK's type, to compile against; never part of the jar. */
public interface AwsCredentialsProvider {
    AwsCredentials resolveCredentials();
}
