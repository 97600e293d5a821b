package software.amazon.awssdk.auth.credentials;

/** The shape of the AWS SDK's type, to compile against; never part of the jar. */
public final class AwsSessionCredentials implements AwsCredentials {
    private AwsSessionCredentials() {}

    public static AwsSessionCredentials create(String accessKeyId, String secretAccessKey, String sessionToken) {
        throw new UnsupportedOperationException();
    }
}
