"""How the job reaches Kafka: security settings by Secret, once per job instead of once per query."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from headrace.api.edits import SetValue
from headrace.api.forms import Form, as_text
from headrace.api.model import ApiModel, Broken, restart_field, rule, section
from headrace.api.names import DataKey, ObjectName
from headrace.api.references import CertificateAuthority

BOOTSTRAP = Form(
    expects="brokers as host:port, separated by commas",
    pattern=r"^[A-Za-z0-9.-]+:[0-9]{1,5}(,[A-Za-z0-9.-]+:[0-9]{1,5})*$",
    example="kafka:9092",
    max_length=2048,
    suggest=lambda value: ",".join(
        broker if ":" in broker else f"{broker}:9092"
        for broker in re.split(r"[,;\s]+", re.sub(r"[A-Za-z_]+://", "", as_text(value) or "").strip())
        if broker
    ),
)


class Sasl(ApiModel):
    """A user name and password in a Secret."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = restart_field(
        "How the password is shown to the broker.", default="SCRAM-SHA-512"
    )
    secret: ObjectName = restart_field("Name of the Secret, in the namespace of the job.")
    username: DataKey = restart_field("Key of the user name in it.", default="username")
    password: DataKey = restart_field("Key of the password in it.", default="password")


class ClientCertificate(ApiModel):
    """A client certificate in a Secret, for brokers that ask for one (mTLS)."""

    secret: ObjectName = restart_field("Name of the Secret; `kubernetes.io/tls` has the right keys.")
    certificate: DataKey = restart_field("Key of the certificate (PEM) in it.", default="tls.crt")
    private_key: DataKey = restart_field("Key of the private key (PEM) in it.", default="tls.key")


class Tls(ApiModel):
    """Whom to trust, and who we are."""

    ca: CertificateAuthority | None = section(
        "A private authority that signed the brokers' certificates.", default=None
    )
    client: ClientCertificate | None = section("Our own certificate (mTLS).", default=None)


class Kafka(ApiModel):
    """Settings that the job's Kafka sources and sinks get unless the code sets them itself."""

    bootstrap_servers: Annotated[str, BOOTSTRAP] | None = restart_field(
        "The brokers, if the code does not name them. Where it names others, nothing here applies.",
        default=None,
    )
    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = restart_field(
        "Kafka's `security.protocol`.", default="PLAINTEXT"
    )
    sasl: Sasl | None = section("User name and password; needs a SASL protocol.", default=None)
    tls: Tls | None = section("Certificates; needs an SSL protocol.", default=None)

    @rule(
        cel="self.protocol.startsWith('SASL_') == has(self.sasl)",
        message="sasl and a SASL_ protocol belong together",
    )
    def sasl_and_protocol_agree(self) -> Broken | None:
        spoken = self.protocol.startswith("SASL_")
        if spoken and self.sasl is None:
            return Broken(
                message=f"protocol {self.protocol} needs a user name and password",
                at=("protocol",),
                fix="name the Secret in sasl.secret",
                edits=(SetValue(("sasl",), {"secret": "kafka-user"}),),
            )
        if self.sasl is not None and not spoken:
            protocol = "SASL_SSL" if self.protocol == "SSL" or self.tls else "SASL_PLAINTEXT"
            return Broken(
                message=f"sasl has no meaning with protocol {self.protocol}",
                at=("protocol",),
                fix=f"set protocol: {protocol}",
                edits=(SetValue(("protocol",), protocol),),
            )
        return None

    @rule(
        cel="!has(self.tls) || self.protocol.endsWith('SSL')",
        message="tls needs protocol SSL or SASL_SSL",
    )
    def tls_needs_ssl(self) -> Broken | None:
        if self.tls is None or self.protocol.endswith("SSL"):
            return None
        protocol = "SASL_SSL" if self.sasl else "SSL"
        return Broken(
            message=f"tls has no meaning with protocol {self.protocol}",
            at=("protocol",),
            fix=f"set protocol: {protocol}",
            edits=(SetValue(("protocol",), protocol),),
        )
