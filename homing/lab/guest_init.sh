#!/bin/busybox sh
# PID 1 of the lab's guest. It mounts the host's files, then runs the steps that the host leaves in the
# control folder, each in a folder /control/steps/N:
#   go       the step may begin
#   setup    kernel settings, sourced here
#   command  run in the guest's root
#   status   "exit-status began ended" (seconds of uptime), written last
# and ends the machine when /control/end appears. What it prints goes to the serial console, which the lab
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
uptime_seconds() { cut -d' ' -f1 /proc/uptime; }

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
done </control/shares
mount --bind /control /root/run/homing-lab || fail "cannot bind the control folder"
hostname homing-lab
ip link set lo up
uname -r >/control/release

# Kernel settings. knob FILE VALUE keeps what was there at boot; restore_knobs brings it all back.
mkdir /saved
: >/saved/list
saved_name() { echo "/saved/$(echo "$1" | tr / _)"; }
knob() {
    file=/root$1
    saved=$(saved_name "$1")
    [ -e "$file" ] || { echo "this kernel has no $1"; exit 1; }
    if ! [ -e "$saved" ]; then
        # Of several choices the one in force is in brackets: always [madvise] never.
        sed 's/.*\[\(.*\)\].*/\1/' "$file" >"$saved"
        echo "$1" >>/saved/list
    fi
    echo "$2" >"$file" || { echo "cannot set $1 to $2"; exit 1; }
}
restore_knobs() {
    while read -r name; do
        cat "$(saved_name "$name")" >"/root$name"
    done </saved/list
}

counting=
if [ -e /control/count ]; then
    counting=1
    chroot /root /run/homing-lab/homing-mark self-test >/control/self-test 2>&1 ||
        fail "$(cat /control/self-test)"
    chroot /root /run/homing-lab/homing-mark dump
fi
uptime_seconds >/control/ready.new
mv /control/ready.new /control/ready

number=0
while :; do
    step=/control/steps/$number
    until [ -e $step/go ]; do
        [ -e /control/end ] && break 2
        sleep 0.03
    done
    restore_knobs
    if (. $step/setup) >$step/setup.log 2>&1; then
        began=$(uptime_seconds)
        # The command writes to pipes, not to the files behind them: "> /dev/stderr" would cut a file short.
        for stream in stdout stderr; do
            rm -f /pipe.$stream /end.$stream
            mkfifo /pipe.$stream
            (cat /pipe.$stream >>$step/$stream && : >/end.$stream) &
        done
        # In a subshell: this shell's own "Segmentation fault" must not get into the command's stderr.
        (
            exec chroot /root /bin/sh /run/homing-lab/steps/$number/command \
                </dev/null >/pipe.stdout 2>/pipe.stderr
        )
        status=$?
        ended=$(uptime_seconds)
        # The pipes end when the last writer does. A process that the command left running may hold them open
        # for ever: it gets half a second. Then all such processes end, not to disturb the next command.
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            [ -e /end.stdout ] && [ -e /end.stderr ] && break
            sleep 0.05
        done
        kill -9 -1 2>/dev/null
        wait
        [ -n "$counting" ] && chroot /root /run/homing-lab/homing-mark phase 0
        [ -n "$counting" ] && chroot /root /run/homing-lab/homing-mark dump
        # Files written through shared mappings reach the host now.
        sync
        echo "$status $began $ended" >$step/status.new
    else
        echo "setup" >$step/status.new
    fi
    mv $step/status.new $step/status
    number=$((number + 1))
done
sync
poweroff -f
