//! Making a sandbox. The parts made so far are removed when a step fails, and when the caller gives
//! up.

use std::sync::Arc;

use bollard::query_parameters::{CreateContainerOptionsBuilder, StartContainerOptions};
use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxOperationUnsupported, SandboxSpec, ValidSpec};

use super::condition::Condition;
use super::connect::Running;
use super::driver::Ready;
use super::engine::{Engine, is_conflict};
use super::find::{self, Found, Looked};
use super::host::Host;
use super::image::EngineImage;
use super::kept_snapshot::{self, SnapshotNote};
use super::labels::{self, LowerSnapshot, Record};
use super::removal::await_removal;
use super::seal::Seal;
use super::{accounts, container, destroy, image, isolation, successor, workspace};

/// Makes a sandbox. The files of its manifest are still missing.
pub(crate) async fn create(host: &Arc<Host>, spec: &ValidSpec) -> Result<Ready> {
    let (image, kept) = prepare(host, spec).await.map_err(Error::with_no_effect)?;
    let _turn = host.turns.acquire().await;
    let made_workspace = workspace::claim(host, spec.spec()).await?;
    let record = record(host.state.open().await?.seal(), spec, &image, made_workspace);
    let record = Arc::new(kept.iter().fold(record, above_snapshot));
    let unfinished = UnfinishedContainer::make_whole(host, &record, &image).await?;
    match begin(host, &record, &unfinished.container).await {
        Ok(ready) => {
            unfinished.finish();
            Ok(ready)
        }
        Err(error) => {
            unfinished.undo().await;
            Err(error)
        }
    }
}

/// Does what comes before anything of the sandbox is there, and returns its image and the snapshot that this is.
async fn prepare(host: &Host, spec: &ValidSpec) -> Result<(EngineImage, Option<SnapshotNote>)> {
    refuse_what_docker_cannot(spec.spec())?;
    let engine = &host.engine;
    let declared = isolation::declared(spec.spec(), engine.facts().await?);
    isolation::check_required(spec.spec(), &declared).map_err(|error| error.context("create sandbox"))?;
    check_runtime(engine, spec.spec()).await?;
    let (image, kept) = match &spec.spec().snapshot {
        Some(id) => {
            let kept = kept_snapshot::usable(host, id).await?;
            let image = image::find(engine, kept.image.as_deref().unwrap_or_default()).await?;
            (image.ok_or_else(|| kept_snapshot::not_found(id))?, Some(kept))
        }
        None => {
            let name = spec.spec().image.as_deref().unwrap_or(&host.default_image);
            (image::resolve(engine, name, spec.spec().container.pull, &host.fetchable).await?, None)
        }
    };
    host.place_guest(kept.as_ref().map_or(&image.id, |kept| &kept.root_image)).await?;
    Ok((image, kept))
}

/// Adds to a record that its container lies above a snapshot.
fn above_snapshot(record: Record, kept: &SnapshotNote) -> Record {
    let base = LowerSnapshot {
        snapshot: kept.info.id.clone(),
        root_image: kept.root_image.clone(),
        has_workdir: kept.gives_workdir_to(&record.spec),
        replaces: false,
        follows: None,
    };
    // A wake needs the snapshot no more.
    let spec = SandboxSpec { image: Some(kept.image_name.clone()), snapshot: None, ..record.spec };
    Record { spec, base: Some(base), ..record }
}

/// Starts the container, and returns when its guest is ready.
async fn begin(host: &Arc<Host>, record: &Arc<Record>, container: &str) -> Result<Ready> {
    let engine = &host.engine;
    refuse_taken_id(host, record, container).await?;
    if record.base.is_some() && !record.spec.security.readonly_rootfs {
        accounts::make_harmless(engine, container).await?;
    }
    start(engine, container).await.map_err(|error| error.context("create sandbox"))?;
    let found = find::inspect(host, container).await?.ok_or_else(|| Error::destroyed(&record.name))?;
    let Condition::Running(life) = found.condition else {
        let reason = "create sandbox: its guest ended at once; `docker logs` of the container says why";
        return Err(Error::new(ErrorKind::Setup, reason));
    };
    let running = Running { record: Arc::clone(record), container: container.to_owned(), life };
    let connection = running.connect(host, true).await?;
    Ready::new(host, running, connection).await.map_err(|error| error.context("create sandbox"))
}

/// Starts a container. A container that runs is no error.
pub(crate) async fn start(engine: &Engine, container: &str) -> Result<()> {
    let started = engine.client().await?.start_container(container, None::<StartContainerOptions>).await;
    started.map_err(|error| engine.failed("start the container", error))
}

fn record(seal: &Seal, spec: &ValidSpec, image: &EngineImage, made_workspace: bool) -> Record {
    let created_ms = now_ms();
    Record {
        id: spec.id().clone(),
        name: spec.name().clone(),
        created_ms,
        spec: Record::recorded(spec.spec()),
        guest_secret: seal.guest_secret(spec.id().as_str(), created_ms),
        user: spec.spec().user.clone().unwrap_or_else(|| image.user.clone()),
        env: image.env.clone(),
        hidden: None,
        made_workspace,
        base: None,
    }
}

/// Refuses an id that an earlier container has. The Engine keeps names unique; ids are kept so by
/// this check, which runs when the container exists. Of two simultaneous creates at least one sees
/// the other, and both agree which is earlier.
async fn refuse_taken_id(host: &Host, record: &Record, container: &str) -> Result<()> {
    let all = find::by_id(host, &record.id).await?;
    let Some(own) = all.iter().find(|found| found.container == container) else {
        return Err(Error::destroyed(&record.name));
    };
    let is_earlier = |other: &&Found| (&other.made_at, &other.container) < (&own.made_at, &own.container);
    match all.iter().find(is_earlier) {
        Some(_) => Err(taken(format!("the id `{}` is in use", record.id))),
        None => Ok(()),
    }
}

fn taken(reason: String) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("create sandbox: {reason}"))
}

/// A container of a create that is not done. Dropping it, because the caller gave up, removes the
/// container.
struct UnfinishedContainer {
    host: Arc<Host>,
    record: Arc<Record>,
    container: String,
    armed: bool,
}

impl UnfinishedContainer {
    /// Makes the container in a task of its own. The Engine makes it even if no caller waits for
    /// the answer any more, so if this is dropped before, the task removes the container.
    async fn make_whole(host: &Arc<Host>, record: &Arc<Record>, image: &EngineImage) -> Result<Self> {
        let (host, record, image) = (Arc::clone(host), Arc::clone(record), image.clone());
        let made = tokio::spawn(async move { Self::make(&host, &record, &image).await });
        made.await.map_err(|error| {
            Error::new(ErrorKind::Internal, "create sandbox: a task ended early").with_source(error)
        })?
    }

    async fn make(host: &Arc<Host>, record: &Arc<Record>, image: &EngineImage) -> Result<Self> {
        match make_container(host, record, image).await {
            Ok(container) => {
                let (host, record) = (Arc::clone(host), Arc::clone(record));
                Ok(Self { host, record, container, armed: true })
            }
            Err(error) => {
                forget_workspace(host, record).await;
                Err(error)
            }
        }
    }

    fn finish(mut self) {
        self.armed = false;
    }

    async fn undo(mut self) {
        undo(&self.host, &self.record, &self.container).await;
        // Not before: a caller that gives up meanwhile leaves the removal to the drop.
        self.armed = false;
    }
}

impl Drop for UnfinishedContainer {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (host, record, container) =
            (Arc::clone(&self.host), Arc::clone(&self.record), std::mem::take(&mut self.container));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { undo(&host, &record, &container).await })),
            Err(_) => tracing::warn!(sandbox = %record.id, "a sandbox was abandoned while it was being made"),
        }
    }
}

async fn undo(host: &Host, record: &Record, container: &str) {
    if let Err(error) = destroy::abandon(host, record, container).await {
        tracing::warn!(sandbox = %record.id, %error, "a sandbox whose create failed could not be removed");
    }
}

async fn forget_workspace(host: &Host, record: &Record) {
    let eyot::WorkspaceSpec::Persistent { id, .. } = &record.spec.workspace else { return };
    if record.made_workspace
        && let Err(error) = workspace::remove(host, id).await
    {
        tracing::warn!(sandbox = %record.id, %error, "a workspace whose create failed could not be removed");
    }
}

/// Makes the container. Its name is the claim on the sandbox's name. A sandbox of that name whose
/// time is over is removed first.
async fn make_container(host: &Host, record: &Record, image: &EngineImage) -> Result<String> {
    let (engine, state) = (&host.engine, host.state.open().await?);
    let (docker, facts) = (engine.client().await?, engine.facts().await?);
    if state.had_snapshots() {
        // A sandbox of that name may be between its container and the one that takes the place of that.
        successor::complete(host, record.name.as_str()).await?;
    }
    let options = CreateContainerOptionsBuilder::default().name(&record.container_name()).build();
    for is_last in [false, true] {
        let body = container::body(record, image, state.seal(), facts)?;
        match docker.create_container(Some(options.clone()), body).await {
            Ok(made) => return Ok(made.id),
            Err(error) if is_conflict(&error) => {
                if is_last || !remove_ended(host, record).await? {
                    return Err(taken(format!("the name `{}` is in use", record.name)).with_source(error));
                }
            }
            Err(error) => return Err(engine.failed("create sandbox: make its container", error)),
        }
    }
    Err(taken(format!("the name `{}` is in use", record.name)))
}

/// Removes a sandbox of the same name whose time is over. Returns whether there was one.
async fn remove_ended(host: &Host, record: &Record) -> Result<bool> {
    match find::look(host, &record.container_name()).await? {
        Looked::Ours(found) if found.condition == Condition::Over => {
            destroy::destroy(host, &found.record, &found.container).await?;
            Ok(true)
        }
        // Another container may be about to take its place.
        Looked::Ours(found) if found.condition == Condition::Going => {
            await_removal(&host.engine, &found.container).await?;
            if host.state.open().await?.had_snapshots() {
                successor::complete(host, record.name.as_str()).await?;
            }
            Ok(true)
        }
        Looked::Ours(_) => Ok(false),
        Looked::Foreign => {
            let name = record.container_name();
            Err(taken(format!("the Engine has a container `{name}` that is not of this state folder"))
                .with_hint("use another name; `eyot --provider docker ls` shows whose it is"))
        }
        Looked::Unrelated => {
            let name = record.container_name();
            Err(taken(format!("the Engine has a container `{name}` that Eyot did not make"))
                .with_hint(format!("use another name, or rename that container: docker rename {name} NAME")))
        }
        // Removed since.
        Looked::Absent => Ok(true),
    }
}

async fn check_runtime(engine: &Engine, spec: &SandboxSpec) -> Result<()> {
    let Some(runtime) = &spec.container.runtime else { return Ok(()) };
    let known = &engine.facts().await?.runtimes;
    // Names of containerd's shims need not be configured.
    if known.contains(runtime) || runtime.starts_with("io.containerd.") {
        return Ok(());
    }
    let mut names: Vec<&str> = known.iter().map(String::as_str).collect();
    names.sort_unstable();
    Err(Error::invalid(
        "container.runtime",
        format!("is not one of the Engine's ({}): `{runtime}`", names.join(", ")),
    ))
}

/// Refuses a spec that asks for something that Docker can't do. Nothing is made before.
fn refuse_what_docker_cannot(spec: &SandboxSpec) -> Result<()> {
    let refuse = |option: &str, hint: &str| {
        let refused = SandboxOperationUnsupported::new("create", super::NAME, &[option]);
        Err(Error::from(refused).with_hint(hint))
    };
    labels::check(spec)?;
    match () {
        () if !spec.mounts.is_empty() => {
            refuse("mounts", "`eyot cp` copies files in; native sandboxes have folders of the host")
        }
        () if spec.egress != eyot::EgressRules::default() => {
            refuse("egress", "--net bridge has no rules; native sandboxes have them")
        }
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_docker_cannot_do_is_refused_before_anything_is_made() {
        for (json, named) in [
            (r#"{"mounts":[{"source":"/srv","target":"/mnt"}]}"#, "mounts"),
            (r#"{"network":true,"egress":{"allow":["example.com"]}}"#, "egress"),
        ] {
            let error = refuse_what_docker_cannot(&serde_json::from_str(json).unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.to_string(), format!("docker does not support create with \"{named}\""));
            assert!(error.hint().is_some_and(|hint| hint.contains("native")), "{error:?}");
        }
        let error =
            refuse_what_docker_cannot(&serde_json::from_str(r#"{"labels":{"dev.eyot.id":"x"}}"#).unwrap());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    }
}
