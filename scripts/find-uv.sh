#!/usr/bin/env bash
# Prints the uv to use: the one on the PATH, or the pinned one, which is put into the cache first.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v uv && exit 0

CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/headrace"
PYTHON="${PYTHON:-python3}"
home="$CACHE/uv-$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements/uv.txt)"
if [ ! -x "$home/bin/uv" ]; then
    echo "[setup] fetching $(basename "$home")" >&2
    mkdir -p "$CACHE"
    fresh=$(mktemp -d "$CACHE/uv.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    "$PYTHON" -m venv "$fresh" >/dev/null 2>&1 || {
        echo "[setup] '$PYTHON -m venv' does not work here. On Debian and Ubuntu: apt install python3-venv" >&2
        exit 1
    }
    "$fresh/bin/python" -m pip install --quiet --require-hashes -r requirements/uv.txt >&2
    # A venv's scripts name its path, but uv itself is one binary: it survives the move.
    mv -T "$fresh" "$home" 2>/dev/null || [ -x "$home/bin/uv" ]
fi
echo "$home/bin/uv"
