#!/bin/bash
# Kubernetes calls this before it ends an executor: Spark moves its blocks away on SIGPWR, then the executor exits.
set -euo pipefail

for comm in /proc/[0-9]*/comm; do
    if [ "$(cat "$comm" 2>/dev/null)" = java ]; then
        pid=${comm#/proc/}
        pid=${pid%/comm}
        kill -s PWR "$pid"
        # Kubernetes' own grace period ends the wait when it takes longer.
        timeout "${HEADRACE_DECOMMISSION_SECONDS:-60}" tail --pid="$pid" -f /dev/null || true
        exit 0
    fi
done
