#!/bin/bash
# usage: tools/venv.sh
#
# Makes the virtual environment .venv with the exact versions of requirements.txt. Uses what pip has in its cache.
set -eu -o pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
log=.setup/pip.log
mkdir -p .setup

echo "homing set-up: Python packages into .venv" >&2
rm -f .venv/complete
if ! { "$python" -m venv --clear .venv &&
    .venv/bin/python -m pip install --no-input --disable-pip-version-check --no-deps --only-binary :all: \
        -r requirements.txt; } >"$log" 2>&1 </dev/null; then
    echo "homing set-up: the Python packages could not be installed; the last lines of $log:" >&2
    tail -n 15 "$log" >&2
    exit 2
fi
touch .venv/complete
