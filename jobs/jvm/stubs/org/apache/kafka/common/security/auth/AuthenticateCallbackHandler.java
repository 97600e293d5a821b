package org.apache.kafka.common.security.auth;

import java.util.List;
import java.util.Map;
import javax.security.auth.callback.CallbackHandler;

/** The shape of Kafka's type, to compile against; never part of the jar. */
public interface AuthenticateCallbackHandler extends CallbackHandler {
    void configure(Map configs, String saslMechanism, List jaasConfigEntries);

    void close();
}
