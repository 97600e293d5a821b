#!/usr/bin/env bash
# Pins what goes into the images, to the versions of requirements/runtime.txt: run after scripts/lock.sh.
set -euo pipefail
cd "$(dirname "$0")"
for name in spark operator carried; do
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
        --constraint ../requirements/runtime.txt "$name.in" -o "$name.txt"
done
