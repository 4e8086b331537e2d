#!/usr/bin/env bash
# Runs the driver by spark-submit, on this machine or on a cluster; ./spark-submit.sh --help says how.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ ! -x "$root/.venv/bin/python" ]; then
    echo "spark-submit.sh: $root/.venv is missing; run: make setup" >&2
    exit 1
fi
exec "$root/.venv/bin/python" -m srm_spark.cli.submit "$@"
