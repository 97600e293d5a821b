from tests.spark.harness.conftest import drive

__all__ = ["drive"]
