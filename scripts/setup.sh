#!/usr/bin/env bash
# Makes .venv from the pinned requirement files: needs Python >= 3.11 (with venv) and nothing else.
# Safe to run at any time; does nothing when what it makes is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON="${PYTHON:-python3}"
say() { printf '\033[2m[setup]\033[0m %s\n' "$*" >&2; }
die() { printf '[setup] %s\n' "$@" >&2; exit 1; }

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    die "Headrace needs Python 3.11 or newer as '$PYTHON'." "Install it, or name one: make setup PYTHON=/path/to/python3.12"

# --- the venv --------------------------------------------------------------------------------------
wanted=$(cat requirements/*.txt pyproject.toml scripts/setup.sh | sha256sum | cut -d' ' -f1)
if [ "$(cat .venv/.made-from 2>/dev/null)" != "$wanted" ]; then
    export PYTHON
    uv=$(bash scripts/find-uv.sh)
    say "making .venv from requirements/dev.txt (about 700 MB the first time)"
    [ -x .venv/bin/python ] || "$uv" venv --quiet --no-python-downloads --python "$PYTHON" .venv
    export UV_HTTP_TIMEOUT=180 VIRTUAL_ENV="$PWD/.venv"
    reqs=(requirements/dev.txt)
    bash scripts/find-java.sh >/dev/null 2>&1 || { say "no Java 17 or newer found: adding one from the Python registry"; reqs+=(requirements/java.txt); }
    # A build machine that terminates TLS itself has its own authority in the system's store.
    "$uv" pip sync --quiet --system-certs --require-hashes "${reqs[@]}"
    "$uv" pip install --quiet --system-certs --no-deps --no-build-isolation --editable .
    echo "$wanted" > .venv/.made-from
fi

# --- the jar: compiled from jobs/jvm, also where there is only a JRE ---------------------------------
.venv/bin/python -m headrace_jobs.jvm --if-stale
