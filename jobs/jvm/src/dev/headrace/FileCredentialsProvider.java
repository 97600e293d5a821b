package dev.headrace;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;

/**
 * Keys for S3A from a directory with one file per key, as a Secret is mounted, or from a file in the AWS profile
 * format. Both are read again when they change: a rotated Secret needs no restart. The SDK's own providers read
 * their variables and files once.
 *
 * <p>Set by {@code fs.s3a.aws.credentials.provider}; the file by {@code headrace.s3.credentials.file}. Loaded
 * only where S3A is, so the rest of this jar does not need the SDK.
 */
public final class FileCredentialsProvider implements AwsCredentialsProvider {
    static final String FILE = "headrace.s3.credentials.file";
    private static final String ACCESS_KEY = "access_key_id";
    private static final String SECRET_KEY = "secret_access_key";
    private static final String TOKEN = "session_token";

    private final Path file;
    private AwsCredentials current;
    private String seen;

    public FileCredentialsProvider(Configuration conf) {
        String path = conf.get(FILE);
        if (path == null) {
            throw new IllegalArgumentException(FILE + " is not set: it names the place of the keys to S3");
        }
        this.file = Paths.get(path, new String[0]);
    }

    @Override
    public synchronized AwsCredentials resolveCredentials() {
        try {
            if (Files.isDirectory(file, new LinkOption[0])) {
                current = readDirectory();
                return current;
            }
            BasicFileAttributes found = Files.readAttributes(file, BasicFileAttributes.class, new LinkOption[0]);
            String version = found.lastModifiedTime() + "/" + found.size() + "/" + found.fileKey();
            if (!version.equals(seen)) {
                current = read();
                seen = version;
            }
        } catch (NoSuchFileException away) {
            // Kubernetes swaps a Secret link by link: what we have is good until the new one is there.
            if (current == null) {
                throw new IllegalStateException(
                        "the credentials file " + away.getFile() + " is missing: check the job's Secret");
            }
        } catch (IOException e) {
            throw new IllegalStateException("the credentials file " + file + " cannot be read", e);
        }
        return current;
    }

    private AwsCredentials readDirectory() throws IOException {
        // All files of a mounted Secret are swapped at once, by one link: behind it, keys of two versions never meet.
        Path version = file.resolve(ACCESS_KEY).toRealPath(new LinkOption[0]).getParent();
        Path token = version.resolve(TOKEN);
        return credentials(
                readKey(version.resolve(ACCESS_KEY)),
                readKey(version.resolve(SECRET_KEY)),
                Files.exists(token, new LinkOption[0]) ? readKey(token) : null);
    }

    private static String readKey(Path path) throws IOException {
        // Secrets made from a file often end with a line break; no key does.
        String text = new String(Files.readAllBytes(path), StandardCharsets.UTF_8).trim();
        if (text.isEmpty()) {
            throw new IllegalStateException("the credentials file " + path + " is empty: check the job's Secret");
        }
        return text;
    }

    private AwsCredentials read() throws IOException {
        Map values = readDefaultProfile();
        String access = (String) values.get("aws_" + ACCESS_KEY);
        String secret = (String) values.get("aws_" + SECRET_KEY);
        String token = (String) values.get("aws_" + TOKEN);
        if (access == null || secret == null) {
            throw new IllegalStateException("the credentials file " + file + " has no aws_access_key_id and"
                    + " aws_secret_access_key in its [default] profile");
        }
        return credentials(access, secret, token);
    }

    private static AwsCredentials credentials(String access, String secret, String token) {
        return token == null
                ? (AwsCredentials) AwsBasicCredentials.create(access, secret)
                : (AwsCredentials) AwsSessionCredentials.create(access, secret, token);
    }

    private Map readDefaultProfile() throws IOException {
        Map values = new HashMap();
        boolean inDefault = false;
        BufferedReader reader = Files.newBufferedReader(file, StandardCharsets.UTF_8);
        try {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                String text = line.trim();
                int equals = text.indexOf('=');
                if (text.startsWith("[")) {
                    inDefault = text.equals("[default]");
                } else if (inDefault && equals > 0 && !text.startsWith("#")) {
                    values.put(text.substring(0, equals).trim(), text.substring(equals + 1).trim());
                }
            }
        } finally {
            reader.close();
        }
        return values;
    }
}
