#!/bin/sh
# usage: smoke.sh PROGRAM
#
# Is this installation of homing whole? PROGRAM: one that uses OpenMP and repeats (examples/laplace.c). Used by the tests
# of all packages.
set -eu
program=$1
fail() {
    echo "smoke: $*" >&2
    exit 1
}
cd "$(mktemp -d)"
homing --version | grep -q '[0-9]' || fail "homing --version"
homing --help | grep -q run || fail "homing --help"
homing run -- true 2>&1 | grep -q 'nothing was done' || fail "homing run -- true"
HOMING_ASSUME_NODES=4 OMP_NUM_THREADS=4 homing run --record r --json r.json -- "$program" 400 30 2>summary || fail "homing run"
grep -q '4 NUMA nodes' summary || fail "the summary: $(cat summary)"
homing report r --html r.html >/dev/null || fail "homing report"
grep -q 'id="arrays"' r.html || fail "the page"
homing doctor >doctor.txt || [ $? -le 1 ] || fail "homing doctor"
homing machine | grep -q sf15k || fail "homing machine"
# A wheel has no place for manual pages: SMOKE_MAN=no.
if [ "${SMOKE_MAN:-yes}" = yes ] && command -v man >/dev/null; then man -w homing >/dev/null || fail "man homing"; fi
echo "smoke: $(homing --version) works"
