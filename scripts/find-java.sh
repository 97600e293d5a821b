#!/usr/bin/env bash
# Prints the Java >= 17 that a plain `java` would be (JAVA_HOME first, then PATH); fails when there is none.
set -euo pipefail
for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)"; do
    [ -n "$java" ] && [ -x "$java" ] || continue
    major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
    [ "${major:-0}" -ge 17 ] && { echo "$java"; exit 0; }
done
exit 1
