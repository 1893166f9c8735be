#!/bin/busybox sh
# PID 1 of the lab's guest. It mounts the host's files, then runs the steps that the host leaves in the
# control folder, each in a folder /control/steps/N:
#   go       the step may begin
#   setup    kernel settings, sourced here
#   command  run in the guest's root, in a session of its own
#   status   "exit-status began ended" (seconds of uptime), written last
# and ends the machine when /control/end appears. Signals for the command of a step arrive on the second serial
# line, whose reader sleeps until then (what looked again and again would be counted): "N SIGNAL WHOM", WHOM
# being "group" for all its processes or "first" for the first one. What it prints goes to the serial console, which the lab
# shows if something fails.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

fail() {
    echo "homing-lab: $*"
    [ -d /control/steps ] && echo "$*" >/control/error
    sync
    poweroff -f
    sleep 60
}
# Sets `now`. Like everything between commands it starts no process where the shell can do: each costs an
# emulator tens of milliseconds.
take_time() { read -r now rest </proc/uptime; }

for module in /modules/*.ko; do
    insmod "$module" || fail "cannot load ${module#/modules/*-}"
done
mount -t virtiofs control /control || fail "cannot mount the control folder"
mount -t virtiofs -o ro host /lower || fail "cannot mount the host's files"

# The guest's root: the host's files, with a writable layer in memory on top.
mount -t tmpfs -o size=60% upper /upper && mkdir /upper/files /upper/work ||
    fail "cannot make the writable layer"
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work,xino=off root /root ||
    fail "cannot mount the writable layer"
mount -t proc proc /root/proc
mount -t sysfs sys /root/sys
mount -t debugfs debug /root/sys/kernel/debug
mount -t cgroup2 cgroup /root/sys/fs/cgroup
mount -t devtmpfs dev /root/dev
mkdir -p /root/dev/shm /root/dev/pts
ln -s /proc/self/fd /root/dev/fd
ln -s /proc/self/fd/0 /root/dev/stdin
ln -s /proc/self/fd/1 /root/dev/stdout
ln -s /proc/self/fd/2 /root/dev/stderr
mount -t tmpfs -o mode=1777 shm /root/dev/shm
mount -t devpts -o mode=620,ptmxmode=666 pts /root/dev/pts
mount -t tmpfs -o mode=755 run /root/run
mkdir -p /root/run/lock /root/run/homing-lab
chmod 1777 /root/run/lock
while read -r tag path; do
    mkdir -p "/root$path" && mount -t virtiofs "$tag" "/root$path" || fail "cannot share $path"
    # One for all users lies in a folder of one user: the guest's copy of that lets them through.
    [ -k "/root$path" ] && chmod a+x "/root${path%/*}"
done </control/shares
mount --bind /control /root/run/homing-lab || fail "cannot bind the control folder"
# Files on shared folders get the host's time, and must not be of the future (make says so). On a busy host the emulated
# clock loses seconds while the kernel boots; the hardware's clock is the host's, in whole seconds. The rest is for what
# is lost later.
hwclock -u -s 2>/dev/null && date -s "@$(($(date +%s) + 3))" >/dev/null
hostname homing-lab
ip link set lo up
uname -r >/control/release

# Kernel settings. "knob FILE VALUE" keeps what was there at boot; "restore_knobs SETUP" brings it back, but
# for the files that SETUP sets. Nothing is written that is so already: some settings patch the kernel's code,
# which costs an emulator time.
mkdir /saved
: >/saved/list
saved_name() { echo "/saved/$(echo "$1" | tr / _)"; }
knob() {
    [ -e "/root$1" ] || { echo "this kernel has no $1"; exit 1; }
    # Not by read: it asks for one byte at a time, and /proc/sys gives no more after the first.
    before=$(cat "/root$1")
    # Of several choices the one in force is in brackets: always [madvise] never.
    case $before in
    *\[*) before=${before#*\[} before=${before%%\]*} ;;
    esac
    [ "$before" = "$2" ] && return
    saved=$(saved_name "$1")
    if ! [ -e "$saved" ]; then
        echo "$before" >"$saved"
        echo "$1" >>/saved/list
    fi
    echo "$2" >"/root$1" || { echo "cannot set $1 to $2"; exit 1; }
}
restore_knobs() {
    while read -r name; do
        grep -qF " $name " "$1" || knob "$name" "$(cat "$(saved_name "$name")")"
    done </saved/list
}

counting=
if [ -e /control/count ]; then
    counting=1
    # In memory: a program on the control folder, which nothing caches, is read anew at each start.
    cp /control/homing-mark /root/run/homing-mark
    chroot /root /run/homing-mark self-test >/control/self-test 2>&1 || fail "$(cat /control/self-test)"
    chroot /root /run/homing-mark dump
fi
mkfifo /pipe.stdout /pipe.stderr
stty -F /dev/ttyS1 -echo || fail "no second serial line"
pass_signals() {
    while read -r which signal whom; do
        [ "$which" = $number ] || continue
        until [ -s /command.pid ]; do sleep 0.05; done
        read -r pid </command.pid
        [ "$whom" = group ] && pid=-$pid
        kill -s "$signal" -- "$pid" 2>/dev/null
    done </dev/ttyS1
}
take_time
echo "$now" >/control/ready

number=0
pause=0.03
while :; do
    step=/control/steps/$number
    until [ -e $step/go ]; do
        [ -e /control/end ] && break 2
        sleep $pause
        case $pause in
        0.03) pause=0.1 ;;
        *) pause=0.2 ;;
        esac
    done
    pause=0.03
    if (restore_knobs $step/setup && . $step/setup) >$step/setup.log 2>&1; then
        # The command writes to pipes, not to the files behind them: "> /dev/stderr" would cut a file short.
        for stream in stdout stderr; do
            (cat /pipe.$stream >>$step/$stream && : >/end.$stream) &
        done
        pass_signals &
        take_time
        began=$now
        # In a subshell: this shell's own "Segmentation fault" must not get into the command's stderr.
        (
            read -r pid rest </proc/self/stat
            echo "$pid" >/command.pid
            exec setsid chroot /root /bin/sh /run/homing-lab/steps/$number/command \
                </dev/null >/pipe.stdout 2>/pipe.stderr
        )
        status=$?
        take_time
        # The pipes end when the last writer does. A process that the command left running may hold them open
        # for ever: it gets half a second. Then all such processes end, not to disturb the next command.
        turns=10
        until [ -e /end.stdout ] && [ -e /end.stderr ] || [ $turns = 0 ]; do
            sleep 0.05
            turns=$((turns - 1))
        done
        kill -9 -1 2>/dev/null
        wait
        rm -f /end.stdout /end.stderr /command.pid
        [ -n "$counting" ] && chroot /root /run/homing-mark dump
        # Files written through shared mappings reach the host now.
        sync
        echo "$status $began $now" >$step/status ||
            fail "cannot tell the command's status: is the host's temporary folder full?"
    else
        echo "setup" >$step/status
    fi
    number=$((number + 1))
done
sync
poweroff -f
