"""An image without an S3 connector gets the one that fits its Hadoop; one that has its own keeps it."""

from pathlib import Path

import pytest

from headrace_jobs.harness.connectors import NoConnector, s3_jars


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    for hadoop in ("3.4.2", "3.5.0"):
        directory = tmp_path / "connectors" / f"s3a-hadoop-{hadoop}"
        directory.mkdir(parents=True)
        (directory / f"hadoop-aws-{hadoop}.jar").touch()
    return tmp_path / "connectors"


def spark_with(tmp_path: Path, *jars: str) -> Path:
    directory = tmp_path / "spark"
    directory.mkdir()
    for jar in jars:
        (directory / jar).touch()
    return directory


def test_a_plain_spark_gets_the_jars_of_its_own_hadoop(tmp_path: Path, carried: Path):
    spark = spark_with(tmp_path, "hadoop-client-api-3.4.2.jar", "spark-sql_2.13-4.1.4.jar")
    assert [jar.name for jar in s3_jars("s3://streams/a", spark, carried)] == ["hadoop-aws-3.4.2.jar"]


def test_what_the_image_brings_is_not_replaced(tmp_path: Path, carried: Path):
    spark = spark_with(tmp_path, "hadoop-client-api-3.5.0.jar", "hadoop-aws-3.5.0.jar")
    assert s3_jars("s3://streams/a", spark, carried) == []


def test_a_directory_needs_no_connector(tmp_path: Path, carried: Path):
    spark = spark_with(tmp_path, "hadoop-client-api-3.5.0.jar")
    assert s3_jars("file:///streams/a", spark, carried) == []


def test_a_hadoop_that_nothing_is_carried_for_is_named_with_the_way_out(tmp_path: Path, carried: Path):
    spark = spark_with(tmp_path, "hadoop-client-api-3.6.0.jar")
    with pytest.raises(NoConnector, match=r"3\.4\.2, 3\.5\.0.*Hadoop 3\.6\.0.*Add hadoop-aws 3\.6\.0"):
        s3_jars("s3://streams/a", spark, carried)


def test_where_nothing_is_carried_the_images_own_jars_are_all_there_is(tmp_path: Path):
    spark = spark_with(tmp_path, "hadoop-client-api-3.5.0.jar")
    assert s3_jars("s3://streams/a", spark, tmp_path / "nothing") == []
