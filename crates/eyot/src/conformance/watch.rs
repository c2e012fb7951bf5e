//! Watching: what happens is told, in its order, by whole paths, and what could not be told is said to be missing.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::Fixture;
use super::check::{
    Check, Disposable, Failure, cases, ensure, ensure_eq, ensure_fails, is_gone, output, promptly, sh, until,
};
use crate::error::{ErrorKind, Result};
use crate::files::RemoveOptions;
use crate::sandbox::Sandbox;
use crate::watch::{WatchEvent, WatchEventKind, WatchOptions};

cases! {
    what_happens_to_files_is_told_in_its_order_by_whole_paths(workspace) needs [Watch, Shell];
    what_happens_right_after_a_watch_began_is_told(workspace) needs [Watch];
    an_atomic_write_ends_with_the_file_under_its_name(workspace) needs [Watch];
    directories_made_later_are_watched_and_nothing_in_them_is_missed(workspace) needs [Watch, Shell];
    without_recursion_only_the_directory_itself_is_watched(workspace) needs [Watch, Shell];
    a_rename_inside_is_one_event_and_one_out_or_in_is_half_of_it(workspace) needs [Watch, Shell];
    a_renamed_directory_stays_watched_under_its_new_name(workspace) needs [Watch, Shell];
    a_directory_that_was_moved_out_is_not_watched_any_more(workspace) needs [Watch, Shell];
    a_watched_file_is_told_about_by_its_own_path_until_it_is_gone(workspace) needs [Watch, Shell];
    the_end_of_the_watched_place_is_the_last_event(workspace) needs [Watch, Shell];
    watching_what_is_missing_is_not_found(workspace) needs [Watch];
    a_limit_of_directories_that_can_not_be_is_invalid(workspace) needs [Watch];
    more_directories_than_a_watch_may_have_are_refused_with_the_number(workspace) needs [Watch, Shell];
    one_directory_more_than_a_watch_may_have_ends_it_with_an_error(workspace) needs [Watch, Shell];
    several_watches_of_one_place_are_told_everything_each(workspace) needs [Watch];
    too_many_watches_are_refused_and_dropped_ones_give_their_place_back(workspace) needs [Watch, Shell];
    a_reader_that_does_not_read_holds_up_nobody_and_learns_that_something_was_lost(workspace)
        needs [Watch, Shell];
    f3_odd_names_are_told_as_they_are(workspace) needs [Watch, Shell];
    f1_a_workspace_is_watched_by_relative_paths(workspace) needs [Watch, Beneath];
    f1_a_watch_does_not_begin_behind_a_link_out_of_the_workspace(workspace)
        needs [Watch, Beneath, Shell, Symlinks];
    f1_a_watch_follows_no_link_that_it_meets(workspace) needs [Watch, Shell, Symlinks];
    f1_a_place_that_becomes_a_link_out_of_the_workspace_is_gone(workspace)
        needs [Watch, Beneath, Shell, Symlinks];
    f6_a_tree_that_changes_all_the_time_is_watched_and_its_last_state_is_told(workspace) needs [Watch, Shell];
    a_watch_ends_with_its_sandbox(fixture) needs [Watch];
    a_watch_that_is_told_nothing_keeps_no_sandbox_from_being_idle(fixture) needs [Watch, Deadlines];
}

type Events = BoxStream<'static, Result<WatchEvent>>;

const FLAT: WatchOptions = WatchOptions { recursive: false, max_directories: 10_000 };
const DEEP: WatchOptions = WatchOptions { recursive: true, max_directories: 10_000 };

async fn watch(sandbox: &Sandbox, path: &str, options: WatchOptions) -> Check<Events> {
    Ok(promptly("a watch", sandbox.watch(path, options)).await??)
}

async fn next(events: &mut Events) -> Check<Option<WatchEvent>> {
    Ok(promptly("an event", events.next()).await?.transpose()?)
}

/// An event as a line: `created a/`, `renamed a b`; paths below the working directory by what follows it.
fn line(event: &WatchEvent, prefix: &str) -> String {
    let shown = |path: &str| path.strip_prefix(prefix).unwrap_or(path).to_owned();
    let path = format!("{}{}", shown(&event.path), if event.is_directory { "/" } else { "" });
    match &event.kind {
        WatchEventKind::Created => format!("created {path}"),
        WatchEventKind::Modified => format!("modified {path}"),
        WatchEventKind::Removed => format!("removed {path}"),
        WatchEventKind::Renamed { from, .. } => format!("renamed {} {path}", shown(from)),
        WatchEventKind::Overflow => "overflow".to_owned(),
    }
}

/// Collects what was told until `last` was made by this, modifications left out: how many there are
/// is the system's business.
async fn told(sandbox: &Sandbox, events: &mut Events, last: &str) -> Check<Vec<String>> {
    output(sandbox, &format!("mkdir {last}")).await?;
    let prefix = format!("{}/", sandbox.cwd());
    let mut lines = Vec::new();
    let end = format!("created {last}/");
    loop {
        let Some(event) = next(events).await? else {
            return Err(Failure::Broken(format!("the watch ended after {lines:?}")));
        };
        match line(&event, &prefix) {
            line if line == end => return Ok(lines),
            line if line.starts_with("modified") => {}
            line => lines.push(line),
        }
    }
}

async fn what_happens_to_files_is_told_in_its_order_by_whole_paths(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir d; echo old > d/old").await?;
    let mut events = watch(&sandbox, "d", FLAT).await?;
    output(&sandbox, "cd d && echo more >> old && touch new && mv old older && rm older").await?;
    let mut found = Vec::new();
    while found.last().is_none_or(|line| line != "removed older") {
        let Some(event) = next(&mut events).await? else { break };
        ensure!(!event.is_directory, "{event:?} is about no directory");
        let line = line(&event, &format!("{}/d/", sandbox.cwd()));
        if found.last() != Some(&line) {
            found.push(line);
        }
    }
    found.retain(|line| line != "modified new");
    ensure_eq!(found, ["modified old", "created new", "renamed old older", "removed older"]);
    Ok(())
}

async fn what_happens_right_after_a_watch_began_is_told(sandbox: Sandbox) -> Check {
    for round in 0..10 {
        let mut events = watch(&sandbox, ".", DEEP).await?;
        sandbox.create_dir(&format!("d{round}"), Default::default()).await?;
        let Some(event) = next(&mut events).await? else { break };
        ensure_eq!((event.path, event.is_directory), (format!("{}/d{round}", sandbox.cwd()), true));
    }
    Ok(())
}

async fn an_atomic_write_ends_with_the_file_under_its_name(sandbox: Sandbox) -> Check {
    sandbox.write("f", "old").await?;
    let mut events = watch(&sandbox, ".", FLAT).await?;
    sandbox.write("f", "new").await?;
    let path = format!("{}/f", sandbox.cwd());
    loop {
        let Some(event) = next(&mut events).await? else { break };
        ensure!(event.kind != WatchEventKind::Removed, "{event:?}: the file was never gone");
        if event.path == path {
            break;
        }
    }
    ensure_eq!(sandbox.read_text("f").await?, "new");
    Ok(())
}

async fn directories_made_later_are_watched_and_nothing_in_them_is_missed(sandbox: Sandbox) -> Check {
    let mut events = watch(&sandbox, ".", DEEP).await?;
    let line =
        "for i in 1 2 3 4 5 6 7 8 9; do mkdir -p a$i/b/c; touch a$i/b/c/f a$i/g; done; touch a1/b/c/late";
    output(&sandbox, line).await?;
    let found = told(&sandbox, &mut events, "last").await?;
    for number in 1..10 {
        for path in ["/", "/b/", "/b/c/", "/b/c/f", "/g"] {
            let line = format!("created a{number}{path}");
            ensure!(found.contains(&line), "`{line}` is missing in {found:?}");
        }
    }
    ensure!(found.contains(&"created a1/b/c/late".to_owned()), "{found:?}");
    Ok(())
}

async fn without_recursion_only_the_directory_itself_is_watched(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir d").await?;
    let mut events = watch(&sandbox, ".", FLAT).await?;
    output(&sandbox, "touch d/f; mkdir e; touch e/f g").await?;
    ensure_eq!(told(&sandbox, &mut events, "last").await?, ["created e/", "created g"]);
    Ok(())
}

async fn a_rename_inside_is_one_event_and_one_out_or_in_is_half_of_it(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir in in/d; touch in/a in/b; mkdir out; touch out/c").await?;
    let mut events = watch(&sandbox, "in", DEEP).await?;
    output(&sandbox, "mv in/a in/d/x; mv in/b out; mv out/c in; mv -T out/b in/c").await?;
    let mut found = told(&sandbox, &mut events, "in/last").await?;
    // The kernel makes one of two equal events in a row, where nobody has read the first yet.
    found.dedup();
    ensure_eq!(found, ["renamed in/a in/d/x", "removed in/b", "created in/c"]);
    Ok(())
}

async fn a_renamed_directory_stays_watched_under_its_new_name(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir -p a/b c").await?;
    let mut events = watch(&sandbox, ".", DEEP).await?;
    output(&sandbox, "mv a c/d; touch c/d/b/f; mv c e; touch e/d/b/g").await?;
    let found = told(&sandbox, &mut events, "last").await?;
    ensure_eq!(found, ["renamed a c/d/", "created c/d/b/f", "renamed c e/", "created e/d/b/g"]);
    Ok(())
}

async fn a_directory_that_was_moved_out_is_not_watched_any_more(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir -p in/d/e out").await?;
    let mut events = watch(&sandbox, "in", DEEP).await?;
    output(&sandbox, "mv in/d out; touch out/d/secret out/d/e/secret; mkdir in/d; touch in/d/f").await?;
    let found = told(&sandbox, &mut events, "in/last").await?;
    ensure_eq!(found, ["removed in/d/", "created in/d/", "created in/d/f"]);
    Ok(())
}

async fn a_watched_file_is_told_about_by_its_own_path_until_it_is_gone(sandbox: Sandbox) -> Check {
    output(&sandbox, "echo x > f; echo y > other").await?;
    let mut events = watch(&sandbox, "f", DEEP).await?;
    let path = format!("{}/f", sandbox.cwd());
    for line in ["echo more >> f", "echo z > other; echo longer >> f", "mv other f"] {
        output(&sandbox, line).await?;
        let Some(event) = next(&mut events).await? else { break };
        ensure_eq!((&event.kind, &event.path, event.is_directory), (&WatchEventKind::Modified, &path, false));
    }
    output(&sandbox, "rm f").await?;
    let mut last = None;
    while let Some(event) = next(&mut events).await? {
        ensure_eq!(event.path, path);
        last = Some(event.kind);
    }
    ensure_eq!(last, Some(WatchEventKind::Removed));
    Ok(())
}

async fn the_end_of_the_watched_place_is_the_last_event(sandbox: Sandbox) -> Check {
    for line in
        ["rm -r d/p", "mv d/p q; rm -r q", "mv d/p q; mkdir d/p; touch d/p/f; rm -r q", "cd d/p; rm -r ../p"]
    {
        output(&sandbox, "rm -rf d; mkdir -p d/p; touch d/p/f").await?;
        let mut events = watch(&sandbox, "d/p", DEEP).await?;
        output(&sandbox, line).await?;
        let mut last = None;
        while let Some(event) = next(&mut events).await? {
            last = Some(event);
        }
        let path = format!("{}/d/p", sandbox.cwd());
        let last = last.map(|last| (last.kind, last.path, last.is_directory));
        ensure!(last == Some((WatchEventKind::Removed, path, true)), "after `{line}` the last is {last:?}");
    }
    Ok(())
}

async fn watching_what_is_missing_is_not_found(sandbox: Sandbox) -> Check {
    sandbox.write("f", "").await?;
    ensure_fails!(sandbox.watch("missing", DEEP).await.map(drop), NotFound);
    ensure_fails!(sandbox.watch("missing/deeper", DEEP).await.map(drop), NotFound);
    ensure_fails!(sandbox.watch("f/below", DEEP).await.map(drop), NotDirectory | NotFound);
    ensure_fails!(sandbox.watch("", DEEP).await.map(drop), Invalid);
    Ok(())
}

async fn a_limit_of_directories_that_can_not_be_is_invalid(sandbox: Sandbox) -> Check {
    for max_directories in [0, crate::MAX_WATCHED_DIRECTORIES + 1, u32::MAX] {
        let options = WatchOptions { recursive: true, max_directories };
        ensure_fails!(sandbox.watch(".", options).await.map(drop), Invalid);
    }
    Ok(())
}

async fn more_directories_than_a_watch_may_have_are_refused_with_the_number(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir -p t/a/b t/c").await?;
    let limited = |max_directories| WatchOptions { recursive: true, max_directories };
    match sandbox.watch("t", limited(3)).await {
        Ok(_) => ensure!(false, "four directories are watched where three may be"),
        Err(error) => ensure!(
            error.kind() == ErrorKind::Quota && error.to_string().contains('3'),
            "{}: {error}",
            error.kind()
        ),
    }
    drop(watch(&sandbox, "t", limited(4)).await?);
    watch(&sandbox, "t", WatchOptions { recursive: false, max_directories: 1 }).await.map(drop)
}

async fn one_directory_more_than_a_watch_may_have_ends_it_with_an_error(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir -p t/a").await?;
    let mut events = watch(&sandbox, "t", WatchOptions { recursive: true, max_directories: 2 }).await?;
    output(&sandbox, "mkdir t/b").await?;
    while let Some(event) = promptly("the end", events.next()).await? {
        match event {
            Ok(event) => ensure!(event.kind == WatchEventKind::Created, "{event:?}"),
            Err(error) => {
                ensure_eq!(error.kind(), ErrorKind::Quota);
                ensure!(promptly("the end", events.next()).await?.is_none(), "it goes on after its error");
                return Ok(());
            }
        }
    }
    Err(Failure::Broken("it ended without an error".to_owned()))
}

async fn several_watches_of_one_place_are_told_everything_each(sandbox: Sandbox) -> Check {
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(watch(&sandbox, ".", DEEP).await?);
    }
    // One of them ends in the middle.
    drop(all.pop());
    for name in ["a", "b"] {
        sandbox.create_dir(name, Default::default()).await?;
    }
    for events in &mut all {
        for name in ["a", "b"] {
            let Some(event) = next(events).await? else { break };
            ensure_eq!(event.path, format!("{}/{name}", sandbox.cwd()));
        }
    }
    Ok(())
}

async fn too_many_watches_are_refused_and_dropped_ones_give_their_place_back(sandbox: Sandbox) -> Check {
    let mut all = Vec::new();
    let refused = loop {
        match promptly("a watch", sandbox.watch(".", FLAT)).await? {
            Ok(events) if all.len() < 200 => all.push(events),
            Ok(_) => break None,
            Err(error) => break Some(error),
        }
    };
    if let Some(error) = refused {
        ensure_eq!(error.kind(), ErrorKind::Quota);
    }
    ensure!(all.len() >= 8, "there may be only {} watches", all.len());
    drop(all);
    for _ in 0..60 {
        until("a place for another watch", async || match sandbox.watch(".", FLAT).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Quota => Ok(false),
            Err(error) => Err(error.into()),
        })
        .await?;
    }
    // Whatever was used is free again: a program inside watches, too, if it can.
    output(&sandbox, "echo works").await.map(drop)
}

async fn a_reader_that_does_not_read_holds_up_nobody_and_learns_that_something_was_lost(
    sandbox: Sandbox,
) -> Check {
    let mut unread = watch(&sandbox, ".", DEEP).await?;
    let name = "n".repeat(200);
    let line = format!(
        "i=0; while [ $i -lt 30000 ]; do : > {name}$i; i=$((i + 1)); done; find . -name 'n*' -exec rm {{}} +"
    );
    output(&sandbox, &line).await?;
    let mut other = watch(&sandbox, ".", FLAT).await?;
    ensure_eq!(told(&sandbox, &mut other, "beside").await?, [""; 0]);
    let mut count = 0;
    loop {
        let Some(event) = next(&mut unread).await? else {
            return Err(Failure::Broken(format!("it ended after {count} events")));
        };
        count += 1;
        if event.kind == WatchEventKind::Overflow {
            break;
        }
        ensure!(count < 200_000, "{count} events were told, and nothing was lost");
    }
    // It goes on, in directories whose making was lost as well.
    output(&sandbox, "mkdir deep deep/deeper").await?;
    told(&sandbox, &mut unread, "after").await?;
    output(&sandbox, "mkdir deep/deeper/seen").await?;
    ensure_eq!(told(&sandbox, &mut unread, "last").await?, ["created deep/deeper/seen/"]);
    Ok(())
}

async fn f3_odd_names_are_told_as_they_are(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir d").await?;
    let mut events = watch(&sandbox, "d", DEEP).await?;
    let names = ["new\nline", " ", "-rf", "'q\"", "é", "*", "\\", "\u{1b}[31m"];
    for name in names {
        sandbox.create_dir(&format!("d/{name}"), Default::default()).await?;
        let Some(event) = next(&mut events).await? else { break };
        ensure_eq!((event.path, event.path_bytes), (format!("{}/d/{name}", sandbox.cwd()), None));
    }
    if !sh(&sandbox, "mkdir d/$(printf '\\377')").await?.success() {
        return Err(Failure::NotHere("the file system takes no name that is not UTF-8".to_owned()));
    }
    output(&sandbox, "mv d/$(printf '\\377') d/$(printf '\\376')").await?;
    let bytes = |byte| Some([format!("{}/d/", sandbox.cwd()).as_bytes(), &[byte]].concat());
    let first = next(&mut events).await?.and_then(|event| event.path_bytes);
    ensure_eq!(first, bytes(0xff));
    let Some(second) = next(&mut events).await? else { return Ok(()) };
    ensure_eq!(second.path_bytes, bytes(0xfe));
    let from =
        matches!(&second.kind, WatchEventKind::Renamed { from_bytes, .. } if *from_bytes == bytes(0xff));
    ensure!(from, "{second:?}");
    Ok(())
}

async fn f1_a_workspace_is_watched_by_relative_paths(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    for refused in ["/etc", "..", "a/../..", "", "a\0b"] {
        ensure_fails!(workspace.watch(refused, DEEP).await.map(drop), Invalid);
    }
    let mut whole = workspace.watch(".", DEEP).await?;
    workspace.create_dir("d", Default::default()).await?;
    ensure_eq!(next(&mut whole).await?.map(|event| event.path), Some("d".to_owned()));
    let mut part = workspace.watch("./d/", DEEP).await?;
    workspace.create_dir("d/e", Default::default()).await?;
    for events in [&mut whole, &mut part] {
        ensure_eq!(next(events).await?.map(|event| event.path), Some("d/e".to_owned()));
    }
    workspace.remove("d", RemoveOptions { recursive: true, force: false }).await?;
    let mut last = None;
    while let Some(event) = next(&mut part).await? {
        last = Some(event.path);
    }
    ensure_eq!(last, Some("d".to_owned()));
    Ok(())
}

async fn f1_a_watch_does_not_begin_behind_a_link_out_of_the_workspace(sandbox: Sandbox) -> Check {
    output(
        &sandbox,
        "mkdir /tmp/outside; touch /tmp/outside/f; ln -s /tmp/outside abs; ln -s ../../../../tmp/outside up
        ln -s abs chain; ln -s /proc/self/root/tmp/outside proc; ln -s /tmp/outside/f file; mkdir real; ln -s real in",
    )
    .await?;
    let workspace = sandbox.workspace();
    for link in ["abs", "up", "chain", "proc", "file", "abs/f"] {
        ensure_fails!(workspace.watch(link, DEEP).await.map(drop), Permission);
    }
    let mut events = workspace.watch("in", DEEP).await?;
    output(&sandbox, "mkdir real/made").await?;
    ensure_eq!(next(&mut events).await?.map(|event| event.path), Some("in/made".to_owned()));
    Ok(())
}

async fn f1_a_watch_follows_no_link_that_it_meets(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir /tmp/outside; mkdir d; ln -s /tmp/outside d/out; ln -s . d/loop").await?;
    let mut events = watch(&sandbox, "d", DEEP).await?;
    output(&sandbox, "touch /tmp/outside/secret; ln -s /tmp/outside d/later; touch /tmp/outside/secret2")
        .await?;
    ensure_eq!(told(&sandbox, &mut events, "d/last").await?, ["created d/later"]);
    Ok(())
}

async fn f1_a_place_that_becomes_a_link_out_of_the_workspace_is_gone(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir -p a/p /tmp/outside").await?;
    let mut events = sandbox.workspace().watch("a/p", DEEP).await?;
    output(&sandbox, "mv a /tmp/outside/a; ln -s /tmp/outside/a a; touch a/p/secret").await?;
    let Some(only) = next(&mut events).await? else { return Ok(()) };
    ensure_eq!((only.kind, only.path), (WatchEventKind::Removed, "a/p".to_owned()));
    ensure_eq!(next(&mut events).await?, None);
    Ok(())
}

async fn f6_a_tree_that_changes_all_the_time_is_watched_and_its_last_state_is_told(
    sandbox: Sandbox,
) -> Check {
    let mut events = watch(&sandbox, ".", DEEP).await?;
    let churn = "i=0; while [ $i -lt 300 ]; do
            mkdir -p t/a/b; : > t/a/b/f; mv t u; mv u/a v; rm -r u v; i=$((i + 1))
        done; mkdir -p end/deep";
    let reading = async {
        let end = format!("{}/end/deep", sandbox.cwd());
        while let Some(event) = next(&mut events).await? {
            if event.path == end {
                break;
            }
        }
        Check::Ok(())
    };
    let (churned, read) = tokio::join!(output(&sandbox, churn), reading);
    churned?;
    read?;
    output(&sandbox, "mkdir end/deep/seen").await?;
    let found = told(&sandbox, &mut events, "last").await?;
    ensure_eq!(found.last().map(String::as_str), Some("created end/deep/seen/"));
    Ok(())
}

async fn a_watch_ends_with_its_sandbox(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = Disposable(Sandbox::create(&*fixture.provider(), fixture.spec()).await?);
    let mut events = watch(&sandbox.0, ".", DEEP).await?;
    sandbox.0.destroy().await?;
    loop {
        match promptly("the end", events.next()).await? {
            None => break,
            Some(Ok(_)) => {}
            Some(Err(error)) => ensure!(is_gone(&error), "{}: {error}", error.kind()),
        }
    }
    ensure_fails!(sandbox.0.watch(".", DEEP).await.map(drop), Destroyed);
    Ok(())
}

async fn a_watch_that_is_told_nothing_keeps_no_sandbox_from_being_idle(fixture: Arc<dyn Fixture>) -> Check {
    let mut spec = fixture.spec();
    spec.lifecycle.idle_timeout_ms = Some(300);
    let sandbox = Disposable(Sandbox::create(&*fixture.provider(), spec).await?);
    let mut events = watch(&sandbox.0, ".", DEEP).await?;
    match promptly("the end", events.next()).await? {
        None => Ok(()),
        Some(Ok(event)) => Err(Failure::Broken(format!("{event:?} though nothing happened"))),
        Some(Err(error)) => {
            ensure!(is_gone(&error), "{}: {error}", error.kind());
            Ok(())
        }
    }
}
