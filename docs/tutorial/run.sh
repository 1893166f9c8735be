#!/bin/sh
# The tutorial's commands: sh run.sh [here|described|guest ...]; without words the first two. What they print is
# compared by tests/python/test_tutorial.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
homing=${HOMING_COMMAND:-homing}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive

[ $# -gt 0 ] || set -- here described
for place in "$@"; do
    echo "== $place"
    case $place in
    here)
        gcc -O2 -g -fopenmp "$here/slow.c" -o slow
        $homing run --record slow.homing -- ./slow
        ;;
    described)
        $homing cc gcc -O2 -g -fopenmp "$here/slow.c" -o slow_cc
        $homing run --on sf15k --mechanism observe -- ./slow_cc
        $homing run --on sf15k -- ./slow_cc
        $homing cc gcc -O2 -g -fopenmp -DPARALLEL "$here/slow.c" -o fixed_cc
        $homing run --on sf15k --mechanism observe -- ./fixed_cc
        ;;
    guest)
        gcc -O2 -g -fopenmp "$here/slow.c" -o slow
        $homing run --on lab --count --bind -- ./slow
        ;;
    *)
        echo "run.sh: no place '$place': here, described, guest" >&2
        exit 2
        ;;
    esac
done
