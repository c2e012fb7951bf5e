//! K11: using up what all share. The limit is hit inside; the host and a sibling do not notice.

use eyot::{ExecOptions, LogChunk, LogQuery, Outcome, ProcessId, RemoveOptions, StartOptions};
use futures_util::TryStreamExt;
use tokio::process::Command;

use crate::check::{Check, cases, ensure, ensure_eq, not_enforced, not_here, promptly, slow, until};
use crate::facts::{Facts, errno_name, note, tried_io};
use crate::lingering::{count_on_the_host, new_marker};
use crate::sys;
use crate::world::{Stage, World};

cases! {
    k11_a_bomb_of_processes_hits_the_limit_inside_and_nobody_else_notices(world);
    k11_a_bomb_of_threads_hits_the_limit_inside_and_nobody_else_notices(world);
    k11_a_root_that_changes_its_user_does_not_get_around_the_limit_of_processes(world);
    k11_a_fork_bomb_in_the_shell_ends_with_its_deadline_and_the_sandbox_works_on(world);
    k11_a_bomb_of_descriptors_hits_the_limit_inside_and_nobody_else_notices(world);
    k11_a_bomb_of_inotify_instances_leaves_some_for_the_host_and_a_sibling(world);
    k11_a_bomb_of_terminals_leaves_some_for_the_host_and_a_sibling(world);
    k11_a_sparse_file_of_100_gib_takes_no_room_and_goes_with_the_sandbox(stage);
    k11_a_directory_of_very_many_files_is_listed_removed_and_goes_with_the_sandbox(stage);
    k11_a_path_4000_deep_is_walked_removed_and_goes_with_the_sandbox(stage);
}

const PIDS: u64 = 64;

/// Takes as many of something as there are, or a `few`; says how many there were and what ended it.
/// Holds them until it is killed, unless they were few.
pub fn probe(arguments: &[String]) {
    let few = arguments.get(1).is_some_and(|word| word == "few");
    let most = if few { 3 } else { 1_000_000 };
    raise_own_limit();
    let kind = arguments.first().map(String::as_str).unwrap_or_default();
    let (count, errno) = match kind {
        "processes" => take(most, || sys::fork(|| if few { 0 } else { sys::pause() }).map(i64::from)),
        "threads" => take(most, || start_thread().map(|()| 0)),
        "descriptors" => take(most, || sys::call(libc::SYS_dup, &[0])),
        "inotify" => take(most, || sys::call(libc::SYS_inotify_init1, &[0])),
        "terminals" => take(most, || {
            let flags = (libc::O_RDWR | libc::O_NOCTTY) as u64;
            let arguments = [libc::AT_FDCWD as u64, sys::address(c"/dev/ptmx"), flags];
            sys::call(libc::SYS_openat, &arguments)
        }),
        _ => return,
    };
    note("count", count);
    note("ended", errno.map_or_else(|| "enough".to_owned(), errno_name));
    note("held", true);
    if !few {
        sys::pause();
    }
}

/// As root: takes as many processes as each of 64 users may have. The argument marks them.
pub fn hop_from_user_to_user(_arguments: &[String]) {
    for uid in 2_001..2_065 {
        let hopped = sys::fork(|| match sys::call(libc::SYS_setresuid, &[uid, uid, uid]) {
            Ok(_) => {
                take(1_000_000, || sys::fork(|| sys::pause()).map(i64::from));
                sys::pause()
            }
            Err(errno) => errno,
        });
        if let Err(errno) = hopped {
            note("ended", errno_name(errno));
            break;
        }
    }
    note("held", true);
    sys::pause();
}

pub(crate) fn take(most: u64, mut one: impl FnMut() -> Result<i64, i32>) -> (u64, Option<i32>) {
    for count in 0..most {
        if let Err(errno) = one() {
            return (count, Some(errno));
        }
    }
    (most, None)
}

fn start_thread() -> Result<(), i32> {
    let builder = std::thread::Builder::new().stack_size(64 << 10);
    match builder.spawn(|| sys::pause()) {
        Ok(_running) => Ok(()),
        Err(error) => Err(error.raw_os_error().unwrap_or(0)),
    }
}

pub(crate) fn raise_own_limit() {
    let mut limit = [0_u64; 2];
    let at = limit.as_mut_ptr() as u64;
    let nofile = u64::from(libc::RLIMIT_NOFILE);
    if sys::call(libc::SYS_getrlimit, &[nofile, at]).is_ok() {
        limit[0] = limit[1];
        if let Err(errno) = sys::call(libc::SYS_setrlimit, &[nofile, limit.as_ptr() as u64]) {
            note("raised", errno_name(errno));
        }
    }
}

/// Makes this many files in the folder that it is given.
pub fn make_many_files(arguments: &[String]) {
    let [folder, count] = arguments else { return };
    tried_io("folder", std::fs::create_dir_all(folder));
    let count: u64 = count.parse().unwrap_or(0);
    for number in 0..count {
        if let Err(error) = std::fs::File::create(format!("{folder}/{number}")) {
            note("failed", error);
            return;
        }
    }
    note("made", count);
}

/// Makes a path of this many folders below the one that it is in.
pub fn make_deep_path(arguments: &[String]) {
    let depth: u64 = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(0);
    for _ in 0..depth {
        if let Err(error) = std::fs::create_dir("d").and_then(|()| std::env::set_current_dir("d")) {
            note("failed", error);
            return;
        }
    }
    tried_io("file", std::fs::write("bottom", "the bottom of it all"));
    note("made", depth);
}

/// Sets a bomb off that holds what it took, and waits until there is no more to take.
async fn set_off(stage: &Stage, kind: &str) -> Check<(ProcessId, Facts)> {
    let line = format!("exec /attack/threats probe bomb {kind}");
    let process = stage.sandbox.start(line, StartOptions::default()).await?.id;
    Ok((process, until_it_holds(stage, process).await?))
}

/// Waits until a bomb holds what it took. Returns what it said.
pub(crate) async fn until_it_holds(stage: &Stage, process: ProcessId) -> Check<Facts> {
    // From its log: a call for a file takes a thread, and in a container the guest may get none any
    // more.
    let said = async || -> Check<String> {
        let chunks = stage.sandbox.logs(process, LogQuery::default()).await?.chunks;
        let chunks: Vec<LogChunk> = chunks.try_collect().await?;
        Ok(chunks.iter().map(|chunk| String::from_utf8_lossy(&chunk.data).into_owned()).collect())
    };
    until("the bomb", || async { Ok(said().await?.contains("held=true")) }).await?;
    Ok(Facts::parse(&said().await?))
}

/// Fails unless the host, and a sandbox beside this one, can still take a few, by this probe.
pub(crate) async fn others_have_some(world: &World, probe: &[&str]) -> Check {
    let sibling = world.stage().await?;
    let facts = sibling.probe(probe).await?;
    ensure!(facts.get("ended")? == "enough", "a sibling gets no more by {probe:?}: {facts:?}");
    sibling.still_works().await?;
    sibling.end().await?;
    let few = Command::new(std::env::current_exe()?).arg("probe").args(probe).kill_on_drop(true).output();
    let output = promptly("the host's own", few).await??;
    let facts = Facts::parse(&String::from_utf8_lossy(&output.stdout));
    ensure!(facts.get("ended")? == "enough", "the host gets no more by {probe:?}: {facts:?}");
    Ok(())
}

async fn bomb(world: &World, kind: &str, ended: &[&str], most: u64) -> Check {
    let stage = world.stage_of(world.spec_with_pids(PIDS)).await?;
    let (process, facts) = set_off(&stage, kind).await?;
    let others = others_have_some(world, &["bomb", kind, "few"]).await;
    promptly("the kill", stage.sandbox.kill(process, None)).await??;
    promptly("the end", stage.sandbox.wait(process)).await??;
    others?;
    ensure!(ended.contains(&facts.get("ended")?), "{kind}: {facts:?}");
    let count = facts.number("count")?;
    ensure!(count > 0 && count <= most, "{kind}: {count} is not in 1..={most}");
    stage.still_works().await?;
    stage.end().await
}

/// A container's limit counts the guest's own processes too, so some more are allowed.
fn most_processes(world: &World) -> u64 {
    const OF_THE_GUEST: u64 = 32;
    if world.is_native() { PIDS } else { PIDS + OF_THE_GUEST }
}

async fn k11_a_bomb_of_processes_hits_the_limit_inside_and_nobody_else_notices(
    world: std::sync::Arc<World>,
) -> Check {
    bomb(&world, "processes", &["EAGAIN"], most_processes(&world)).await
}

async fn k11_a_bomb_of_threads_hits_the_limit_inside_and_nobody_else_notices(
    world: std::sync::Arc<World>,
) -> Check {
    bomb(&world, "threads", &["EAGAIN"], most_processes(&world)).await
}

async fn k11_a_root_that_changes_its_user_does_not_get_around_the_limit_of_processes(
    world: std::sync::Arc<World>,
) -> Check {
    const OF_THE_GUEST: u64 = 320;
    world
        .need_native("root in a container lacks SETUID, and its limit counts processes of whichever user")?;
    let stage = world.stage_of(world.spec_with_pids(PIDS)).await?;
    let most = stage.output("cat /proc/sys/kernel/pid_max").await?;
    let of_the_host = std::fs::read_to_string("/proc/sys/kernel/pid_max")?;
    if !stage.has_root() || most == of_the_host.trim() {
        stage.end().await?;
        return not_here("there is no inner root, or this kernel counts no processes per namespace");
    }
    ensure!(most.parse::<u64>().is_ok_and(|most| most <= PIDS + OF_THE_GUEST), "there may be {most}");
    // Whoever reads files for the guest must be there before no process can be made any more.
    ensure!(!stage.sandbox.exists("/tmp/bomb").await?, "it is there already");
    let marker = new_marker();
    let line = format!("exec /attack/threats probe hop {marker} > /tmp/bomb");
    let options = StartOptions { user: Some("root".to_owned()), ..StartOptions::default() };
    let process = stage.sandbox.start(line, options).await?.id;
    until("the bomb", || async {
        Ok(stage.sandbox.read_text("/tmp/bomb").await.is_ok_and(|said| said.contains("held=true")))
    })
    .await?;
    let (others, count) =
        (others_have_some(&world, &["bomb", "processes", "few"]).await, count_on_the_host(&marker)? as u64);
    promptly("the kill", stage.sandbox.kill(process, None)).await??;
    promptly("the end", stage.sandbox.wait(process)).await??;
    others?;
    ensure!((PIDS..PIDS + OF_THE_GUEST).contains(&count), "there were {count} processes");
    stage.still_works().await?;
    stage.end().await
}

async fn k11_a_fork_bomb_in_the_shell_ends_with_its_deadline_and_the_sandbox_works_on(
    world: std::sync::Arc<World>,
) -> Check {
    let stage = world.stage_of(world.spec_with_pids(PIDS)).await?;
    let options = ExecOptions { timeout_ms: Some(2_000), ..ExecOptions::default() };
    let sandbox = stage.sandbox.clone();
    let bomb = tokio::spawn(async move {
        sandbox.exec("bomb() { bomb | bomb & }; bomb; while :; do bomb; sleep 0.05; done", options).await
    });
    while !bomb.is_finished() {
        // It has a result or a typed error; it does not hang, and the file calls go on as ever.
        match promptly("a command beside the bomb", stage.sh("echo alive")).await? {
            Ok(_) => {}
            Err(crate::check::Failure::Broken(said)) => {
                ensure!(said.contains("quota") || said.contains("unavailable"), "{said}")
            }
            Err(other) => return Err(other),
        }
        match promptly("a write beside the bomb", stage.sandbox.write("f", "x")).await? {
            // A container's limit counts the guest's threads too.
            Err(error) if !world.is_native() && error.kind() == eyot::ErrorKind::Quota => {}
            written => written?,
        }
    }
    let result = bomb.await.map_err(std::io::Error::other)??;
    ensure_eq!(result.outcome, Outcome::TimedOut);
    until("the end of the bomb", || async {
        Ok(stage.sh("echo alive").await.is_ok_and(|result| result.success()))
    })
    .await?;
    let left = stage.probe(&["processes"]).await?;
    ensure!(left.number("count")? < 16, "there are still processes of the bomb: {left:?}");
    stage.end().await
}

async fn k11_a_bomb_of_descriptors_hits_the_limit_inside_and_nobody_else_notices(
    world: std::sync::Arc<World>,
) -> Check {
    bomb(&world, "descriptors", &["EMFILE"], 1 << 20).await
}

async fn k11_a_bomb_of_inotify_instances_leaves_some_for_the_host_and_a_sibling(
    world: std::sync::Arc<World>,
) -> Check {
    if !world.is_native() {
        return not_enforced(
            "the containers of one engine share the kernel's count of each user's inotify instances",
        );
    }
    bomb(&world, "inotify", &["EMFILE"], 1 << 20).await
}

async fn k11_a_bomb_of_terminals_leaves_some_for_the_host_and_a_sibling(
    world: std::sync::Arc<World>,
) -> Check {
    if !world.is_native() {
        return not_enforced(
            "the containers of one engine share the kernel's count of terminals with each other and the host",
        );
    }
    bomb(&world, "terminals", &["EMFILE", "ENOSPC", "EIO", "errno28"], 1 << 20).await
}

async fn k11_a_sparse_file_of_100_gib_takes_no_room_and_goes_with_the_sandbox(stage: Stage) -> Check {
    stage.output("truncate -s 100G sparse").await?;
    ensure_eq!(stage.sandbox.stat("sparse").await?.size, Some(100 << 30));
    ensure_eq!(stage.output("du -k sparse | cut -f1").await?, "0");
    promptly("the remove", stage.sandbox.remove("sparse", RemoveOptions::default())).await??;
    stage.output("truncate -s 100G sparse").await?;
    Ok(())
}

async fn k11_a_directory_of_very_many_files_is_listed_removed_and_goes_with_the_sandbox(
    stage: Stage,
) -> Check {
    let count = if slow() { 1_000_000 } else { 20_000 };
    let made = stage.probe(&["many-files", "/workspace/first", &count.to_string()]).await?;
    made.is("made", &count.to_string())?;
    ensure_eq!(stage.sandbox.list("first").await?.len(), count);
    let recursive = RemoveOptions { recursive: true, ..RemoveOptions::default() };
    stage.sandbox.remove("first", recursive).await?;
    ensure!(!stage.sandbox.exists("first").await?, "it is still there");
    stage.probe(&["many-files", "/tmp/second", "20000"]).await?.is("made", "20000")
}

async fn k11_a_path_4000_deep_is_walked_removed_and_goes_with_the_sandbox(stage: Stage) -> Check {
    stage.probe(&["deep", "4000"]).await?.is("file", "ok")?;
    let glob = eyot::GlobOptions {
        pattern: "**/bottom".to_owned(),
        root: stage.sandbox.cwd().clone().into(),
        hidden: false,
        max_results: 10,
    };
    // Found or not (its path is longer than any path may be), it ends.
    if let Err(error) = promptly("the glob", stage.sandbox.glob(&glob)).await? {
        ensure!(error.kind() != eyot::ErrorKind::Internal, "{error}");
    }
    let recursive = RemoveOptions { recursive: true, ..RemoveOptions::default() };
    promptly("the remove", stage.sandbox.remove("d", recursive)).await??;
    ensure!(!stage.sandbox.exists("d").await?, "it is still there");
    stage.probe(&["deep", "4000"]).await?.is("file", "ok")
}
