"""The operator never touches S3: its process starts where nothing that could is installed."""

import subprocess
import sys

# Whatever reads a store or runs a job. The import contract in pyproject.toml says the same of imports that
# are made later, inside of functions.
WITHOUT = ("boto3", "botocore", "pyspark", "headrace_jobs")

SCRIPT = f"""
import importlib, pkgutil, sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {WITHOUT!r}:
            raise ModuleNotFoundError("not installed: " + name)

sys.meta_path.insert(0, NotInstalled())
count = 0
for package in ("headrace.runtime", "headrace.kube", "headrace.core", "headrace.api"):
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, package + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            count += 1
print(count)
"""


def test_every_module_of_the_operator_is_imported_without_a_store():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def test_the_test_would_notice():
    looking = SCRIPT.replace('"headrace.runtime", ', '"headrace.cli", ')
    done = subprocess.run([sys.executable, "-c", looking], capture_output=True, text=True, check=False)
    assert "not installed" in done.stderr
