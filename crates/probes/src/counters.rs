//! K18: what the kernel counts per user, or for the whole host. A sandbox uses it up with every
//! user that it has; the host, the maker of the sandbox and a sandbox beside it can still have
//! each, and the guest lives.

use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use eyot::{Enforcement, ErrorKind, ExecOptions, IdentityMap, Limits, SandboxSpec, StartOptions, UserCounts};
use tokio::sync::Mutex;

use crate::bombs::{others_have_some, until_it_holds};
use crate::check::{Check, Failure, cases, ensure, ensure_eq, not_enforced, not_here, promptly};
use crate::facts::{errno_name, note, tried};
use crate::sys;
use crate::world::{Stage, World};

cases! {
    k18_queued_signals_that_are_used_up_leave_some_for_the_host_and_a_sibling(world);
    k18_timers_that_are_used_up_leave_some_for_the_host_and_a_sibling(world);
    k18_inotify_instances_that_are_used_up_leave_some_for_the_host_and_a_sibling(world);
    k18_inotify_watches_that_are_used_up_leave_some_for_the_host_and_a_sibling(world);
    k18_message_queues_that_are_used_up_leave_some_for_the_host_and_a_sibling(world);
    k18_locked_memory_that_is_used_up_leaves_some_for_the_host_and_a_sibling(world);
    k18_pipe_pages_that_are_used_up_leave_some_for_the_host_and_a_sibling(world);
    k18_open_files_that_are_used_up_leave_the_host_most(world);
    k18_what_waits_in_sockets_leaves_the_host_most_memory_for_sockets(world);
    k18_what_system_v_ipc_keeps_leaves_the_guest_alive(world);
    k18_a_sync_inside_writes_nothing_of_the_hosts(world);
    k18_whose_counts_it_uses_is_told(world);
    k18_a_limit_that_was_lowered_can_not_be_raised_inside(stage);
}

/// The ids of the users that root inside becomes to take it, besides its own.
const USERS: std::ops::Range<u64> = 2_001..2_005;
/// A real-time signal: unlike others it is queued as often as it is sent.
const SIGNAL: i32 = 40;
const MIB: u64 = 1 << 20;
/// As many processes, each with all the files that it may have, have more pipes than a user may
/// have of full size.
const PIPE_HOLDERS: u64 = 4;
/// Held by a case that reads what the host counts of everybody: another one would count in it.
static HOST_COUNTERS: Mutex<()> = Mutex::const_new(());
/// The number that everybody else must still get.
const FEW: u64 = 3;

/// Takes all that there is of a kind, as every user that it can become, and holds it; or a `few`.
pub fn use_up(arguments: &[String]) {
    let kind = arguments.first().map(String::as_str).unwrap_or_default();
    if arguments.get(1).is_some_and(|word| word == "few") {
        let (_, errno) = take(kind, FEW);
        note("ended", errno.map_or_else(|| "enough".to_owned(), errno_name));
        if kind == "watches" {
            tried("cleared", std::fs::remove_dir_all(watched_folder()).map_err(|_| 0));
        }
        return;
    }
    crate::bombs::raise_own_limit();
    if sys::call(libc::SYS_geteuid, &[]) == Ok(0) {
        USERS.for_each(|uid| take_as(uid, kind));
    }
    let (count, errno) = take(kind, u64::MAX);
    note("count", count);
    note("ended", errno.map_or_else(|| "enough".to_owned(), errno_name));
    note("held", true);
    sys::pause();
}

/// A child takes it as this user, and holds it.
fn take_as(uid: u64, kind: &str) {
    let held = start_holder(|| match sys::call(libc::SYS_setresuid, &[uid, uid, uid]) {
        Ok(_) => note(format_args!("count_{uid}"), take(kind, u64::MAX).0),
        Err(errno) => note(format_args!("count_{uid}"), errno_name(errno)),
    });
    tried(format_args!("user_{uid}"), held);
}

/// Starts a child that takes what it gets, and holds it. Returns once it has all of it.
fn start_holder(takes: impl FnOnce()) -> Result<i64, i32> {
    let failed = |error: std::io::Error| error.raw_os_error().unwrap_or(0);
    let (mut done, mut theirs) = std::io::pipe().map_err(failed)?;
    let child = sys::fork(move || {
        takes();
        match theirs.write_all(b"!") {
            Ok(()) => sys::pause(),
            Err(_) => 1,
        }
    })?;
    std::io::Read::read(&mut done, &mut [0]).map_err(failed)?;
    Ok(child.into())
}

fn take(kind: &str, most: u64) -> (u64, Option<i32>) {
    match kind {
        "signals" => take_signals(most),
        "timers" => crate::bombs::take(most, make_timer),
        "inotify" => crate::bombs::take(most, || sys::call(libc::SYS_inotify_init1, &[0])),
        "watches" => take_watches(most),
        "queues" => take_queues(most),
        "locked" => crate::bombs::take(most, lock_memory),
        "pipes" if most > PIPE_HOLDERS => {
            let hold_all = || note("pipes", crate::bombs::take(u64::MAX, make_full_size_pipe).0);
            let (count, errno) = crate::bombs::take(PIPE_HOLDERS, || start_holder(hold_all));
            (count, errno.or(Some(libc::ENOSPC)))
        }
        "pipes" => crate::bombs::take(most, make_full_size_pipe),
        "files" => crate::bombs::take(most, || start_holder(open_all_files)),
        "sockets" => take_sockets(),
        _ => (0, Some(libc::EINVAL)),
    }
}

fn take_signals(most: u64) -> (u64, Option<i32>) {
    let blocked = 1_u64 << (SIGNAL - 1);
    let mask = [libc::SIG_BLOCK as u64, &raw const blocked as u64, 0, 8];
    if let Err(errno) = sys::call(libc::SYS_rt_sigprocmask, &mask) {
        return (0, Some(errno));
    }
    // `si_signo`, `si_errno`, `si_code` (SI_QUEUE); the rest is nothing.
    let mut info = [0_i32; 32];
    (info[0], info[2]) = (SIGNAL, -1);
    let own = std::process::id() as u64;
    let arguments = [own, SIGNAL as u64, info.as_ptr() as u64];
    crate::bombs::take(most, || sys::call(libc::SYS_rt_sigqueueinfo, &arguments))
}

fn make_timer() -> Result<i64, i32> {
    let mut timer = 0_i32;
    let monotonic = libc::CLOCK_MONOTONIC as u64;
    sys::call(libc::SYS_timer_create, &[monotonic, 0, &raw mut timer as u64])
}

fn watched_folder() -> String {
    format!("/dev/shm/watched-{}", std::process::id())
}

/// Each watch needs a file of its own.
fn take_watches(most: u64) -> (u64, Option<i32>) {
    let folder = watched_folder();
    if let Err(error) = std::fs::create_dir(&folder) {
        return (0, error.raw_os_error());
    }
    let instance = match sys::call(libc::SYS_inotify_init1, &[0]) {
        Ok(instance) => instance as u64,
        Err(errno) => return (0, Some(errno)),
    };
    let mut number = 0;
    crate::bombs::take(most, || {
        number += 1;
        let path = format!("{folder}/{number}");
        std::fs::File::create(&path).map_err(|error| error.raw_os_error().unwrap_or(0))?;
        let path = CString::new(path).unwrap_or_default();
        sys::call(libc::SYS_inotify_add_watch, &[instance, sys::address(&path), u64::from(libc::IN_MODIFY)])
    })
}

fn take_queues(most: u64) -> (u64, Option<i32>) {
    let mut number = 0;
    let flags = (libc::O_CREAT | libc::O_RDWR | libc::O_EXCL) as u64;
    // `mq_maxmsg` and `mq_msgsize`: about 11 KB.
    let attributes = [0_u64, 10, 1024, 0, 0, 0, 0, 0];
    crate::bombs::take(most, || {
        number += 1;
        let name = CString::new(format!("eyot-{}-{number}", std::process::id())).unwrap_or_default();
        let opened =
            sys::call(libc::SYS_mq_open, &[sys::address(&name), flags, 0o600, attributes.as_ptr() as u64]);
        // Unlinked it stays until it is closed, and the host keeps nothing of its few.
        opened.and_then(|_| sys::call(libc::SYS_mq_unlink, &[sys::address(&name)]))
    })
}

/// A segment of a quarter of a MiB, locked. It goes with its last process.
fn lock_memory() -> Result<i64, i32> {
    let id = sys::call(libc::SYS_shmget, &[libc::IPC_PRIVATE as u64, MIB / 4, 0o600])? as u64;
    let attached = sys::call(libc::SYS_shmat, &[id, 0, 0]);
    let removed = sys::call(libc::SYS_shmctl, &[id, libc::IPC_RMID as u64, 0]);
    attached.and(removed)?;
    sys::call(libc::SYS_shmctl, &[id, libc::SHM_LOCK as u64, 0])
}

/// Beyond what a user may have, pipes are smaller.
fn make_full_size_pipe() -> Result<i64, i32> {
    let mut ends = [0_i32; 2];
    sys::call(libc::SYS_pipe2, &[ends.as_mut_ptr() as u64, 0])?;
    match sys::call(libc::SYS_fcntl, &[ends[0] as u64, libc::F_GETPIPE_SZ as u64])? {
        65_536.. => Ok(0),
        _ => Err(libc::ENOSPC),
    }
}

fn open_all_files() {
    let open = [libc::AT_FDCWD as u64, sys::address(c"/dev/null"), libc::O_RDONLY as u64];
    note("files", crate::bombs::take(u64::MAX, || sys::call(libc::SYS_openat, &open)).0);
}

/// Fills the buffers of connections to itself, none of which reads.
fn take_sockets() -> (u64, Option<i32>) {
    const CONNECTIONS: u64 = 150;
    let failed = |error: std::io::Error| error.raw_os_error().unwrap_or(0);
    let mut held = Vec::new();
    let (count, errno) = crate::bombs::take(CONNECTIONS, || {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(200)).map_err(failed)?;
        stream.set_write_timeout(Some(Duration::from_millis(5))).map_err(failed)?;
        let (accepted, _) = listener.accept().map_err(failed)?;
        while stream.write(&[0; 65_536]).is_ok() {}
        held.push((stream, accepted));
        Ok(0)
    });
    // They stay open until this process ends.
    std::mem::forget(held);
    (count, errno.or(Some(libc::EAGAIN)))
}

/// Leaves what System V IPC keeps without a process: as much of each as there may be.
pub fn leave_ipc(_arguments: &[String]) {
    let private = libc::IPC_PRIVATE as u64;
    let taken = [
        (
            "segments",
            crate::bombs::take(u64::MAX, || {
                let id = sys::call(libc::SYS_shmget, &[private, MIB, 0o600])? as u64;
                let at = sys::call(libc::SYS_shmat, &[id, 0, 0])? as u64;
                // The kernel fills the pages, or says that it can't.
                let filled = sys::call(libc::SYS_getrandom, &[at, MIB, 0]);
                filled.and(sys::call(libc::SYS_shmdt, &[at]))
            }),
        ),
        ("semaphores", crate::bombs::take(u64::MAX, || sys::call(libc::SYS_semget, &[private, 250, 0o600]))),
        (
            "queues",
            crate::bombs::take(u64::MAX, || {
                let id = sys::call(libc::SYS_msgget, &[private, 0o600])? as u64;
                let message = [1_u64, 0];
                let send = || {
                    sys::call(libc::SYS_msgsnd, &[id, message.as_ptr() as u64, 1, libc::IPC_NOWAIT as u64])
                };
                crate::bombs::take(u64::MAX, send);
                Ok(0)
            }),
        ),
    ];
    for (name, (count, errno)) in taken {
        note(name, format_args!("{count} {}", errno.map_or_else(String::new, errno_name)));
    }
}

/// Tries to have more than the limits are, for good.
pub fn raise_limits(_arguments: &[String]) {
    let limits = [
        ("signals", libc::RLIMIT_SIGPENDING),
        ("queues", libc::RLIMIT_MSGQUEUE),
        ("locked", libc::RLIMIT_MEMLOCK),
        ("processes", libc::RLIMIT_NPROC),
        ("files", libc::RLIMIT_NOFILE),
    ];
    for (name, which) in limits {
        let mut limit = [0_u64; 2];
        let which = u64::from(which);
        if let Err(errno) = sys::call(libc::SYS_getrlimit, &[which, limit.as_mut_ptr() as u64]) {
            note(format_args!("raised_{name}"), errno_name(errno));
            continue;
        }
        if limit[1] == u64::MAX {
            continue;
        }
        let more = limit[1].saturating_add(1);
        let raised = [more, more];
        tried(
            format_args!("raised_{name}"),
            sys::call(libc::SYS_setrlimit, &[which, raised.as_ptr() as u64]),
        );
        let unlimited = [u64::MAX; 2];
        let unlimited = [0, which, unlimited.as_ptr() as u64, 0];
        tried(format_args!("raised_{name}_without_end"), sys::call(libc::SYS_prlimit64, &unlimited));
    }
}

/// Everybody inside uses a kind up, one after the other; meanwhile others still have some.
async fn uses_up(world: &World, kind: &str) -> Check {
    if !world.is_native() {
        return not_enforced("the containers of one engine share the kernel's counts of each user");
    }
    let stage = world.stage().await?;
    for user in stage.everybody() {
        let line = format!("exec /attack/threats probe use-up {kind}");
        let options = StartOptions { user: stage.options_of(user).user, ..StartOptions::default() };
        let process = stage.sandbox.start(line, options).await?.id;
        let facts = until_it_holds(&stage, process).await?;
        let others = others_have_some(world, &["use-up", kind, "few"]).await;
        promptly("the kill", stage.sandbox.kill(process, None)).await??;
        promptly("the end", stage.sandbox.wait(process)).await??;
        others?;
        ensure!(facts.get("ended")? != "enough", "{user} has no end of {kind}: {facts:?}");
        stage.still_works().await?;
    }
    stage.end().await
}

async fn k18_queued_signals_that_are_used_up_leave_some_for_the_host_and_a_sibling(
    world: Arc<World>,
) -> Check {
    uses_up(&world, "signals").await
}

async fn k18_timers_that_are_used_up_leave_some_for_the_host_and_a_sibling(world: Arc<World>) -> Check {
    uses_up(&world, "timers").await
}

async fn k18_inotify_instances_that_are_used_up_leave_some_for_the_host_and_a_sibling(
    world: Arc<World>,
) -> Check {
    uses_up(&world, "inotify").await
}

async fn k18_inotify_watches_that_are_used_up_leave_some_for_the_host_and_a_sibling(
    world: Arc<World>,
) -> Check {
    uses_up(&world, "watches").await
}

async fn k18_message_queues_that_are_used_up_leave_some_for_the_host_and_a_sibling(
    world: Arc<World>,
) -> Check {
    uses_up(&world, "queues").await
}

async fn k18_locked_memory_that_is_used_up_leaves_some_for_the_host_and_a_sibling(
    world: Arc<World>,
) -> Check {
    uses_up(&world, "locked").await
}

async fn k18_pipe_pages_that_are_used_up_leave_some_for_the_host_and_a_sibling(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let identity = stage.sandbox.isolation().identity;
    stage.end().await?;
    if world.is_native() && identity == Some(IdentityMap::Single) {
        return not_enforced("the pipes of an ordinary user's sandboxes are counted as the user's own");
    }
    uses_up(&world, "pipes").await
}

/// Has root inside (the user where there is none) use a kind up, and tells how much more of it the
/// host then counts.
async fn counted_by_the_host(stage: &Stage, kind: &str, count: impl Fn() -> Check<u64>) -> Check<u64> {
    let _alone = HOST_COUNTERS.lock().await;
    let before = count()?;
    let user = if stage.has_root() { "root" } else { "user" };
    let line = format!("exec /attack/threats probe use-up {kind}");
    let options = StartOptions { user: stage.options_of(user).user, ..StartOptions::default() };
    let process = stage.sandbox.start(line, options).await?.id;
    let facts = until_it_holds(stage, process).await?;
    let after = count()?;
    match promptly("the kill", stage.sandbox.kill(process, None)).await? {
        // A million files take their time to close on a busy host. The end is waited for all the same.
        Err(error) if error.kind() == ErrorKind::Timeout => {}
        killed => killed?,
    }
    promptly("the end", stage.sandbox.wait(process)).await??;
    ensure!(facts.get("ended")? != "enough", "{user} has no end of {kind}: {facts:?}");
    ensure!(after > before, "the host counts no more {kind} than before: {facts:?}");
    stage.still_works().await?;
    Ok(after - before)
}

fn first_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

fn second_word(text: &str) -> Option<&str> {
    text.split_whitespace().nth(1)
}

fn pages_of_tcp(text: &str) -> Option<&str> {
    text.lines().find(|line| line.starts_with("TCP:"))?.split_whitespace().last()
}

/// The number at this place of a file that the kernel writes for the host.
fn number_in(path: &str, place: fn(&str) -> Option<&str>) -> Check<u64> {
    let text = std::fs::read_to_string(path)?;
    let number = place(&text).and_then(|word| word.parse().ok());
    number.ok_or_else(|| Failure::Broken(format!("there is no number in {path}: {text}")))
}

async fn k18_open_files_that_are_used_up_leave_the_host_most(world: Arc<World>) -> Check {
    const AS_MANY_AS_MEMORY: u64 = 1 << 32;
    if !world.is_native() {
        return not_enforced("a container's processes may open as many files as the engine lets each");
    }
    let most = number_in("/proc/sys/fs/file-max", first_word)?;
    if most > AS_MANY_AS_MEMORY {
        return not_here("this host has a file for everybody as long as there is memory");
    }
    let stage = world.stage().await?;
    let open = || number_in("/proc/sys/fs/file-nr", first_word);
    let taken = counted_by_the_host(&stage, "files", open).await?;
    ensure!(taken <= most / 2, "{taken} of the host's {most} files were open inside");
    stage.end().await
}

async fn k18_what_waits_in_sockets_leaves_the_host_most_memory_for_sockets(world: Arc<World>) -> Check {
    const PAGE: u64 = 4096;
    let limits = Limits { memory_mib: Some(256), ..Limits::default() };
    let stage = world.stage_of(SandboxSpec { limits, ..world.spec() }).await?;
    if !stage.is_native() || stage.sandbox.isolation().limits.memory != Enforcement::Cgroup {
        stage.end().await?;
        return not_enforced("nothing limits the memory here");
    }
    let of_the_host = number_in("/proc/sys/net/ipv4/tcp_mem", second_word)? * PAGE;
    let waiting = || Ok(number_in("/proc/net/sockstat", pages_of_tcp)? * PAGE);
    let taken = counted_by_the_host(&stage, "sockets", waiting).await?;
    ensure!(taken <= of_the_host / 4 && taken <= 256 * MIB, "{taken} of {of_the_host} bytes wait inside");
    stage.end().await
}

async fn k18_what_system_v_ipc_keeps_leaves_the_guest_alive(world: Arc<World>) -> Check {
    let limits = Limits { memory_mib: Some(64), ..Limits::default() };
    let stage = world.stage_of(SandboxSpec { limits, ..world.spec() }).await?;
    if stage.sandbox.isolation().limits.memory != Enforcement::Cgroup {
        stage.end().await?;
        return not_here("nothing limits the memory here");
    }
    let may_hold = stage.output("cat /proc/sys/kernel/shmall").await?.parse::<u64>();
    let is_bounded = may_hold.is_ok_and(|pages| pages <= (64 * MIB) / 4096);
    // The guest of an ordinary user is who made the objects, and so can remove them.
    if !is_bounded && stage.sandbox.isolation().identity != Some(IdentityMap::Single) {
        stage.end().await?;
        return not_enforced("System V IPC is limited in a range of ids from Linux 6.9 on");
    }
    for user in stage.everybody() {
        // It may be killed for want of memory: what it left stays.
        stage.sandbox.exec(Stage::attack(&["leave-ipc"]), stage.options_of(user)).await?;
        let files = "head -c 1G /dev/zero > /dev/shm/full; head -c 1G /dev/zero > /run/full; :";
        stage.sandbox.exec(files, ExecOptions::default()).await?;
        stage.still_works().await?;
    }
    let kept = stage.output("tail -n +2 /proc/sysvipc/shm | wc -l").await?;
    ensure!(!is_bounded || kept.trim() != "0", "nothing was left behind");
    stage.end().await
}

/// The pages of a file that are not on the disk yet.
fn dirty_pages(file: &File) -> Result<u64, i32> {
    const SYS_CACHESTAT: i64 = 451;
    let (whole, mut found) = ([0_u64; 2], [0_u64; 5]);
    let (whole, answer) = (whole.as_ptr() as u64, found.as_mut_ptr() as u64);
    sys::call(SYS_CACHESTAT, &[file.as_raw_fd() as u64, whole, answer, 0])?;
    Ok(found[1] + found[2])
}

/// The kernel would write what all programs of the host have changed, and they would wait for it.
async fn k18_a_sync_inside_writes_nothing_of_the_hosts(world: Arc<World>) -> Check {
    // Something else may have it written at any time.
    const TRIES: usize = 5;
    world.need_native("an engine lets a container have everything written")?;
    let stage = world.stage().await?;
    for _ in 0..TRIES {
        let mut file = tempfile::tempfile_in(world.state())?;
        file.write_all(&vec![1; MIB as usize])?;
        if dirty_pages(&file).unwrap_or(0) == 0 {
            stage.end().await?;
            return not_here("this kernel does not tell what it has to write to this disk");
        }
        stage.output("sync").await?;
        if dirty_pages(&file).unwrap_or(0) > 0 {
            return stage.end().await;
        }
    }
    Err(Failure::Broken("a sync inside has a file of the host written".to_owned()))
}

async fn k18_whose_counts_it_uses_is_told(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let isolation = stage.sandbox.isolation();
    let own = world.is_native() && isolation.identity == Some(IdentityMap::Range);
    let wanted = if own || !isolation.shares_host_kernel { UserCounts::Own } else { UserCounts::Shared };
    ensure_eq!(isolation.user_counts, Some(wanted));
    stage.end().await
}

async fn k18_a_limit_that_was_lowered_can_not_be_raised_inside(stage: Stage) -> Check {
    for user in stage.everybody() {
        stage.probe_as(user, &["raise-limits"]).await?.each("raised_", &["EPERM"])?;
    }
    Ok(())
}
