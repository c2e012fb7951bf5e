//! Snapshots on a real Engine, beyond what the conformance suite asks of every provider.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use eyot::{
    ErrorKind, NewImage, NewSnapshot, Sandbox, SandboxInfo, SandboxProvider, SandboxSpec, Security,
    SnapshotId, SnapshotInfo,
};
use eyot_providers::docker::{DockerOptions, DockerProvider};

use crate::check::{Check, docker, ensure, ensure_eq, output, refused, until, with_sandbox};
use crate::engine::{BUSYBOX, DEBIAN, TestEngine, spec, state, tests};
use crate::proxy::{Proxy, Removals, engine_socket};

tests! {
    no_variable_of_a_sandbox_is_in_the_image_of_its_snapshot(BUSYBOX);
    a_snapshot_of_another_state_folder_is_not_there(BUSYBOX);
    files_in_volumes_of_their_own_are_refused_and_nothing_is_left(BUSYBOX);
    an_image_with_files_in_the_working_directory_is_kept_unless_some_were_removed(DEBIAN);
    a_fifo_in_place_of_the_users_holds_up_no_fork(DEBIAN);
    a_handle_of_before_says_that_its_sandbox_sleeps_and_can_destroy_it(BUSYBOX);
    a_sandbox_whose_container_was_being_replaced_is_found(BUSYBOX);
    a_sandbox_survives_a_removal_of_its_container_that_is_not_answered(BUSYBOX);
    a_sandbox_survives_a_removal_of_its_container_that_is_refused(BUSYBOX);
    a_sandbox_that_was_destroyed_does_not_come_back(BUSYBOX);
    a_create_of_a_name_that_is_between_two_containers_is_refused(BUSYBOX);
    a_file_of_holes_is_refused_before_anything_is_written(BUSYBOX);
    a_killed_process_loses_no_snapshot_and_leaves_nothing(BUSYBOX);
    a_commit_is_an_image_for_everybody_and_takes_no_name_of_somebody_elses(BUSYBOX);
}

/// Lists the tests for `cargo xtask soak docker`. They keep others from taking snapshots for a minute.
pub fn of_soak(engine: &TestEngine) -> Vec<libtest_mimic::Trial> {
    let many = "soak::a_sandbox_above_many_layers_has_snapshots_still";
    let many = engine.test(many, BUSYBOX, a_sandbox_above_many_layers_has_snapshots_still);
    vec![many.with_ignored_flag(true)]
}

/// The argument by which this program does [`work`].
pub const WORK: &str = "take-snapshots";

pub async fn take(provider: &DockerProvider, info: &SandboxInfo) -> eyot::Result<SnapshotInfo> {
    provider.sleep(info.id.as_str()).await?;
    provider.snapshots()?.take(&info.id, NewSnapshot::of(info)).await
}

pub async fn wake(provider: &DockerProvider, info: &SandboxInfo) -> eyot::Result<Sandbox> {
    Sandbox::wake(provider, info.id.as_str()).await
}

fn above(snapshot: &SnapshotInfo, like: SandboxSpec) -> SandboxSpec {
    SandboxSpec { image: None, snapshot: Some(snapshot.id.clone()), ..like }
}

/// Lists the images of a snapshot.
pub fn images_of(snapshot: &SnapshotId) -> Check<String> {
    docker(&["images", "-aq", "--no-trunc", "--filter", &format!("label=dev.eyot.snapshot={snapshot}")])
}

async fn no_variable_of_a_sandbox_is_in_the_image_of_its_snapshot(engine: TestEngine) -> Check {
    let mut asked = spec(BUSYBOX);
    asked.env.insert("TOKEN".to_owned(), "in-the-spec".to_owned());
    asked.manifest.env.insert("OTHER".to_owned(), "in-the-manifest".to_owned());
    with_sandbox(&engine, asked, async |sandbox| {
        let snapshots = engine.provider.snapshots()?;
        let taken = take(&engine.provider, sandbox.info()).await?;
        let second = take(&engine.provider, sandbox.info()).await?;
        for id in [&taken.id, &second.id] {
            let described = docker(&["inspect", &format!("eyot-snapshot:{id}")])?;
            ensure!(described.contains(id.as_str()), "it is another image: {described}");
            ensure!(!described.contains("in-the-"), "a variable's value is in the image: {described}");
        }
        let found = snapshots.find(&taken.id).await?.ok_or("it is not found")?;
        ensure_eq!(found.spec.manifest.env.get("OTHER").map(String::as_str), Some("in-the-manifest"));
        ensure_eq!(found.spec.env.get("TOKEN").map(String::as_str), Some("in-the-spec"));
        snapshots.remove(&taken.id).await?;
        Ok(snapshots.remove(&second.id).await?)
    })
    .await
}

async fn a_snapshot_of_another_state_folder_is_not_there(engine: TestEngine) -> Check {
    let folder = tempfile::tempdir()?;
    let other = DockerProvider::new(DockerOptions::node(folder.path()));
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let snapshots = engine.provider.snapshots()?;
        let taken = take(&engine.provider, sandbox.info()).await?;
        ensure!(snapshots.list().await?.iter().any(|one| one.id == taken.id), "it is not listed");
        ensure_eq!(other.snapshots()?.list().await?.len(), 0);
        ensure!(other.snapshots()?.find(&taken.id).await?.is_none(), "another finds it");
        refused!(other.snapshots()?.remove(&taken.id).await, NotFound);
        let spec = above(&taken, spec(BUSYBOX));
        refused!(Sandbox::create(&*other, spec).await, NotFound);
        snapshots.remove(&taken.id).await?;
        ensure!(!snapshots.list().await?.iter().any(|one| one.id == taken.id), "it is still listed");
        Ok(())
    })
    .await?;
    Ok(())
}

async fn files_in_volumes_of_their_own_are_refused_and_nothing_is_left(engine: TestEngine) -> Check {
    let security = Security { readonly_rootfs: true, ..Security::default() };
    with_sandbox(&engine, SandboxSpec { security, ..spec(BUSYBOX) }, async |sandbox| {
        sandbox.write("file", "x").await?;
        let asked = NewSnapshot::of(sandbox.info());
        engine.provider.sleep(sandbox.id().as_str()).await?;
        let refusal = engine.provider.snapshots()?.take(sandbox.id(), asked.clone()).await;
        let refusal = refused!(refusal, Unsupported);
        ensure!(refusal.to_string().contains("in a volume"), "{refusal}");
        ensure_eq!(images_of(&asked.id)?, "");
        ensure_eq!(wake(&engine.provider, sandbox.info()).await?.read("file").await?, "x");
        Ok(())
    })
    .await
}

/// Makes an image with two files in `/work`, and returns its name.
fn image_with_files() -> Check<String> {
    let image = format!("eyot-test-work:{}", std::process::id());
    let container = docker(&["create", BUSYBOX, "none"])?;
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("work"))?;
    for name in ["one", "two"] {
        std::fs::write(folder.path().join("work").join(name), "of the image")?;
    }
    let work = folder.path().join("work").display().to_string();
    let made = docker(&["cp", &work, &format!("{container}:/work")])
        .and_then(|_| docker(&["commit", &container, &image]));
    docker(&["rm", &container])?;
    made.map(|_| image)
}

async fn an_image_with_files_in_the_working_directory_is_kept_unless_some_were_removed(
    engine: TestEngine,
) -> Check {
    let image = image_with_files()?;
    let seen = images_files_are_kept(&engine, &image).await;
    docker(&["rmi", &image])?;
    seen
}

async fn images_files_are_kept(engine: &TestEngine, image: &str) -> Check {
    let asked = || SandboxSpec { workdir: eyot::SandboxPath::parse("/work").ok(), ..spec(image) };
    let snapshots = engine.provider.snapshots()?;
    with_sandbox(engine, asked(), async |sandbox| {
        output(sandbox, "echo mine > added; echo changed > one").await?;
        let taken = take(&engine.provider, sandbox.info()).await?;
        let woken = wake(&engine.provider, sandbox.info()).await?;
        ensure_eq!(output(&woken, "cat added one two; rm two").await?, "mine\nchanged\nof the image");
        // The files are no longer in a volume, so this is kept.
        let second = take(&engine.provider, sandbox.info()).await?;
        let forked = Sandbox::create(&*engine.provider, above(&second, asked())).await?;
        let seen = output(&forked, "ls").await;
        forked.destroy().await?;
        ensure_eq!(seen?, "added\none");
        snapshots.remove(&second.id).await?;
        Ok(snapshots.remove(&taken.id).await?)
    })
    .await?;
    with_sandbox(engine, asked(), async |sandbox| {
        output(sandbox, "rm two").await?;
        let refusal = refused!(take(&engine.provider, sandbox.info()).await, Unsupported);
        ensure!(refusal.to_string().contains("/work/two"), "{refusal}");
        ensure!(
            wake(&engine.provider, sandbox.info()).await.is_ok(),
            "a refused snapshot harmed the sandbox"
        );
        Ok(())
    })
    .await
}

async fn a_fifo_in_place_of_the_users_holds_up_no_fork(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(DEBIAN), async |sandbox| {
        output(sandbox, "rm /etc/passwd /etc/group; mkfifo /etc/passwd /etc/group").await?;
        let taken = take(&engine.provider, sandbox.info()).await?;
        let making = Sandbox::create(&*engine.provider, above(&taken, spec(DEBIAN)));
        let forked = tokio::time::timeout(Duration::from_secs(60), making).await;
        let forked = forked.map_err(|_| "the fork hangs")??;
        let seen = output(&forked, "test -f /etc/passwd && echo file").await;
        forked.destroy().await?;
        ensure_eq!(seen?, "file");
        engine.provider.snapshots()?.remove(&taken.id).await?;
        Ok(())
    })
    .await
}

async fn a_handle_of_before_says_that_its_sandbox_sleeps_and_can_destroy_it(engine: TestEngine) -> Check {
    let sandbox = Sandbox::create(&*engine.provider, spec(BUSYBOX)).await?;
    let taken = take(&engine.provider, sandbox.info()).await?;
    let error = sandbox.read("file").await.err().ok_or("it can be read")?;
    ensure!(error.is_sleeping(), "{error}");
    let woken = wake(&engine.provider, sandbox.info()).await?;
    let error = sandbox.read("file").await.err().ok_or("a handle of before can be used")?;
    ensure!(error.is_sleeping(), "{error}");
    woken.write("file", "x").await?;
    sandbox.destroy().await?;
    refused!(engine.provider.info(sandbox.id().as_str()).await, NotFound);
    Ok(engine.provider.snapshots()?.remove(&taken.id).await?)
}

async fn a_sandbox_whose_container_was_being_replaced_is_found(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("file", "x").await?;
        let taken = take(&engine.provider, sandbox.info()).await?;
        let name = format!("eyot-{}", sandbox.name());
        let renamed = || docker(&["rename", &name, &format!("{name}.next")]);
        renamed()?;
        ensure_eq!(engine.provider.info(sandbox.name().as_str()).await?.id, *sandbox.id());
        renamed()?;
        ensure_eq!(engine.provider.info(sandbox.id().as_str()).await?.id, *sandbox.id());
        renamed()?;
        let listed = engine.provider.list().await?;
        ensure_eq!(listed.iter().filter(|info| info.id == *sandbox.id()).count(), 1);
        let foreign = engine.provider.foreign().await?;
        ensure!(!foreign.iter().any(|one| one.name.contains(sandbox.name().as_str())), "it is foreign");
        ensure_eq!(wake(&engine.provider, sandbox.info()).await?.read("file").await?, "x");
        engine.provider.snapshots()?.remove(&taken.id).await?;
        Ok(())
    })
    .await
}

/// Takes a snapshot through an Engine whose removals go wrong.
async fn taken_without(removals: Removals, sandbox: &Sandbox) -> Check<eyot::Result<SnapshotInfo>> {
    let socket = engine_socket().ok_or("the Engine is not on this host")?;
    let mut proxy = Proxy::new()?;
    let options = DockerOptions { address: Some(proxy.address()), ..DockerOptions::node(state()) };
    proxy.open_without(removals, &socket)?;
    Ok(take(&DockerProvider::new(options), sandbox.info()).await)
}

/// Lists the containers whose names begin as the sandbox's does.
fn containers_of(sandbox: &Sandbox) -> Check<String> {
    docker(&["ps", "-a", "--filter", &format!("name=eyot-{}", sandbox.name()), "--format", "{{.Names}}"])
}

async fn a_sandbox_survives_a_removal_of_its_container_that_is_not_answered(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("file", "x").await?;
        let taken = taken_without(Removals::Unanswered, sandbox).await?;
        ensure_eq!(wake(&engine.provider, sandbox.info()).await?.read("file").await?, "x");
        ensure_eq!(containers_of(sandbox)?, format!("eyot-{}", sandbox.name()));
        engine.provider.snapshots()?.remove(&taken?.id).await?;
        Ok(())
    })
    .await
}

async fn a_sandbox_survives_a_removal_of_its_container_that_is_refused(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("file", "x").await?;
        let refused = taken_without(Removals::Refused, sandbox).await?;
        ensure!(refused.is_err(), "a snapshot was taken: {refused:?}");
        ensure_eq!(wake(&engine.provider, sandbox.info()).await?.read("file").await?, "x");
        // The next one puts right what this one has left.
        let taken = take(&engine.provider, sandbox.info()).await?;
        ensure_eq!(containers_of(sandbox)?, format!("eyot-{}", sandbox.name()));
        ensure_eq!(wake(&engine.provider, sandbox.info()).await?.read("file").await?, "x");
        engine.provider.snapshots()?.remove(&taken.id).await?;
        Ok(())
    })
    .await
}

async fn a_sandbox_that_was_destroyed_does_not_come_back(engine: TestEngine) -> Check {
    let sandbox = Sandbox::create(&*engine.provider, spec(BUSYBOX)).await?;
    let taken = take(&engine.provider, sandbox.info()).await?;
    let name = format!("eyot-{}", sandbox.name());
    let labels = docker(&["inspect", "--format", "{{json .Config.Labels}}", &name])?;
    let labels: BTreeMap<String, String> = serde_json::from_str(&labels)?;
    // Somebody changes snapshots just now, and will have made a container above one when the sandbox is gone.
    let busy = std::fs::File::open(state().join("docker/snapshots.lock"))?;
    busy.lock()?;
    engine.provider.remove(sandbox.id().as_str()).await?;
    let labels: Vec<String> = labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    let (next, image) = (format!("{name}.next"), format!("eyot-snapshot:{}", taken.id));
    let make = || {
        let all = labels.iter().flat_map(|label| ["--label", label.as_str()]);
        let words = ["create", "--name", &next].into_iter().chain(all).chain([image.as_str(), "none"]);
        docker(&words.collect::<Vec<_>>())
    };
    for look in [sandbox.name().as_str(), sandbox.id().as_str()] {
        make()?;
        refused!(engine.provider.info(look).await, NotFound);
        ensure_eq!(containers_of(&sandbox)?, "");
    }
    make()?;
    drop(busy);
    engine.provider.snapshots()?.remove(&taken.id).await?;
    ensure_eq!(containers_of(&sandbox)?, "");
    ensure_eq!(images_of(&taken.id)?, "");
    Ok(())
}

async fn a_create_of_a_name_that_is_between_two_containers_is_refused(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("file", "x").await?;
        let taken = take(&engine.provider, sandbox.info()).await?;
        let name = format!("eyot-{}", sandbox.name());
        docker(&["rename", &name, &format!("{name}.next")])?;
        let same = SandboxSpec { name: Some(sandbox.name().clone()), ..spec(BUSYBOX) };
        refused!(Sandbox::create(&*engine.provider, same).await, AlreadyExists);
        ensure_eq!(wake(&engine.provider, sandbox.info()).await?.read("file").await?, "x");
        engine.provider.snapshots()?.remove(&taken.id).await?;
        Ok(())
    })
    .await
}

async fn a_file_of_holes_is_refused_before_anything_is_written(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        output(sandbox, "truncate -s 40G /holes").await?;
        let refused = take(&engine.provider, sandbox.info()).await;
        let refused = refused!(refused, TooLarge);
        ensure!(refused.hint().is_some_and(|hint| hint.contains("holes")), "{refused:?}");
        ensure_eq!(
            output(&wake(&engine.provider, sandbox.info()).await?, "rm /holes; echo gone").await?,
            "gone"
        );
        let taken = take(&engine.provider, sandbox.info()).await?;
        engine.provider.snapshots()?.remove(&taken.id).await?;
        Ok(())
    })
    .await
}

async fn a_sandbox_above_many_layers_has_snapshots_still(engine: TestEngine) -> Check {
    // An Engine puts some 125 layers on one another.
    const MANY: usize = 130;
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let snapshots = engine.provider.snapshots()?;
        engine.provider.sleep(sandbox.id().as_str()).await?;
        let mut taken = Vec::new();
        for number in 0..MANY {
            if number >= MANY - 2 {
                let woken = wake(&engine.provider, sandbox.info()).await?;
                output(&woken, &format!("echo {number} > n{number}")).await?;
            }
            taken.push(take(&engine.provider, sandbox.info()).await?);
        }
        let parents: Vec<_> = taken.iter().map(|one| one.parent.clone()).collect();
        let expected: Vec<_> =
            [None].into_iter().chain(taken.iter().map(|one| Some(one.id.clone()))).collect();
        ensure_eq!(parents, expected[..MANY]);
        snapshots.roll_back(sandbox.id(), &taken[MANY - 2].id).await?;
        let woken = wake(&engine.provider, sandbox.info()).await?;
        ensure_eq!(output(&woken, "ls").await?, format!("n{}", MANY - 2));
        for snapshot in taken {
            snapshots.remove(&snapshot.id).await?;
        }
        Ok(())
    })
    .await
}

/// Takes, goes back to and removes snapshots of a sleeping sandbox until it is killed. A line says what was acknowledged.
pub async fn work(arguments: &[String]) -> ExitCode {
    let provider = DockerProvider::new(DockerOptions::node(state()));
    match work_on(&provider, &arguments[0]).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("failed {error}");
            ExitCode::FAILURE
        }
    }
}

async fn work_on(provider: &Arc<DockerProvider>, sandbox: &str) -> eyot::Result<()> {
    let info = provider.info(sandbox).await?;
    let snapshots = provider.snapshots()?;
    println!("begun -");
    loop {
        let [one, other] = [take(provider, &info).await?, take(provider, &info).await?];
        println!("taken {}", one.id);
        println!("taken {}", other.id);
        snapshots.roll_back(&info.id, &one.id).await?;
        println!("removing {}", other.id);
        snapshots.remove(&other.id).await?;
    }
}

async fn a_killed_process_loses_no_snapshot_and_leaves_nothing(engine: TestEngine) -> Check {
    const ROUNDS: u64 = 12;
    let id = with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("file", "x").await?;
        engine.provider.sleep(sandbox.id().as_str()).await?;
        let snapshots = engine.provider.snapshots()?;
        let mut seen = Vec::new();
        for round in 0..ROUNDS {
            let (kept, removed) =
                killed_work(sandbox.id().as_str(), Duration::from_millis(37 + 173 * round))?;
            let there = snapshots.list().await?;
            for id in kept.iter().filter(|id| !removed.contains(id)) {
                ensure!(there.iter().any(|one| one.id.as_str() == id), "round {round} lost snapshot {id}");
            }
            ensure_eq!(wake(&engine.provider, sandbox.info()).await?.read("file").await?, "x");
            engine.provider.sleep(sandbox.id().as_str()).await?;
            let of_it = there.into_iter().filter(|one| one.sandbox == *sandbox.id());
            seen.extend(of_it.map(|one| one.id));
        }
        seen.sort();
        seen.dedup();
        for id in &seen {
            match snapshots.remove(id).await {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        Ok(sandbox.id().clone())
    })
    .await?;
    let left = || -> Check<String> {
        let images = docker(&["images", "-aq", "--filter", &format!("label=dev.eyot.sandbox={id}")])?;
        let containers = docker(&["ps", "-aq", "--filter", &format!("label=dev.eyot.id={id}")])?;
        Ok(images + &containers)
    };
    // Whoever changes snapshots next removes what another kept from being removed.
    until("the end of all that it has left", async || {
        let unknown = engine.provider.snapshots()?.remove(&SnapshotId::generate()).await;
        refused!(unknown, NotFound);
        Ok(left()?.is_empty())
    })
    .await
}

/// Has another process work on the snapshots of a sandbox, and kills it so long after its beginning. Returns the snapshots that
/// it has acknowledged, and those that it was about to remove.
fn killed_work(sandbox: &str, after: Duration) -> Check<(Vec<String>, Vec<String>)> {
    let mut child =
        Command::new(std::env::current_exe()?).args([WORK, sandbox]).stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("it has no output")?);
    let mut lines = lines.lines();
    ensure!(lines.next().transpose()?.as_deref() == Some("begun -"), "it does not begin");
    std::thread::sleep(after);
    child.kill()?;
    child.wait()?;
    let (mut taken, mut removed) = (Vec::new(), Vec::new());
    for line in lines {
        let line = line?;
        match line.split_once(' ') {
            Some(("taken", id)) => taken.push(id.to_owned()),
            Some(("removing", id)) => removed.push(id.to_owned()),
            _ => return Err(format!("it fails: {line}").into()),
        }
    }
    Ok((taken, removed))
}

async fn a_commit_is_an_image_for_everybody_and_takes_no_name_of_somebody_elses(engine: TestEngine) -> Check {
    const NAME: &str = "eyot-test-commit:1";
    let run = |line: &str| docker(&["run", "--rm", "--network=none", NAME, "sh", "-c", line]);
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        output(sandbox, "echo one > /tmp/one").await?;
        let first = take(&engine.provider, sandbox.info()).await?;
        let snapshots = engine.provider.snapshots()?;
        let image = |name: &str, max_bytes| NewImage { reference: name.to_owned(), max_bytes };
        refused!(snapshots.commit(&first.id, &image(BUSYBOX, None)).await, Conflict);
        refused!(snapshots.commit(&first.id, &image(NAME, Some(0))).await, TooLarge);
        snapshots.commit(&first.id, &image(NAME, None)).await?;
        ensure_eq!(run("cat /tmp/one")?, "one");
        // The name passes to a later one, and stays when the snapshots have gone.
        let woken = wake(&engine.provider, sandbox.info()).await?;
        output(&woken, "echo two > /tmp/two").await?;
        let second = take(&engine.provider, sandbox.info()).await?;
        snapshots.commit(&second.id, &image(NAME, None)).await?;
        for snapshot in [&first, &second] {
            snapshots.remove(&snapshot.id).await?;
        }
        let own = format!("eyot-snapshot:{}", second.id);
        ensure!(docker(&["image", "inspect", &own]).is_err(), "the image still has the snapshot's name");
        ensure_eq!(run("cat /tmp/one /tmp/two")?, "one\ntwo");
        // What anybody runs from it is no sandbox, and nobody's to adopt.
        let container = docker(&["create", "--network=none", NAME, "true"])?;
        let foreign = engine.provider.foreign().await?;
        let name = docker(&["inspect", "--format", "{{.Name}}", &container])?;
        docker(&["rm", &container])?;
        ensure!(!foreign.iter().any(|one| name.ends_with(&one.name)), "{name} counts as a sandbox");
        docker(&["rmi", "-f", NAME])?;
        Ok(())
    })
    .await
}
