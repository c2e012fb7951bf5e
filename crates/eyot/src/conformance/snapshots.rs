//! Snapshots: what is kept, what is given back, what a fork begins with, and what a comparison tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join;

use super::Fixture;
use super::check::{Check, Disposable, cases, ensure, ensure_eq, ensure_fails, output, promptly};
use super::create::named;
use super::egress::rules;
use crate::created::{SandboxInfo, SandboxStatus};
use crate::path::SandboxPath;
use crate::process::ProcessStatus;
use crate::sandbox::{Sandbox, StartOptions};
use crate::snapshot::{BranchPoint, ChangeKind, CompareOptions, FileChanges, NewSnapshot, SnapshotInfo};
use crate::spec::{NetworkMode, SandboxSpec, SnapshotId};

cases! {
    a_snapshot_keeps_the_files_and_its_sandbox_goes_on_with_them(fixture) needs [Snapshots, Shell];
    a_rollback_gives_back_what_was_changed_removed_or_replaced(fixture) needs [Snapshots, Shell, Symlinks];
    forks_begin_with_the_files_and_share_nothing_afterwards(fixture) needs [Snapshots, Shell];
    a_fork_of_a_fork_has_the_files_of_both(fixture) needs [Snapshots, Shell];
    a_comparison_tells_what_was_added_changed_and_removed(fixture) needs [Snapshots, Shell, Symlinks];
    what_has_the_same_content_again_is_no_difference(fixture) needs [Snapshots, Shell];
    a_comparison_has_the_diffs_of_texts_if_they_are_asked_for(fixture) needs [Snapshots, Shell];
    what_was_closed_inside_is_compared_or_told_as_changed(fixture) needs [Snapshots, Shell];
    snapshots_have_parents_names_labels_and_sizes(fixture) needs [Snapshots, Shell];
    a_snapshot_outlives_its_sandbox(fixture) needs [Snapshots, Shell];
    a_removed_snapshot_is_gone_and_what_lies_above_it_stays(fixture) needs [Snapshots, Shell];
    a_sandbox_that_runs_is_refused_and_stays_as_it_is(fixture) needs [Snapshots, Shell];
    an_unknown_snapshot_is_refused_and_nothing_is_made(fixture) needs [Snapshots];
    what_a_sandbox_has_written_harms_no_other_snapshot(fixture) needs [Snapshots, Shell];
    a_snapshot_for_forks_is_not_listed_and_is_gone_with_them(fixture) needs [Snapshots, Shell];
    of_two_who_want_one_name_for_a_snapshot_one_gets_it(fixture) needs [Snapshots];
    an_id_that_a_snapshot_has_is_refused_and_that_snapshot_stays(fixture) needs [Snapshots];
    a_root_that_was_closed_inside_can_be_kept_and_wakes_again(fixture) needs [Snapshots, Shell];
    a_snapshot_has_the_network_rules_that_are_in_force(fixture) needs [Snapshots, NetworkEgress];
    forty_checkpoints_in_a_row_keep_every_state(fixture) needs [Snapshots, Shell];
    a_sandbox_that_is_awake_goes_on_after_its_snapshot_as_it_was(fixture) needs [Snapshots, Shell];
    a_command_that_runs_goes_on_and_its_sandbox_is_kept_only_asleep(fixture) needs [Snapshots, Processes];
}

/// A sandbox of the case's own.
async fn sandbox(fixture: &dyn Fixture) -> Check<Disposable> {
    let (spec, _) = named(fixture);
    Ok(Disposable(Sandbox::create(&*fixture.provider(), spec).await?))
}

/// Takes a snapshot of a sandbox that runs, asleep if it must be. Afterwards it runs.
pub(super) async fn take(fixture: &dyn Fixture, info: &SandboxInfo) -> Check<(SnapshotInfo, Sandbox)> {
    let provider = fixture.provider();
    let asked = NewSnapshot::of(info);
    if let Some(taken) =
        promptly("the snapshot", provider.snapshots()?.take_awake(&info.id, &asked)).await??
    {
        return Ok((taken.snapshot, Sandbox::wake(&*provider, info.id.as_str()).await?));
    }
    provider.sleep(info.id.as_str()).await?;
    let taken =
        promptly("the snapshot", provider.snapshots()?.take(&info.id, NewSnapshot::of(info))).await??;
    Ok((taken, Sandbox::wake(&*provider, info.id.as_str()).await?))
}

async fn roll_back(fixture: &dyn Fixture, info: &SandboxInfo, snapshot: &SnapshotInfo) -> Check<Sandbox> {
    let provider = fixture.provider();
    provider.sleep(info.id.as_str()).await?;
    promptly("the rollback", provider.snapshots()?.roll_back(&info.id, &snapshot.id)).await??;
    Ok(Sandbox::wake(&*provider, info.id.as_str()).await?)
}

pub(super) async fn fork(fixture: &dyn Fixture, snapshot: &SnapshotInfo) -> Check<Disposable> {
    let spec = SandboxSpec { image: None, snapshot: Some(snapshot.id.clone()), ..named(fixture).0 };
    Ok(Disposable(promptly("the fork", Sandbox::create(&*fixture.provider(), spec)).await??))
}

pub(super) async fn remove(fixture: &dyn Fixture, snapshots: &[&SnapshotInfo]) -> Check {
    for snapshot in snapshots {
        fixture.provider().snapshots()?.remove(&snapshot.id).await?;
    }
    Ok(())
}

async fn compare(fixture: &dyn Fixture, from: BranchPoint, to: BranchPoint) -> Check<FileChanges> {
    let options = CompareOptions::below(SandboxPath::parse("/workspace")?);
    compare_with(fixture, from, to, options).await
}

async fn compare_with(
    fixture: &dyn Fixture,
    from: BranchPoint,
    to: BranchPoint,
    options: CompareOptions,
) -> Check<FileChanges> {
    Ok(promptly("the comparison", fixture.provider().snapshots()?.compare(&from, &to, &options)).await??)
}

async fn a_snapshot_keeps_the_files_and_its_sandbox_goes_on_with_them(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    sandbox.0.write("kept", "one").await?;
    output(
        &sandbox.0,
        "mkdir -p deep/er && echo x > deep/er/file && chmod 640 deep/er/file && chmod 750 deep",
    )
    .await?;
    let (snapshot, woken) = take(&*fixture, sandbox.0.info()).await?;
    ensure_eq!(woken.read("kept").await?, "one");
    ensure_eq!(output(&woken, "cat deep/er/file; stat -c %a deep/er/file deep").await?, "x\n640\n750");
    ensure_eq!(output(&woken, "echo two > kept; rm deep/er/file; ls deep/er; cat kept").await?, "two");
    let forked = fork(&*fixture, &snapshot).await?;
    ensure_eq!(forked.0.read("kept").await?, "one");
    ensure_eq!(output(&forked.0, "cat deep/er/file; stat -c %a deep/er/file deep").await?, "x\n640\n750");
    remove(&*fixture, &[&snapshot]).await
}

async fn a_rollback_gives_back_what_was_changed_removed_or_replaced(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    let look = "find . | sort; cat changed removed dir/* was-dir/file; readlink link; stat -c %a mode";
    let before = output(
        &sandbox.0,
        &format!(
            "echo 1 > changed; echo 2 > removed; mkdir dir was-dir; echo 3 > dir/a; echo 4 > dir/b; \
             echo 5 > was-dir/file; ln -s changed link; echo m > mode; chmod 600 mode; {look}"
        ),
    )
    .await?;
    let (snapshot, woken) = take(&*fixture, sandbox.0.info()).await?;
    output(
        &woken,
        "echo other >> changed; rm removed dir/a; echo new > added; rm -r was-dir; echo file > was-dir; \
         ln -sf elsewhere link; chmod 644 mode; rm -r dir; mkdir dir; echo fresh > dir/c",
    )
    .await?;
    let woken = roll_back(&*fixture, sandbox.0.info(), &snapshot).await?;
    ensure_eq!(output(&woken, look).await?, before);
    // And once more, from there.
    output(&woken, "rm -rf dir; echo again > added").await?;
    let woken = roll_back(&*fixture, sandbox.0.info(), &snapshot).await?;
    ensure_eq!(output(&woken, look).await?, before);
    remove(&*fixture, &[&snapshot]).await
}

async fn forks_begin_with_the_files_and_share_nothing_afterwards(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    sandbox.0.write("file", "base").await?;
    let (snapshot, woken) = take(&*fixture, sandbox.0.info()).await?;
    let (one, other) = (fork(&*fixture, &snapshot).await?, fork(&*fixture, &snapshot).await?);
    for (sandbox, text) in [(&one.0, "one"), (&other.0, "other"), (&woken, "first")] {
        ensure_eq!(sandbox.read("file").await?, "base");
        sandbox.write("file", text).await?;
        output(sandbox, "mkdir -p made && mv file made/file && id -u > made/by").await?;
    }
    for (sandbox, text) in [(&one.0, "one"), (&other.0, "other"), (&woken, "first")] {
        ensure_eq!(sandbox.read("made/file").await?, text);
        ensure!(!sandbox.exists("file").await?, "what was moved is still there");
    }
    ensure!(one.0.info().id != other.0.info().id, "two forks have one id");
    remove(&*fixture, &[&snapshot]).await
}

async fn a_fork_of_a_fork_has_the_files_of_both(fixture: Arc<dyn Fixture>) -> Check {
    let first = sandbox(&*fixture).await?;
    output(&first.0, "echo 1 > one; echo gone > gone").await?;
    let (of_first, _) = take(&*fixture, first.0.info()).await?;
    let second = fork(&*fixture, &of_first).await?;
    output(&second.0, "echo 2 > two; rm gone").await?;
    let (of_second, _) = take(&*fixture, second.0.info()).await?;
    let third = fork(&*fixture, &of_second).await?;
    ensure_eq!(output(&third.0, "cat one two; ls; echo 3 > three; cat three").await?, "1\n2\none\ntwo\n3");
    let (of_third, woken) = take(&*fixture, third.0.info()).await?;
    ensure_eq!(output(&woken, "cat one two three; touch one && ls").await?, "1\n2\n3\none\nthree\ntwo");
    remove(&*fixture, &[&of_first, &of_second, &of_third]).await
}

/// Returns the changes as lines such as `Added /workspace/a`.
fn lines(changes: &FileChanges) -> Vec<String> {
    changes.changes.iter().map(|change| format!("{:?} {}", change.change, change.path)).collect()
}

async fn a_comparison_tells_what_was_added_changed_and_removed(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    output(
        &sandbox.0,
        "echo 1 > changed; echo 2 > removed; echo 3 > same; mkdir dir emptied; echo a > dir/a; echo b > emptied/b; \
         ln -s same link; echo m > mode",
    )
    .await?;
    let id = sandbox.0.info().id.clone();
    let (first, woken) = take(&*fixture, sandbox.0.info()).await?;
    output(
        &woken,
        "echo other > changed; rm removed; mkdir -p new/er; echo n > new/er/f; rm -r emptied; mkdir emptied; \
         ln -sf changed link; chmod 600 mode; rm -r dir; echo file > dir",
    )
    .await?;
    let expected = [
        "Changed /workspace/changed",
        "Changed /workspace/dir",
        "Removed /workspace/dir/a",
        "Removed /workspace/emptied/b",
        "Changed /workspace/link",
        "Changed /workspace/mode",
        "Added /workspace/new",
        "Added /workspace/new/er",
        "Added /workspace/new/er/f",
        "Removed /workspace/removed",
    ];
    let base = (BranchPoint::Base(id.clone()), BranchPoint::Sandbox(id.clone()));
    ensure_eq!(lines(&compare(&*fixture, base.0, base.1).await?), expected);
    let (second, _) = take(&*fixture, sandbox.0.info()).await?;
    let [from, to] = [&first, &second].map(|snapshot| BranchPoint::Snapshot(snapshot.id.clone()));
    let found = compare(&*fixture, from.clone(), to.clone()).await?;
    ensure_eq!(lines(&found), expected);
    let mode = found.changes.iter().find(|change| change.path == "/workspace/mode");
    let modes =
        mode.map(|change| [&change.before, &change.after].map(|side| side.as_ref().map(|file| file.mode)));
    ensure_eq!(modes, Some([Some(0o644), Some(0o600)]));
    let added = found.changes.iter().find(|change| change.path == "/workspace/new/er/f");
    ensure_eq!(added.and_then(|change| change.after.as_ref()).map(|file| file.size_bytes), Some(2));
    let back = compare(&*fixture, to, from).await?;
    let removed = back.changes.iter().find(|change| change.path == "/workspace/new/er/f");
    ensure_eq!(removed.map(|change| change.change), Some(ChangeKind::Removed));
    remove(&*fixture, &[&first, &second]).await
}

async fn what_has_the_same_content_again_is_no_difference(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    output(&sandbox.0, "echo same > a; mkdir d; echo x > d/f").await?;
    let (first, woken) = take(&*fixture, sandbox.0.info()).await?;
    output(&woken, "rm a; echo same > a; touch d; echo x > d/f; echo y > d/g; rm d/g").await?;
    let (second, _) = take(&*fixture, sandbox.0.info()).await?;
    let [from, to] = [&first, &second].map(|snapshot| BranchPoint::Snapshot(snapshot.id.clone()));
    ensure_eq!(lines(&compare(&*fixture, from.clone(), to).await?), Vec::<String>::new());
    ensure_eq!(lines(&compare(&*fixture, from.clone(), from).await?), Vec::<String>::new());
    remove(&*fixture, &[&first, &second]).await
}

async fn what_was_closed_inside_is_compared_or_told_as_changed(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    output(
        &sandbox.0,
        "mkdir closed open; echo 1 > closed/f; echo 1 > open/f; echo 1 > shut; chmod 0 closed",
    )
    .await?;
    let id = sandbox.0.info().id.clone();
    let (_, woken) = take(&*fixture, sandbox.0.info()).await?;
    output(
        &woken,
        "chmod 700 closed; echo 2 > closed/f; chmod 0 closed; echo 2 > open/f; echo 2 > shut; chmod 0 shut",
    )
    .await?;
    let sides = (BranchPoint::Base(id.clone()), BranchPoint::Sandbox(id));
    let options = CompareOptions { text: true, ..CompareOptions::below(SandboxPath::parse("/workspace")?) };
    let found = compare_with(&*fixture, sides.0, sides.1, options).await?;
    let told = lines(&found);
    let has = |line: &str| told.iter().any(|told| told == line);
    // Whoever can read a closed directory tells what is in it.
    ensure!(has("Changed /workspace/closed") || has("Changed /workspace/closed/f"), "{told:?}");
    ensure!(has("Changed /workspace/open/f") && has("Changed /workspace/shut"), "{told:?}");
    let open = found.changes.iter().find(|change| change.path == "/workspace/open/f");
    let text = open.and_then(|change| change.text.as_deref()).unwrap_or_default();
    ensure!(text.contains("-1\n+2\n"), "{text:?}");
    output(&woken, "chmod 700 closed shut").await.map(drop)
}

async fn a_comparison_has_the_diffs_of_texts_if_they_are_asked_for(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    output(&sandbox.0, "echo one > text; echo kept >> text; printf 'a\\0b' > bytes; echo gone > gone")
        .await?;
    let (snapshot, woken) = take(&*fixture, sandbox.0.info()).await?;
    output(
        &woken,
        "echo two > text; echo kept >> text; printf 'a\\0c' > bytes; rm gone; echo n > new; chmod 600 text",
    )
    .await?;
    let id = sandbox.0.info().id.clone();
    let sides = (BranchPoint::Snapshot(snapshot.id.clone()), BranchPoint::Sandbox(id));
    let options = CompareOptions { path: SandboxPath::parse("/workspace")?, text: true };
    let found = compare_with(&*fixture, sides.0.clone(), sides.1.clone(), options).await?;
    let text = |name: &str| {
        let path = format!("/workspace/{name}");
        let change = found.changes.iter().find(|change| change.path == path);
        change.and_then(|change| change.text.clone())
    };
    let changed = "--- a/workspace/text\n+++ b/workspace/text\n@@ -1,2 +1,2 @@\n-one\n+two\n kept\n";
    ensure_eq!(text("text").as_deref(), Some(changed));
    ensure_eq!(text("new").as_deref(), Some("--- /dev/null\n+++ b/workspace/new\n@@ -0,0 +1,1 @@\n+n\n"));
    ensure!(text("gone").is_some_and(|text| text.ends_with("-gone\n")), "what was removed has no diff");
    ensure_eq!(text("bytes"), None);
    ensure_eq!(found.changes.len(), 4);
    let without = compare(&*fixture, sides.0, sides.1).await?;
    ensure!(
        without.changes.iter().all(|change| change.text.is_none()),
        "there are diffs that nobody asked for"
    );
    remove(&*fixture, &[&snapshot]).await
}

async fn snapshots_have_parents_names_labels_and_sizes(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    let (provider, info) = (fixture.provider(), sandbox.0.info().clone());
    output(&sandbox.0, "head -c 300000 /dev/zero > large").await?;
    let (first, _) = take(&*fixture, &info).await?;
    provider.sleep(info.id.as_str()).await?;
    let labels = BTreeMap::from([("step".to_owned(), "2".to_owned())]);
    let name = Some(named(&*fixture).1);
    let asked = NewSnapshot { labels: labels.clone(), name, ..NewSnapshot::of(&info) };
    let second = provider.snapshots()?.take(&info.id, asked.clone()).await?;
    ensure_eq!((&second.id, &second.name, &second.labels), (&asked.id, &asked.name, &labels));
    ensure_eq!((&second.sandbox, &second.sandbox_name), (&info.id, &info.name));
    ensure_eq!((first.parent, second.parent.clone()), (None, Some(first.id.clone())));
    let listed = provider.snapshots()?.list_with_sizes().await?;
    let of = |id: &SnapshotId| listed.iter().find(|one| one.id == *id);
    let own = |id: &SnapshotId| of(id).and_then(|one| one.own_bytes);
    let (large, small) = (own(&first.id), own(&second.id));
    ensure!(large > Some(250_000) && small < Some(250_000), "own bytes: {large:?} and {small:?}");
    ensure!(of(&second.id).and_then(|one| one.shared_bytes) >= large, "shared bytes below {large:?}");
    provider.snapshots()?.remove(&first.id).await?;
    Ok(provider.snapshots()?.remove(&second.id).await?)
}

async fn a_snapshot_outlives_its_sandbox(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    sandbox.0.write("file", "kept").await?;
    let (snapshot, woken) = take(&*fixture, sandbox.0.info()).await?;
    woken.destroy().await?;
    let forked = fork(&*fixture, &snapshot).await?;
    ensure_eq!(forked.0.read("file").await?, "kept");
    remove(&*fixture, &[&snapshot]).await
}

async fn a_removed_snapshot_is_gone_and_what_lies_above_it_stays(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    sandbox.0.write("one", "1").await?;
    let (first, woken) = take(&*fixture, sandbox.0.info()).await?;
    woken.write("two", "2").await?;
    let (second, woken) = take(&*fixture, sandbox.0.info()).await?;
    let forked = fork(&*fixture, &first).await?;
    remove(&*fixture, &[&first]).await?;
    let snapshots = fixture.provider().snapshots()?;
    ensure!(!snapshots.list().await?.iter().any(|one| one.id == first.id), "it is listed");
    ensure_fails!(snapshots.remove(&first.id).await, NotFound);
    let spec = SandboxSpec { image: None, snapshot: Some(first.id.clone()), ..named(&*fixture).0 };
    ensure_fails!(Sandbox::create(&*fixture.provider(), spec).await.map(Disposable), NotFound);
    ensure_eq!(forked.0.read("one").await?, "1");
    ensure_eq!((woken.read("one").await?, woken.read("two").await?), ("1".into(), "2".into()));
    // Over the sleep of both, too.
    let provider = fixture.provider();
    for id in [&forked.0.info().id, &woken.info().id] {
        provider.sleep(id.as_str()).await?;
        ensure_eq!(Sandbox::wake(&*provider, id.as_str()).await?.read("one").await?, "1");
    }
    let again = fork(&*fixture, &second).await?;
    ensure_eq!((again.0.read("one").await?, again.0.read("two").await?), ("1".into(), "2".into()));
    remove(&*fixture, &[&second]).await
}

async fn a_sandbox_that_runs_is_refused_and_stays_as_it_is(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    sandbox.0.write("file", "x").await?;
    let (snapshot, woken) = take(&*fixture, sandbox.0.info()).await?;
    let snapshots = fixture.provider().snapshots()?;
    let id = &sandbox.0.info().id;
    ensure_fails!(snapshots.take(id, NewSnapshot::of(sandbox.0.info())).await, Conflict);
    ensure_fails!(snapshots.roll_back(id, &snapshot.id).await, Conflict);
    ensure_eq!(output(&woken, "cat file; echo y > file; cat file").await?, "xy");
    let of_it = snapshots.list().await?.iter().filter(|one| one.sandbox == *id).count();
    ensure_eq!(of_it, 1);
    remove(&*fixture, &[&snapshot]).await
}

async fn an_unknown_snapshot_is_refused_and_nothing_is_made(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    let (provider, id) = (fixture.provider(), sandbox.0.info().id.clone());
    let (snapshots, unknown) = (provider.snapshots()?, SnapshotId::generate());
    let (spec, name) = named(&*fixture);
    let spec = SandboxSpec { image: None, snapshot: Some(unknown.clone()), ..spec };
    ensure_fails!(Sandbox::create(&*provider, spec).await.map(Disposable), NotFound);
    ensure_fails!(provider.info(name.as_str()).await, NotFound);
    ensure_fails!(snapshots.remove(&unknown).await, NotFound);
    let present = BranchPoint::Sandbox(id.clone());
    let root = CompareOptions::below(SandboxPath::root());
    ensure_fails!(
        snapshots.compare(&BranchPoint::Snapshot(unknown.clone()), &present, &root).await,
        NotFound
    );
    provider.sleep(id.as_str()).await?;
    ensure_fails!(snapshots.roll_back(&id, &unknown).await, NotFound);
    ensure!(Sandbox::wake(&*provider, id.as_str()).await.is_ok(), "a refused rollback harmed the sandbox");
    let both = SandboxSpec { image: Some("host".to_owned()), snapshot: Some(unknown), ..named(&*fixture).0 };
    ensure_fails!(Sandbox::create(&*provider, both).await.map(Disposable), Invalid);
    Ok(())
}

async fn what_a_sandbox_has_written_harms_no_other_snapshot(fixture: Arc<dyn Fixture>) -> Check {
    let (hostile, other) = (sandbox(&*fixture).await?, sandbox(&*fixture).await?);
    let closed =
        "mkdir -p closed/below && touch closed/below/f && chmod 000 closed/below && chmod 311 closed";
    // As deep as the provider lets a path be.
    let deep = "n=$(printf %0200d 0); for i in $(seq 60); do mkdir $n && cd $n || break; done; true";
    output(&hostile.0, &format!("{closed}; {deep}")).await?;
    let (of_hostile, woken) = take(&*fixture, hostile.0.info()).await?;
    let (of_other, _) = take(&*fixture, other.0.info()).await?;
    let snapshots = fixture.provider().snapshots()?;
    let listed = snapshots.list_with_sizes().await?;
    for taken in [&of_hostile, &of_other] {
        ensure!(listed.iter().any(|one| one.id == taken.id), "a snapshot is not listed");
    }
    output(&woken, "chmod 755 closed && chmod 755 closed/below && ls closed/below").await?;
    let forked = fork(&*fixture, &of_hostile).await?;
    ensure_eq!(output(&forked.0, "stat -c %a closed").await?, "311");
    remove(&*fixture, &[&of_hostile, &of_other]).await
}

async fn a_snapshot_for_forks_is_not_listed_and_is_gone_with_them(fixture: Arc<dyn Fixture>) -> Check {
    let first = sandbox(&*fixture).await?;
    first.0.write("file", "x").await?;
    let (provider, info) = (fixture.provider(), first.0.info().clone());
    let snapshots = provider.snapshots()?;
    provider.sleep(info.id.as_str()).await?;
    let taken = snapshots.take(&info.id, NewSnapshot { for_forks: true, ..NewSnapshot::of(&info) }).await?;
    ensure!(!snapshots.list().await?.iter().any(|one| one.id == taken.id), "it is listed");
    ensure!(snapshots.find(&taken.id).await?.is_some(), "it is not found");
    let forked = fork(&*fixture, &taken).await?;
    let woken = Sandbox::wake(&*provider, info.id.as_str()).await?;
    ensure_eq!((woken.read("file").await?, forked.0.read("file").await?), ("x".into(), "x".into()));
    provider.remove(info.id.as_str()).await?;
    ensure_eq!(forked.0.read("file").await?, "x");
    provider.remove(forked.0.info().id.as_str()).await?;
    ensure!(snapshots.find(&taken.id).await?.is_none(), "it is kept for nobody");
    Ok(())
}

async fn of_two_who_want_one_name_for_a_snapshot_one_gets_it(fixture: Arc<dyn Fixture>) -> Check {
    let (one, other) = (sandbox(&*fixture).await?, sandbox(&*fixture).await?);
    let provider = fixture.provider();
    let snapshots = provider.snapshots()?;
    for info in [one.0.info(), other.0.info()] {
        provider.sleep(info.id.as_str()).await?;
    }
    let name = named(&*fixture).1;
    let named = |info: &SandboxInfo| NewSnapshot { name: Some(name.clone()), ..NewSnapshot::of(info) };
    let (first, second) = join(
        snapshots.take(&one.0.info().id, named(one.0.info())),
        snapshots.take(&other.0.info().id, named(other.0.info())),
    )
    .await;
    let (taken, refused) = if first.is_ok() { (first, second) } else { (second, first) };
    ensure_fails!(refused, AlreadyExists);
    remove(&*fixture, &[&taken?]).await
}

async fn an_id_that_a_snapshot_has_is_refused_and_that_snapshot_stays(fixture: Arc<dyn Fixture>) -> Check {
    let (one, other) = (sandbox(&*fixture).await?, sandbox(&*fixture).await?);
    one.0.write("file", "one").await?;
    other.0.write("file", "other").await?;
    let (taken, _) = take(&*fixture, one.0.info()).await?;
    let (provider, info) = (fixture.provider(), other.0.info());
    provider.sleep(info.id.as_str()).await?;
    let again = NewSnapshot { id: taken.id.clone(), ..NewSnapshot::of(info) };
    ensure_fails!(provider.snapshots()?.take(&info.id, again).await, AlreadyExists);
    ensure_eq!(Sandbox::wake(&*provider, info.id.as_str()).await?.read("file").await?, "other");
    ensure_eq!(fork(&*fixture, &taken).await?.0.read("file").await?, "one");
    remove(&*fixture, &[&taken]).await
}

async fn a_root_that_was_closed_inside_can_be_kept_and_wakes_again(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    // Where it belongs to somebody else, it stays as it is.
    output(&sandbox.0, "echo one > kept; chmod 555 / 2>/dev/null || true").await?;
    let (snapshot, woken) = take(&*fixture, sandbox.0.info()).await?;
    ensure_eq!(output(&woken, "cat kept; echo two > kept; cat kept").await?, "one\ntwo");
    let woken = roll_back(&*fixture, sandbox.0.info(), &snapshot).await?;
    ensure_eq!(output(&woken, "cat kept").await?, "one");
    remove(&*fixture, &[&snapshot]).await
}

async fn a_snapshot_has_the_network_rules_that_are_in_force(fixture: Arc<dyn Fixture>) -> Check {
    let (mut spec, _) = named(&*fixture);
    (spec.network, spec.egress) = (NetworkMode::Egress, rules(&["wide.example"]));
    let sandbox = Disposable(Sandbox::create(&*fixture.provider(), spec).await?);
    sandbox.0.set_egress_rules(&rules(&["narrow.example"])).await?;
    // Its caller knows only the rules that it was made with.
    let (snapshot, _) = take(&*fixture, sandbox.0.info()).await?;
    ensure_eq!(snapshot.spec.egress, rules(&["narrow.example"]));
    remove(&*fixture, &[&snapshot]).await
}

async fn forty_checkpoints_in_a_row_keep_every_state(fixture: Arc<dyn Fixture>) -> Check {
    const CHECKPOINTS: usize = 40;
    let sandbox = sandbox(&*fixture).await?;
    let info = sandbox.0.info().clone();
    let mut taken = Vec::new();
    let mut awake = sandbox.0.clone();
    for number in 0..CHECKPOINTS {
        output(&awake, &format!("echo {number} > last; echo {number} > n{number}")).await?;
        let (snapshot, woken) = take(&*fixture, &info).await?;
        taken.push(snapshot);
        awake = woken;
    }
    for number in [0, CHECKPOINTS / 2, CHECKPOINTS - 1] {
        let woken = roll_back(&*fixture, &info, &taken[number]).await?;
        ensure_eq!(output(&woken, "cat last; ls | grep -c ^n").await?, format!("{number}\n{}", number + 1));
    }
    remove(&*fixture, &taken.iter().collect::<Vec<_>>()).await
}

async fn a_sandbox_that_is_awake_goes_on_after_its_snapshot_as_it_was(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    let (provider, info) = (fixture.provider(), sandbox.0.info().clone());
    let made =
        "mkdir a b; echo 1 > a/kept; echo 2 > changed; echo 3 > removed; echo 4 > moved; ln moved linked";
    output(&sandbox.0, made).await?;
    let life = provider.info(info.id.as_str()).await?.life;
    let snapshots = provider.snapshots()?;
    let asked = NewSnapshot::of(&info);
    let Some(taken) = promptly("the snapshot", snapshots.take_awake(&info.id, &asked)).await?? else {
        ensure!(snapshots.find(&asked.id).await?.is_none(), "there is a snapshot that was not taken");
        ensure_eq!(output(&sandbox.0, "cat a/kept").await?, "1");
        return Ok(());
    };
    ensure!(taken.is_awake, "it sleeps");
    let taken = taken.snapshot;
    ensure_eq!(taken.id, asked.id);
    let after = provider.info(info.id.as_str()).await?;
    ensure_eq!((after.life, after.status), (life, SandboxStatus::Running));
    // Through the same handle, in the same life.
    let change = "echo 5 >> changed; rm removed; mv moved b/moved; mv b/moved a; mkdir c; echo 6 > c/new; cat a/kept changed \
                  a/moved c/new; ls";
    ensure_eq!(output(&sandbox.0, change).await?, "1\n2\n5\n4\n6\na\nb\nc\nchanged\nlinked");
    sandbox.0.write("c/written", "7").await?;
    ensure_eq!(sandbox.0.read("c/written").await?, "7");
    let forked = fork(&*fixture, &taken).await?;
    let look = "cat a/kept changed removed moved linked; ls";
    ensure_eq!(output(&forked.0, look).await?, "1\n2\n3\n4\n4\na\nb\nchanged\nlinked\nmoved\nremoved");
    let (second, woken) = take(&*fixture, &info).await?;
    ensure_eq!(second.parent.as_ref(), Some(&taken.id));
    ensure_eq!(output(&woken, "cat c/written a/moved").await?, "74");
    remove(&*fixture, &[&taken, &second]).await
}

async fn a_command_that_runs_goes_on_and_its_sandbox_is_kept_only_asleep(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = sandbox(&*fixture).await?;
    let info = sandbox.0.info().clone();
    let process = sandbox.0.start("sleep 600", StartOptions::default()).await?;
    let snapshots = fixture.provider().snapshots()?;
    let asked = NewSnapshot::of(&info);
    ensure!(snapshots.take_awake(&info.id, &asked).await?.is_none(), "a snapshot was taken under a command");
    ensure!(snapshots.find(&asked.id).await?.is_none(), "there is a snapshot that was not taken");
    let there = sandbox.0.processes().await?;
    let of_it = there.iter().find(|one| one.id == process.id).map(|one| one.status);
    ensure_eq!(of_it, Some(ProcessStatus::Running));
    Ok(())
}
