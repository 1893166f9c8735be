#!/bin/bash
# usage: tools/lock.sh
#
# Writes requirements.txt anew: the exact version of every Python package that .venv gets, for Python 3.10 and newer, from
# what pyproject.toml asks for. Needs `uv` (pip install uv).
set -eu
cd "$(dirname "$0")/.."
exec "${UV:-uv}" pip compile pyproject.toml --quiet --extra dev --extra bench --universal --python-version 3.10 \
    --no-emit-package homing --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
    --upgrade --output-file requirements.txt
