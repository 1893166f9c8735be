#!/bin/bash
# usage: tools/packages.sh GROUP...
#
# Sees to it that everything tools/packages.tsv lists for the groups is there. What is missing is installed through apt
# where that works (Debian or Ubuntu, as root); anywhere else it is listed with the command to run, and the status is 2.
# No package of the user's is ever removed: what cannot be installed beside them is left out if homing goes on without it
# (groups with a ?), and otherwise named, with status 2.
# A guest kernel is never installed on this machine: its package is unpacked into homing's cache folder, which needs no
# root and leaves the boot loader alone.
# HOMING_SETUP: a folder for logs and marks (default .setup).
set -u -o pipefail
export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin # depmod, for a user whose PATH lacks them
cd "$(dirname "$0")/.." || exit 2

table=tools/packages.tsv
state=${HOMING_SETUP:-$PWD/.setup}
log=$state/apt.log
home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
cache=$home/.cache
case ${XDG_CACHE_HOME:-} in /*) cache=$XDG_CACHE_HOME ;; esac # a relative one is to be ignored (XDG)
kernels=${HOMING_CACHE:-$cache/homing}/kernels
python=${PYTHON:-python3}
lock_seconds=900
mkdir -p "$state" || exit 2
exec 9>"$state/lock" && { ! command -v flock >/dev/null || flock 9; } # one set-up at a time (make -j)

say() { printf 'homing set-up: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

# Newest kernel of a series ("6.1") below a root folder, whose modules are there too.
kernel_below() {
    local root=$1 series=$2 image release
    for image in $(printf '%s\n' "$root"/boot/vmlinuz-"$series".*cloud* | sort -rV); do
        release=${image##*/vmlinuz-}
        if [ -r "$image" ] && [ -r "$root/lib/modules/$release/modules.dep" ]; then return 0; fi
    done
    return 1
}

# Is the thing there? Asks for the thing itself, not for a package, so that one built by hand counts.
present() {
    local kind=${1%%:*} what=${1#*:} part pattern match
    case $kind in
    cmd) command -v "$what" >/dev/null ;;
    header)
        case $what in
        /*) [ -e "$what" ] ;;
        *) command -v g++ >/dev/null && printf '#include <%s>\n' "$what" | g++ -E -x c++ - >/dev/null 2>&1 ;;
        esac ;;
    file)
        IFS='|' read -ra part <<<"$what"
        for pattern in "${part[@]}"; do
            for match in $pattern; do [ -e "$match" ] && return 0; done
        done
        return 1 ;;
    python) "$python" -c "import $what" >/dev/null 2>&1 ;;
    kernel)
        IFS='|' read -ra part <<<"$what"
        for pattern in "${part[@]}"; do
            kernel_below "" "$pattern" && return 0
            kernel_below "$kernels" "$pattern" && "$python" -m homing.paths "$kernels" && return 0
        done
        return 1 ;;
    *) die "$table: unknown probe '$1'" ;;
    esac
}

# Runs apt-get and keeps what it prints in the log; waits for another apt that holds a lock.
apt() {
    local until=$((SECONDS + lock_seconds)) said=
    while :; do
        printf '\n# apt-get %s\n' "$*" >>"$log"
        DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=$lock_seconds "$@" \
            </dev/null >"$state/apt.last" 2>&1 && { cat "$state/apt.last" >>"$log"; return 0; }
        cat "$state/apt.last" >>"$log"
        grep -Eq 'Could not get lock|Unable to (acquire|lock)' "$state/apt.last" || return 1
        [ "$SECONDS" -lt "$until" ] || return 1
        [ -n "$said" ] || say "waiting for another apt to finish"
        said=yes
        sleep 3
    done
}

apt_failed() {
    say "$1 failed; the last lines of $log:"
    tail -n 15 "$log" >&2
    exit 2
}

updated=
update_lists() {
    [ -z "$updated" ] || return 0
    updated=yes
    if [ "$(id -u)" -eq 0 ]; then
        say "reading the package lists (apt-get update)"
        apt update -q || say "apt-get update failed (see $log): going on with the lists that are there"
    fi
}

# Would apt-get install these packages beside all that is installed? Otherwise `objection` has the reason. Needs no root.
objection=
fits() {
    local plan removed
    objection=
    if ! plan=$(apt-get -s -q -y --no-install-recommends install "$@" 2>&1); then
        objection="apt-get cannot install it: $(sed -n 's/^E: //p' <<<"$plan" | head -n 1)"
        return 1
    fi
    removed=$(awk '$1 == "Remv" { printf " %s", $2 }' <<<"$plan")
    [ -z "$removed" ] || objection="apt-get would remove$removed"
    [ -z "$removed" ]
}

known() { [[ $(apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[!\(]* ]]; }

# The first package of "a|b" that apt knows.
resolve() {
    local names name
    IFS='|' read -ra names <<<"$1"
    for name in "${names[@]}"; do known "$name" && { echo "$name"; return 0; }; done
    return 1
}

kernel_package() {
    local series=${1//./\\.}
    apt-cache search --names-only "^linux-image-$series\\.[0-9a-z.+-]*cloud-$(dpkg --print-architecture)(-unsigned)?$" |
        cut -d' ' -f1 | sort -V | tail -n 1
}

fetch_kernel() {
    local part series package folder modules
    IFS='|' read -ra part <<<"$1"
    for attempt in 1 2; do
        for series in "${part[@]}"; do
            package=$(kernel_package "$series")
            [ -z "$package" ] || break 2
        done
        [ "$attempt" = 2 ] || update_lists
    done
    [ -n "$package" ] || return 1
    say "unpacking the guest kernel $package into $kernels"
    "$python" -m homing.paths "$kernels" || exit 2 # made with mode 0700; never one that others may write to
    folder=$(mktemp -d "$kernels/.unpack.XXXXXX") || return 1
    if ! (cd "$folder" && apt-get -q -o APT::Sandbox::User=root download "$package") >>"$log" 2>&1; then
        update_lists
        package=$(kernel_package "$series")
        (cd "$folder" && apt-get -q -o APT::Sandbox::User=root download "$package") >>"$log" 2>&1 ||
            { rm -rf "$folder"; apt_failed "apt-get download $package"; }
    fi
    dpkg-deb -x "$folder"/*.deb "$folder/root" || { rm -rf "$folder"; return 1; }
    modules=$folder/root/lib/modules
    [ -d "$modules" ] || modules=$folder/root/usr/lib/modules
    mkdir -p "$kernels/boot" "$kernels/lib/modules"
    # The index of the modules comes last: a kernel counts as present only with it, so that an interrupted set-up starts again.
    cp -a "$modules"/. "$kernels/lib/modules/" && cp -a "$folder"/root/boot/. "$kernels/boot/" &&
        depmod -b "$kernels" "$(ls "$modules")" >>"$log" 2>&1
    local status=$?
    rm -rf "$folder"
    return $status
}

[ $# -gt 0 ] || die "usage: tools/packages.sh GROUP..."
wanted=,$(IFS=,; echo "$*"),
probes=() packages=() reasons=() optional=() kernel_probes=()
while IFS=$'\t' read -r groups probe package reason; do
    case $groups in '' | '#'*) continue ;; esac
    case $wanted in *",${groups%\?},"*) ;; *) continue ;; esac
    present "$probe" && continue
    if [ "${probe%%:*}" = kernel ]; then
        kernel_probes+=("${probe#*:}")
    else
        probes+=("$probe") packages+=("$package") reasons+=("$reason")
        if [ "$groups" = "${groups%\?}" ]; then optional+=(""); else optional+=(yes); fi
    fi
done <"$table"

have_apt=
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && have_apt=yes

if [ ${#packages[@]} -gt 0 ]; then
    if [ -n "$have_apt" ] && [ "$(id -u)" -eq 0 ]; then
        for package in "${packages[@]}"; do resolve "$package" >/dev/null || { update_lists; break; }; done
    fi
    names=()
    for index in "${!packages[@]}"; do
        if [ -n "$have_apt" ]; then name=$(resolve "${packages[index]}") || name=${packages[index]%%|*}
        else name=${packages[index]%%|*}; fi
        names+=("$name")
    done
    # What is to be installed: all of it, unless some of it drives out what is there.
    chosen=("${!names[@]}")
    if [ -n "$have_apt" ] && ! fits "${names[@]}"; then
        chosen=() fitting=()
        for index in "${!names[@]}"; do
            if fits ${fitting[@]+"${fitting[@]}"} "${names[index]}"; then
                chosen+=("$index") fitting+=("${names[index]}")
            elif [ -n "${optional[index]}" ]; then
                say "going on without ${names[index]} (${reasons[index]}): $objection"
            elif [ -n "$(resolve "${packages[index]}")" ]; then
                die "${names[index]} is needed (${reasons[index]}), but $objection; nothing was installed"
            else
                chosen+=("$index") fitting+=() # not known to apt: said below
            fi
        done
    fi
    # Where nothing can be installed from here, what homing goes on without is only mentioned.
    if [ -z "$have_apt" ] || [ "$(id -u)" -ne 0 ]; then
        needed=()
        for index in ${chosen[@]+"${chosen[@]}"}; do [ -n "${optional[index]}" ] || needed+=("${names[index]}"); done
        [ ${#chosen[@]} -eq 0 ] || say "missing on this machine:"
        for index in ${chosen[@]+"${chosen[@]}"}; do
            printf '    %-22s %s (looked for %s)%s\n' "${names[index]}" "${reasons[index]}" "${probes[index]#*:}" \
                "${optional[index]:+; homing goes on without}" >&2
        done
        if [ ${#needed[@]} -gt 0 ]; then
            if [ -n "$have_apt" ]; then
                say "install it and start again:"
                printf '    sudo apt-get install -y --no-remove --no-install-recommends %s\n' "${needed[*]}" >&2
            else
                say "these are the names of Debian packages: install what corresponds here, and start again"
            fi
            exit 2
        fi
        chosen=()
    fi
    if [ ${#chosen[@]} -gt 0 ]; then
        fitting=()
        for index in "${chosen[@]}"; do fitting+=("${names[index]}"); done
        say "installing ${fitting[*]}"
        install=(install -q -y --no-remove --no-install-recommends "${fitting[@]}")
        if ! apt "${install[@]}"; then
            update_lists
            apt "${install[@]}" || apt_failed "apt-get install ${fitting[*]}"
        fi
        for index in "${chosen[@]}"; do
            present "${probes[index]}" ||
                die "${probes[index]#*:} is still missing after installing ${names[index]} (${reasons[index]})"
        done
    fi
fi

for series in "${kernel_probes[@]}"; do
    [ -n "$have_apt" ] && fetch_kernel "$series"
    present "kernel:$series" && continue
    die "no Linux ${series//|/ or } for the guest: put boot/vmlinuz-${series%%|*}.N-cloud-* and lib/modules/ of the" \
        "same release below $kernels (on Debian: apt-get download linux-image-cloud-amd64, dpkg-deb -x)"
done

if [[ $wanted == *,build,* ]]; then
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        die "$python is older than 3.10: name a newer one, for example: make PYTHON=python3.11 test"
fi

# The version of cmake, if it is older than what CMakePresets.json asks for.
if [[ $wanted == *,build,* ]]; then
    version=$(cmake --version | sed -n 's/^cmake version //p')
    [ "$(printf '%s\n' 3.25 "$version" | sort -V | head -n 1)" = 3.25 ] ||
        die "cmake $version is older than 3.25: put a newer one first in PATH (for example from: pip install cmake)"
fi
