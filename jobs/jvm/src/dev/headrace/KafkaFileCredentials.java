package dev.headrace;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;

/**
 * User name and password for Kafka (PLAIN, SCRAM) from files, read for each connection: a rotated Secret needs
 * no restart, and no option of a query, hence no plan, page or log of Spark, ever holds the password.
 *
 * <p>Set by {@code sasl.client.callback.handler.class}; the files by two options of the login module in
 * {@code sasl.jaas.config}. Not by Kafka's own placeholders: it would put the text of the file between the
 * quotes of that setting, and a quote or backslash in a password would end or change it.
 *
 * <p>Loaded only where Kafka's client is, so the rest of this jar does not need it.
 */
public final class KafkaFileCredentials implements AuthenticateCallbackHandler {
    static final String USERNAME = "usernameFile";
    static final String PASSWORD = "passwordFile";

    private Path username;
    private Path password;

    @Override
    public void configure(Map configs, String saslMechanism, List jaasConfigEntries) {
        this.username = file(jaasConfigEntries, USERNAME);
        this.password = file(jaasConfigEntries, PASSWORD);
    }

    @Override
    public void handle(Callback[] callbacks) throws IOException, UnsupportedCallbackException {
        for (int i = 0; i < callbacks.length; i++) {
            Callback callback = callbacks[i];
            if (callback instanceof NameCallback) {
                ((NameCallback) callback).setName(read(username, "user name"));
            } else if (callback instanceof PasswordCallback) {
                ((PasswordCallback) callback).setPassword(read(password, "password").toCharArray());
            } else {
                // Extensions of SCRAM (delegation tokens): Kafka goes on without them.
                throw new UnsupportedCallbackException(callback);
            }
        }
    }

    @Override
    public void close() {}

    private static Path file(List entries, String option) {
        for (int i = 0; i < entries.size(); i++) {
            Object path = ((AppConfigurationEntry) entries.get(i)).getOptions().get(option);
            if (path != null) {
                return Paths.get((String) path, new String[0]);
            }
        }
        throw new IllegalArgumentException("sasl.jaas.config names no " + option);
    }

    private static String read(Path file, String what) throws IOException {
        String text;
        try {
            text = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new IOException("the " + what + " for Kafka cannot be read from " + file
                    + ": check the Secret of spec.kafka.sasl", e);
        }
        // Secrets made from a file often end with a line break; no broker means it.
        int end = text.length();
        while (end > 0 && (text.charAt(end - 1) == '\n' || text.charAt(end - 1) == '\r')) {
            end--;
        }
        return text.substring(0, end);
    }
}
