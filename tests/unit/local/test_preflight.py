from importlib import metadata

from headrace.api import StreamJobSpec
from headrace.local.preflight import missing


def found(application=None, *, driver=None, base, environ=None):
    spec = StreamJobSpec.parse(
        {"application": {"file": "job.py", **(application or {})}, "driver": driver or {}}
    )
    return list(missing(spec, base=base, environ=environ or {}))


def test_nothing_is_missing_from_a_plain_job(tmp_path):
    assert found(base=tmp_path) == []


def test_requirements_are_looked_up_in_the_environment(tmp_path):
    here = metadata.version("pyyaml")
    assert found({"requirements": [f"pyyaml=={here}"]}, base=tmp_path) == []
    (wrong,) = found({"requirements": ["pyyaml==0.1"]}, base=tmp_path)
    assert f"{here} is installed, and pyyaml==0.1 is asked for" in wrong
    (absent,) = found({"requirements": ["no-such-package-anywhere==1.0"]}, base=tmp_path)
    assert "pip install 'no-such-package-anywhere==1.0'" in absent


def test_jars_must_be_here(tmp_path):
    (tmp_path / "here.jar").write_bytes(b"")
    assert found({"jars": ["here.jar"]}, base=tmp_path) == []
    (gone,) = found({"jars": ["gone.jar"]}, base=tmp_path)
    assert "there is no gone.jar" in gone
    (remote,) = found({"jars": ["s3://bucket/far.jar"]}, base=tmp_path)
    assert "not on this machine" in remote


def test_secrets_of_the_cluster_come_from_the_environment(tmp_path):
    driver = {"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
    (told,) = found(driver=driver, base=tmp_path)
    assert "export TOKEN=" in told
    assert found(driver=driver, base=tmp_path, environ={"TOKEN": "x"}) == []


def test_secrets_of_kafka_are_files_of_this_machine(tmp_path):
    kafka = {
        "protocol": "SASL_SSL",
        "sasl": {"secret": "kafka-user"},
        "tls": {"ca": {"configMap": "private-ca"}},
    }
    spec = StreamJobSpec.parse({"application": {"file": "job.py"}, "kafka": kafka})
    environ = {"HEADRACE_SECRETS": str(tmp_path / "secrets")}
    told = list(missing(spec, base=tmp_path, environ=environ))
    assert [line.partition(":")[0] for line in told] == [
        "spec.kafka.sasl.username",
        "spec.kafka.sasl.password",
        "spec.kafka.tls.ca",
    ]
    paths = ("kafka-user/username", "kafka-user/password", "private-ca/ca.crt")
    for line, path in zip(told, paths, strict=True):
        file = tmp_path / "secrets" / path
        assert f"Put it into {file}" in line
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    assert list(missing(spec, base=tmp_path, environ=environ)) == []
