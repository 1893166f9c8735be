#!/bin/bash
# usage: packaging/debian/test.sh PACKAGE.deb [FOLDER]
#
# Installs the package in a clean root (debootstrap, FOLDER: build/debian/clean) and tries it there: needs root.
# SUITE: bookworm; MIRROR: where its packages are (default: the machine's own sources).
set -euo pipefail
package=$(realpath "$1")
tree=$(cd "$(dirname "$0")/../.." && pwd)
clean=$(realpath -m "${2:-$tree/build/debian/clean}")
suite=${SUITE:-bookworm}
if [ ! -e "$clean/etc/debian_version" ]; then
    mirror=${MIRROR:-$(sed -nE 's/^(URIs: *|deb (\[[^]]*\] )?)([^ ]+).*/\3/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -1)}
    debootstrap --variant=minbase "$suite" "$clean" "$mirror" >&2
fi
cp /etc/resolv.conf "$clean/etc/resolv.conf"
[ ! -d /etc/apt/apt.conf.d ] || cp -r /etc/apt/apt.conf.d/. "$clean/etc/apt/apt.conf.d/"
cp "$package" "$clean/tmp/homing.deb"
gcc -O2 -g -fopenmp "$tree/examples/laplace.c" -o "$clean/tmp/laplace"
cp "$tree/packaging/smoke.sh" "$clean/tmp/smoke.sh"
mounted=()
for place in proc sys dev; do mountpoint -q "$clean/$place" || { mount --bind "/$place" "$clean/$place"; mounted+=("$clean/$place"); }; done
trap 'for place in "${mounted[@]}"; do umount "$place"; done' EXIT
run() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$clean" "$@"; }
run apt-get update -q >/dev/null
run apt-get install -y -q --no-install-recommends /tmp/homing.deb man-db >/dev/null
run sh /tmp/smoke.sh /tmp/laplace
run apt-get remove -y -q homing >/dev/null
left=$(find "$clean/usr" -path '*homing*' | head -3)
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
echo "debian: installed, tried and removed in a clean root"
