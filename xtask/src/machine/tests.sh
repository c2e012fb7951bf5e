#!/bin/bash
# The machine's system: what a Debian host with systemd has that Eyot looks at, without systemd. Then the tests, one program
# after the other, told to the console in lines that begin with the run's own mark; then the end.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
. /mnt/settings # mark, runs, skips, slowness

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

# A scope of its own, below what is delegated to the ordinary user, as `systemd-run --user --scope` makes it.
scope() {
    local made=$delegated/app.slice/run-$1.scope
    mkdir -p "$made" && chown -R 1000:1000 $delegated/app.slice &&
        echo "$controllers" > $delegated/cgroup.subtree_control &&
        echo "$controllers" > $delegated/app.slice/cgroup.subtree_control || end "failed: scope $1"
    echo "$made"
}

# The user manager's part in `systemd-run --user --scope`: whoever asks is moved into a scope of its own, which is left to
# the user. Only root can move a process out of a session, so systemd's user manager asks the system's; here that is a loop.
manager() {
    local pid reply made
    while read -r pid reply; do
        made=$(scope "$pid") && echo "$pid" > "$made/cgroup.procs"
        echo "$?" > "$reply"
    done <> /run/manager/asked
}
must mkdir -p /run/manager/systemd /run/manager/replies
must touch /run/manager/systemd/private
must mkfifo -m 622 /run/manager/asked
chmod 1777 /run/manager/replies
cat > /usr/bin/systemd-run << 'END'
#!/bin/bash
# A stand-in for systemd-run of the machine's own: it knows `--user --scope … -- PROGRAM ARGUMENTS…` and nothing else.
[ "$1 $2" = "--user --scope" ] || { echo "systemd-run: the stand-in can't do this: $*" >&2; exit 1; }
while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
shift
reply=/run/manager/replies/$$
/usr/bin/mkfifo "$reply"
echo "$$ $reply" > /run/manager/asked
read -r moved < "$reply"
/usr/bin/rm "$reply"
[ "$moved" = 0 ] || { echo "systemd-run: the stand-in has no scope for $$" >&2; exit 1; }
exec "$@"
END
chmod 755 /usr/bin/systemd-run

kernel=$(uname -r)
say "kernel $kernel, up $(cut -d' ' -f1 /proc/uptime) s"

# Runs a program in a group, as somebody: enter GROUP WHO PROGRAM ARGUMENTS…
enter() {
    local group=$1 who=$2
    shift 2
    (
        echo $BASHPID > "$group/cgroup.procs" || exit 99
        cd /tmp || exit 99
        case $who in
            root) exec env -i PATH="$PATH" LANG="$LANG" HOME=/root EYOT_BIN=/mnt/eyot EYOT_SLOWNESS=$slowness "$@" ;;
            *) exec setpriv --reuid=1000 --regid=1000 --init-groups env -i PATH="$PATH" LANG="$LANG" HOME=/home/tester USER=tester \
                XDG_RUNTIME_DIR="$runtime" EYOT_BIN=/mnt/eyot EYOT_SLOWNESS=$slowness "$@" ;;
        esac
    ) < /dev/null 2>&1
}

# `eyot doctor` succeeds wherever sandboxes can be made. Whoever can have a control group must have limits as well.
doctor() {
    local said code
    said=$(enter "$group" "$user" /mnt/eyot doctor)
    code=$?
    echo "$said"
    [ "$user" = user ] || grep -q '^ok *limits ' <<< "$said" || { echo "limits are not held"; code=90; }
    return "$code"
}

# The rows between commas, or all of them.
verify() {
    local rows=() row
    for row in ${filter//,/ }; do rows+=(--filter "$row"); done
    enter "$group" "$user" /mnt/eyot verify "${rows[@]}"
}

manager &
for run in "${runs[@]}"; do
    read -r program user filter <<< "$run"
    # Only one of them has a user manager.
    runtime=/run/user/1000
    [ "$user" = manager ] && runtime=/run/manager
    case $user in
        root) group=$groups/user.slice/user-0.slice/session-1.scope ;;
        user | manager) group=$groups/user.slice/user-1000.slice/session-2.scope ;;
        delegated)
            scopes=$((scopes + 1))
            group=$(scope "tests-$scopes")
            ;;
    esac
    say begin "$program" "$user" "$filter"
    case $program in
        doctor) doctor ;;
        verify) verify ;;
        *) enter "$group" "$user" "/mnt/$program" --test-threads=2 "${skips[@]}" $filter ;;
    esac
    say ended "$program" "$user" $?
done
end done
