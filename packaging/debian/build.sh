#!/bin/bash
# usage: packaging/debian/build.sh [FOLDER]
#
# Builds homing_VERSION_ARCH.deb from this tree into FOLDER (build/debian), with the distribution's own Python: the
# package holds the Python packages that homing needs, compiled for that one. Needs what `make` installs.
# BUILD: a build folder of this tree that is there already, instead of one below FOLDER.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-build/debian}")
python=${PYTHON:-/usr/bin/python3}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
arch=$(dpkg --print-architecture)
root=$out/root
rm -rf "$root"
mkdir -p "$out"
if [ ! -e "$out/venv/complete" ]; then
    "$python" -m venv --clear "$out/venv"
    "$out/venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: \
        -r requirements.txt
    touch "$out/venv/complete"
fi
build=${BUILD:-$out/build}
[ -n "${BUILD:-}" ] || cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOMING_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr \
    -DPython3_EXECUTABLE="$out/venv/bin/python" >"$out/configure.log"
cmake --build "$build" --target homing_installed >"$out/build.log"
DESTDIR=$root cmake --install "$build" --strip --prefix /usr >"$out/install.log"
if [ -n "${BUILD:-}" ]; then # which was configured for another Python
    DESTDIR=$root "$out/venv/bin/python" tools/install_command.py "$(dirname "$(find "$root" -name interpreter)")" "$root/usr/bin"
fi

doc=$root/usr/share/doc/homing
mkdir -p "$root/DEBIAN" "$doc"
find "$root/usr/share/man" -type f -name '*.1' -exec gzip -9n {} +
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    printf '\nFiles: *\nCopyright: the homing authors\nLicense: BSD-3-Clause\n'
    sed 's/^$/./; s/^/ /' LICENSE
} >"$doc/copyright"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
# Python's version is part of the compiled packages' names.
abi=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next=$("$python" -c 'import sys; print("%d.%d" % (sys.version_info[0], sys.version_info[1] + 1))')
glibc=$(ldd --version | sed -n '1s/.* //p')
cat >"$root/DEBIAN/control" <<END
Package: homing
Version: $version
Architecture: $arch
Maintainer: the homing authors <homing@localhost>
Section: science
Priority: optional
Depends: python3 (>= $abi), python3 (<< $next~), libc6 (>= $glibc), libstdc++6, libgomp1
Recommends: gcc, numactl
Suggests: qemu-system-x86, virtiofsd | qemu-system-common
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Description: sends memory pages of OpenMP programs to the NUMA nodes that use them
 homing run -- PROGRAM finds arrays, iterations and owners of pages in an unmodified program, moves what is
 misplaced, and reports what it did: arrays, lines, pages, and what to change in the source.
END
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
dpkg-deb --build --root-owner-group -Zxz -z1 "$root" "$out/homing_${version}_${arch}.deb" >&2
echo "$out/homing_${version}_${arch}.deb"
