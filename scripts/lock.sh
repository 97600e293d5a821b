#!/usr/bin/env bash
# Pins every requirement, with hashes and without naming an index.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$(bash scripts/find-uv.sh)
cd requirements
for name in uv runtime dev java; do
    "$uv" pip compile --system-certs --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
        --upgrade "$name.in" -o "$name.txt"
done
