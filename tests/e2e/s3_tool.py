"""Runs inside the services pod: looks into the S3 server as any client does. `python3 s3_tool.py <command> …`

pyarrow, which the image has for Spark's sake, brings an S3 client; keys come from the environment.
"""

import os
import sys

from pyarrow import fs


def main() -> None:
    command, endpoint, place = sys.argv[1:]
    store = fs.S3FileSystem(
        access_key=os.environ["ROOT_ACCESS_KEY"],
        secret_key=os.environ["ROOT_SECRET_KEY"],
        endpoint_override=endpoint,
        region="us-east-1",
        allow_bucket_creation=True,
    )
    COMMANDS[command](store, place)


def make_bucket(store: fs.S3FileSystem, bucket: str) -> None:
    store.create_dir(bucket)


def list_keys(store: fs.S3FileSystem, prefix: str) -> None:
    below = fs.FileSelector(prefix, recursive=True, allow_not_found=True)
    for found in store.get_file_info(below):
        if found.is_file:
            sys.stdout.write(found.path.removeprefix(f"{prefix}/") + "\n")


def read(store: fs.S3FileSystem, key: str) -> None:
    with store.open_input_stream(key) as stream:
        sys.stdout.buffer.write(stream.read())


def write(store: fs.S3FileSystem, key: str) -> None:
    with store.open_output_stream(key) as stream:
        stream.write(sys.stdin.buffer.read())


COMMANDS = {"make-bucket": make_bucket, "list": list_keys, "read": read, "write": write}

if __name__ == "__main__":
    main()
