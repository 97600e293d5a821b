"""References to Secrets and ConfigMaps in the job's namespace. Only pods of the job read them."""

from __future__ import annotations

from headrace.api.choices import exactly_one, exactly_one_cel
from headrace.api.model import ApiModel, Broken, plain_field, restart_field, rule
from headrace.api.names import DataKey, ObjectName


class NamedObject(ApiModel):
    """An object in the job's namespace, by name."""

    name: ObjectName = plain_field("Name of the object, in the namespace of the job.")


class CertificateAuthority(ApiModel):
    """Where the certificates of a private certificate authority are."""

    secret: ObjectName | None = restart_field("Name of the Secret that holds them.", default=None)
    config_map: ObjectName | None = restart_field("Name of the ConfigMap that holds them.", default=None)
    key: DataKey = restart_field("Key of the PEM bundle in it.", default="ca.crt")

    @rule(
        cel=exactly_one_cel("secret", "configMap"),
        message="exactly one of secret and configMap says where the certificates are",
    )
    def one_place(self) -> Broken | None:
        return exactly_one(
            self, "secret", "configMap", what="the certificates", example=("secret", "private-ca")
        )
