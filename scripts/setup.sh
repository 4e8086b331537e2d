#!/usr/bin/env bash
# Brings a checkout to the point where everything runs: .venv with the package and its development tools, Java, jars,
# compiled loops.
# Does only what is missing, so it needs no network the second time. Argument: the Python to use, or nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly OLDEST_PIP=25.1 # the first that installs dependency groups
readonly INSTALLED=.venv/.installed

die() {
    echo "setup: $*" >&2
    exit 1
}

is_suitable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
        if is_suitable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    die "no Python 3.10 or newer on the PATH; install one, or name it: make setup PYTHON=/path/to/python3"
}

make_venv() {
    local python=$1
    [ -n "$python" ] || python=$(find_python)
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        die "$python has no venv module; install it (Debian: apt-get install python3-venv)"
    echo "setup: making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

# What decides the installed packages: all of pyproject.toml but the settings of tools.
requirements() {
    sed '/^\[tool\./,$d' pyproject.toml
    cat requirements-dev.lock
}

has_new_pip() {
    .venv/bin/python - "$OLDEST_PIP" <<'PY'
import sys, pip
number = lambda text: [int(part) for part in text.split(".")[:2]]
sys.exit(number(pip.__version__) < number(sys.argv[1]))
PY
}

install_packages() {
    echo "setup: installing Python packages into .venv (pyspark alone is 450 MB)"
    has_new_pip || .venv/bin/python -m pip install --quiet --upgrade "pip>=$OLDEST_PIP"
    .venv/bin/python -m pip install --quiet --constraint requirements-dev.lock --editable . --group dev
    requirements >"$INSTALLED"
}

mkdir -p .cache
exec 9>.cache/.setup.lock
if command -v flock >/dev/null; then flock 9; fi # two at once in one checkout would install into each other

readonly ASKED=${1:-}
[ -z "$ASKED" ] || is_suitable "$ASKED" || die "PYTHON=$ASKED is not a Python 3.10 or newer"
if ! is_suitable .venv/bin/python; then
    make_venv "$ASKED"
elif [ -n "$ASKED" ]; then
    echo "setup: .venv is there already and stays; \`make clean\` makes way for another Python"
fi
requirements | cmp -s - "$INSTALLED" || install_packages
# What some tests need, and are skipped without. On a machine of somebody's own nothing is installed outside of this folder.
install_for_tests() {
    local command=$1 package=$2 tests=$3
    command -v "$command" >/dev/null && return
    echo "setup: installing $package for $tests"
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$package"; } >/dev/null 2>&1 ||
        echo "setup: $package cannot be installed; $tests will be skipped" >&2
}
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    install_for_tests chromium chromium tests/browser
    install_for_tests promtool prometheus "tests of alert rules"
    install_for_tests softhsm2-util softhsm2 "tests of keys in hardware modules"
fi
.venv/bin/python -m srm_spark.jars all --ensure-java --quiet
# The first start would do it, and take ten seconds longer. Flows run without, too.
# So that JVMs start in half of the time. They start without, too.
.venv/bin/python -m srm_spark.testing.archive || echo "setup: brokers start without an archive of classes" >&2
.venv/bin/python -m srm_spark.spark.archive || echo "setup: Spark starts without an archive of classes" >&2
.venv/bin/python -m srm_spark.kafka.compile_loops || echo "setup: flows run without them, see docs/running.md" >&2
