#!/bin/bash
# usage: tools/venv.sh
#
# Makes the virtual environment .venv with the exact versions of requirements.txt. Uses what pip has in its cache.
# Most modules are never imported: they are compiled when they are (half of the time that this takes).
set -eu -o pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
log=.setup/pip.log
mkdir -p .setup
exec 8>.setup/venv.lock && { ! command -v flock >/dev/null || flock 8; } # two makes in one tree: one after the other
if [ .venv/complete -nt requirements.txt ] && [ .venv/complete -nt tools/venv.sh ]; then exit 0; fi

echo "homing set-up: Python packages into .venv" >&2
rm -f .venv/complete
if ! { "$python" -m venv --clear .venv &&
    .venv/bin/python -m pip install --no-input --disable-pip-version-check --no-deps --only-binary :all: \
        --no-compile -r requirements.txt; } >"$log" 2>&1 </dev/null; then
    echo "homing set-up: the Python packages could not be installed; the last lines of $log:" >&2
    tail -n 15 "$log" >&2
    echo "homing set-up: without a network, name a folder of wheels: PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER make ..." >&2
    exit 2
fi
touch .venv/complete
