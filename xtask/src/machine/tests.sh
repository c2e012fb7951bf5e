#!/bin/bash
# The machine's system: what a Debian host with systemd has that Eyot looks at, without systemd. Then the tests, one program
# after the other, told to the console in lines that begin with the run's own mark; then the end.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
. /mnt/settings # mark, programs, users, filter, skips

say() { echo "$mark $*"; }
end() {
    say end "$@"
    sync
    # The kernel reboots by a fault of its own, which ends QEMU. `echo b` asks nobody.
    echo b > /proc/sysrq-trigger
    sleep 60
}
must() { "$@" || end "failed: $*"; }

hostname eyot-machine
mkdir -p /dev/pts /dev/shm /run /tmp
must mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
must mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs /dev/shm
must mount -t tmpfs -o mode=755,nosuid,nodev tmpfs /run
chmod 1777 /tmp
ln -sfn /proc/self/fd /dev/fd
ip link set lo up

# cgroup v2 and nothing else, with the groups that systemd would make for two people who have logged in.
groups=/sys/fs/cgroup
must mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 $groups
controllers="+cpu +memory +pids"
must mkdir -p $groups/user.slice/user-{0,1000}.slice $groups/user.slice/user-0.slice/session-1.scope \
    $groups/user.slice/user-1000.slice/{session-2.scope,user@1000.service}
for group in $groups $groups/user.slice $groups/user.slice/user-{0,1000}.slice; do
    echo "$controllers" > $group/cgroup.subtree_control || end "failed: controllers of $group"
done
# What `Delegate=yes` gives: the folder and the files by which the tree below is arranged, nothing that limits it.
delegated=$groups/user.slice/user-1000.slice/user@1000.service
delegate() { chown 1000:1000 "$1" "$1"/cgroup.{procs,threads,subtree_control}; }
must delegate $delegated
must mkdir -p /run/user/1000
chown 1000:1000 /run/user/1000
chmod 700 /run/user/1000

kernel=$(uname -r)
say "kernel $kernel, up $(cut -d' ' -f1 /proc/uptime) s"

# Runs a program in a group, as somebody, with a deadline of its own: enter GROUP WHO PROGRAM ARGUMENTS…
enter() {
    local group=$1 who=$2
    shift 2
    (
        echo $BASHPID > "$group/cgroup.procs" || exit 99
        cd /tmp || exit 99
        case $who in
            root) exec env -i PATH="$PATH" LANG="$LANG" HOME=/root EYOT_BIN=/mnt/eyot "$@" ;;
            *) exec runuser -u tester -- env -i PATH="$PATH" LANG="$LANG" HOME=/home/tester USER=tester \
                XDG_RUNTIME_DIR=/run/user/1000 EYOT_BIN=/mnt/eyot "$@" ;;
        esac
    ) < /dev/null 2>&1
}

# The ordinary user's test runs in a scope of its own, below what is delegated, as `systemd-run --user --scope` has it.
scope() {
    local made=$delegated/app.slice/run-$1.scope
    mkdir -p "$made" && chown -R 1000:1000 $delegated/app.slice &&
        echo "$controllers" > $delegated/cgroup.subtree_control &&
        echo "$controllers" > $delegated/app.slice/cgroup.subtree_control || end "failed: scope $1"
    echo "$made"
}

for user in $users; do
    for program in $programs; do
        case $user in
            root) group=$groups/user.slice/user-0.slice/session-1.scope ;;
            user) group=$groups/user.slice/user-1000.slice/session-2.scope ;;
            delegated) group=$(scope "$program") ;;
        esac
        say begin "$program" "$user"
        enter "$group" "$user" "/mnt/$program" --test-threads=1 "${skips[@]}" $filter
        say ended "$program" "$user" $?
    done
done
end done
