package software.amazon.awssdk.auth.credentials;

/** The shape of the AWS SDK's type, to compile against; never part of the jar. */
public final class AwsBasicCredentials implements AwsCredentials {
    private AwsBasicCredentials() {}

    public static AwsBasicCredentials create(String accessKeyId, String secretAccessKey) {
        throw new UnsupportedOperationException();
    }
}
