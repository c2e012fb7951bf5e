//! F1 and F6 for watches: places that are swapped for links, and trees that change all the time.

use std::path::PathBuf;

use eyot::{StartOptions, WatchEvent, WatchEventKind, WatchOptions};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use crate::check::{Check, Failure, cases, ensure, ensure_eq, not_here, promptly, slow, until};
use crate::links::start_swapping;
use crate::world::Stage;

cases! {
    f01_a_folder_that_is_swapped_while_it_is_watched_tells_nothing_of_where_the_link_leads(stage);
    f01_a_watch_through_proc_or_beyond_the_workspace_is_refused(stage);
    f06_a_tree_that_changes_all_the_time_is_watched_in_bounded_memory_by_readers_that_never_read(stage);
    f06_watches_that_are_dropped_leave_no_descriptor_in_the_guest(stage);
    f06_a_workload_that_takes_all_inotify_instances_makes_a_watch_fail_with_a_reason(stage);
}

type Events = BoxStream<'static, eyot::Result<WatchEvent>>;

fn mentions(event: &WatchEvent, word: &str) -> bool {
    let from = matches!(&event.kind, WatchEventKind::Renamed { from, .. } if from.contains(word));
    from || event.path.contains(word)
}

/// Reads events until none comes for a moment, at most so many.
async fn read_some(events: &mut Events, most: usize) -> Vec<WatchEvent> {
    let mut read = Vec::new();
    let moment = std::time::Duration::from_millis(300);
    while read.len() < most {
        match tokio::time::timeout(moment, events.next()).await {
            Ok(Some(Ok(event))) => read.push(event),
            Ok(_) | Err(_) => break,
        }
    }
    read
}

/// The rounds of the race between a watch and the swap.
fn rounds() -> usize {
    if slow() { 60 } else { 20 }
}

async fn f01_a_folder_that_is_swapped_while_it_is_watched_tells_nothing_of_where_the_link_leads(
    stage: Stage,
) -> Check {
    stage.output("mkdir -p /tmp/out/deep; touch /tmp/out/inner").await?;
    let swapping = start_swapping(&stage, "/workspace/folder", "/tmp/out").await?;
    let line = "while :; do touch /tmp/out/secret /tmp/out/deep/secret; rm /tmp/out/secret; done";
    let writing = stage.sandbox.start(line, StartOptions::default()).await?.id;
    let workspace = stage.sandbox.workspace();
    let mut whole = promptly("a watch", workspace.watch(".", WatchOptions::default())).await??;
    let (mut told, rounds) = (0, rounds());
    for round in 0..rounds {
        // Met while it is a folder it is watched, met while it is a link it is refused.
        let mut events = match promptly("a watch", workspace.watch("folder", WatchOptions::default())).await?
        {
            Ok(mut events) => read_some(&mut events, 50).await,
            Err(error) => {
                ensure!(error.kind() != eyot::ErrorKind::Internal, "round {round}: {error}");
                Vec::new()
            }
        };
        events.extend(read_some(&mut whole, 200).await);
        told += events.len();
        if let Some(leak) = events.iter().find(|event| mentions(event, "secret") || mentions(event, "deep")) {
            return Err(Failure::Broken(format!("round {round}: {leak:?}")));
        }
    }
    ensure!(told > rounds, "only {told} events were told");
    for process in [swapping, writing] {
        stage.sandbox.kill(process, None).await?;
    }
    stage.still_works().await
}

async fn f01_a_watch_through_proc_or_beyond_the_workspace_is_refused(stage: Stage) -> Check {
    stage
        .output("ln -s /proc/1/root/etc etc; ln -s /proc/1/cwd cwd; ln -s /proc/self/fd fd; ln -s / root")
        .await?;
    let workspace = stage.sandbox.workspace();
    for link in ["etc", "cwd", "fd", "root", "root/etc"] {
        let refused = promptly(link, workspace.watch(link, WatchOptions::default())).await?;
        let kind = refused.map(drop).map_err(|error| error.kind());
        ensure_eq!((link, kind), (link, Err(eyot::ErrorKind::Permission)));
    }
    // Without a workspace around them these are the sandbox's own, and do no harm.
    for place in ["/proc", "/proc/self/fd", "/proc/1/root", "/sys", "/dev"] {
        let options = WatchOptions { recursive: true, max_directories: 100 };
        if let Ok(mut events) = promptly(place, stage.sandbox.watch(place, options)).await? {
            drop(read_some(&mut events, 10).await);
        }
        stage.still_works().await?;
    }
    Ok(())
}

async fn f06_a_tree_that_changes_all_the_time_is_watched_in_bounded_memory_by_readers_that_never_read(
    stage: Stage,
) -> Check {
    let guest = guest_of(&stage).await?;
    let before = memory_kib(&guest)?;
    let mut unread = Vec::new();
    for _ in 0..4 {
        let watch = stage.sandbox.watch("/workspace", WatchOptions::default());
        unread.push(promptly("a watch", watch).await??);
    }
    let name = "n".repeat(200);
    let line = format!(
        "for i in $(seq 1 15); do
            mkdir -p t/$i; mkdir t/$i/{name}{{1..40}}; touch t/$i/{name}{{1..40}}/f; mv t/$i u; rm -r u
            touch {name}{{1..400}}; rm {name}*
        done"
    );
    promptly("the churn", stage.output(&line)).await??;
    stage.still_works().await?;
    let grown = memory_kib(&guest)?.saturating_sub(before);
    ensure!(grown < 48 << 10, "the guest's memory grew by {grown} KiB");
    for events in &mut unread {
        let overflowed = async {
            while let Some(event) = events.next().await {
                if event?.kind == WatchEventKind::Overflow {
                    return Ok(true);
                }
            }
            Ok::<_, eyot::Error>(false)
        };
        ensure!(promptly("the overflow", overflowed).await??, "a watch ended without a word");
    }
    drop(unread);
    stage.still_works().await
}

async fn f06_watches_that_are_dropped_leave_no_descriptor_in_the_guest(stage: Stage) -> Check {
    let guest = guest_of(&stage).await?;
    let Ok(before) = descriptors(&guest) else {
        return not_here("only root may look at the guest's descriptors");
    };
    for round in 0..40 {
        let mut events = promptly("a watch", watch_when_there_is_room(&stage)).await??;
        if round % 2 == 0 {
            stage.output(&format!("mkdir d{round}")).await?;
            promptly("an event", events.next()).await?;
        }
        drop(events);
        // One that is refused leaves nothing either.
        ensure!(
            stage.sandbox.watch("/workspace/none", WatchOptions::default()).await.is_err(),
            "it is not there"
        );
    }
    until("the end of all watches", || async { Ok(descriptors(&guest)? <= before) }).await?;
    ensure_eq!(inotify_instances(&guest)?, 0);
    Ok(())
}

/// A watch that is dropped ends soon after, not at once.
async fn watch_when_there_is_room(
    stage: &Stage,
) -> eyot::Result<BoxStream<'static, eyot::Result<eyot::WatchEvent>>> {
    loop {
        match stage.sandbox.watch("/workspace", WatchOptions::default()).await {
            Err(error) if error.kind() == eyot::ErrorKind::Quota => tokio::task::yield_now().await,
            watched => return watched,
        }
    }
}

async fn f06_a_workload_that_takes_all_inotify_instances_makes_a_watch_fail_with_a_reason(
    stage: Stage,
) -> Check {
    let line = "exec /attack/threats probe bomb inotify > /workspace/bomb";
    let bomb = stage.sandbox.start(line, StartOptions::default()).await?.id;
    let said = async || stage.sandbox.read_text("bomb").await.unwrap_or_default();
    until("the bomb", || async { Ok(said().await.contains("held=true")) }).await?;
    match promptly("a watch", stage.sandbox.watch("/workspace", WatchOptions::default())).await? {
        // The guest may be another user than the workload.
        Ok(mut events) => {
            stage.output("mkdir seen").await?;
            ensure!(promptly("an event", events.next()).await?.is_some(), "the watch ended");
        }
        Err(error) => {
            ensure_eq!(error.kind(), eyot::ErrorKind::Quota);
            ensure!(error.to_string().contains("inotify"), "{error}");
        }
    }
    stage.sandbox.kill(bomb, None).await?;
    promptly("the end", stage.sandbox.wait(bomb)).await??;
    let mut events =
        promptly("a watch", stage.sandbox.watch("/workspace", WatchOptions::default())).await??;
    stage.output("mkdir later").await?;
    ensure!(promptly("an event", events.next()).await?.is_some(), "the watch ended");
    Ok(())
}

/// The guest as the host sees it: the process that is the first of the sandbox's namespace.
async fn guest_of(stage: &Stage) -> Check<PathBuf> {
    let namespace = stage.output("readlink /proc/self/ns/pid").await?;
    for entry in std::fs::read_dir("/proc")? {
        let process = entry?.path();
        let is_in =
            std::fs::read_link(process.join("ns/pid")).is_ok_and(|link| link.to_string_lossy() == namespace);
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let is_first = status.lines().any(|line| line.starts_with("NSpid:") && line.ends_with("\t1"));
        if is_in && is_first {
            return Ok(process);
        }
    }
    not_here("the guest's namespace can't be seen from the host by this user")
}

fn memory_kib(guest: &std::path::Path) -> Check<u64> {
    let status = std::fs::read_to_string(guest.join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.ok_or_else(|| Failure::Broken("there is no VmRSS".to_owned()))
}

fn descriptors(guest: &std::path::Path) -> Check<usize> {
    Ok(std::fs::read_dir(guest.join("fd"))?.count())
}

fn inotify_instances(guest: &std::path::Path) -> Check<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(guest.join("fd"))? {
        let target = std::fs::read_link(entry?.path()).unwrap_or_default();
        count += usize::from(target.to_string_lossy().contains("inotify"));
    }
    Ok(count)
}
