//! A4: labels that were forged, copied, or written by another state folder make no sandbox. A
//! container or volume with such labels is shown as foreign. It is neither used nor removed, and is
//! adopted only by an explicit call.

use std::sync::Arc;

use eyot::{Sandbox, SandboxName, SandboxProvider, SandboxSpec, WorkspaceSpec};
use eyot_providers::docker::{DockerOptions, DockerProvider, ForeignKind};
use tempfile::TempDir;

use crate::check::{Check, docker, ensure, ensure_eq, inspected, output, refused, with_sandbox};
use crate::engine::{BUSYBOX, TestEngine, spec, tests};
use crate::raw::create_container;

tests! {
    a4_an_image_that_forges_a_record_is_no_sandbox_and_has_no_workspace_removed(BUSYBOX);
    a4_a_forged_record_with_everything_but_the_mac_is_no_sandbox(BUSYBOX);
    a4_labels_that_docker_commit_has_copied_are_no_sandbox_under_any_name(BUSYBOX);
    a4_an_images_labels_neither_win_over_a_sandboxs_nor_add_to_them(BUSYBOX);
    a4_a_container_that_eyot_did_not_make_is_said_to_be_that(BUSYBOX);
    a4_the_sandboxes_of_another_state_folder_are_foreign_and_left_alone(BUSYBOX);
    a4_a_workspace_of_another_state_folder_is_neither_used_nor_removed(BUSYBOX);
    a4_a_container_from_before_is_used_only_once_it_is_adopted(BUSYBOX);
    a4_a_container_of_another_state_folder_is_adopted_once_it_has_stopped(BUSYBOX);
}

/// A provider with a state folder of its own.
struct Other {
    provider: Arc<DockerProvider>,
    _state: TempDir,
}

impl Other {
    fn new() -> Check<Self> {
        let state = tempfile::tempdir()?;
        let provider = DockerProvider::new(DockerOptions::node(state.path()));
        Ok(Self { provider, _state: state })
    }
}

fn named(what: &str) -> Check<SandboxName> {
    Ok(SandboxName::parse(&format!("eyot-test-{what}-{}", std::process::id()))?)
}

/// A persistent workspace that is removed with its sandbox.
fn workspace(id: &str) -> WorkspaceSpec {
    WorkspaceSpec::Persistent { id: id.to_owned(), destroy_on_session_destroy: true }
}

async fn is_foreign(provider: &DockerProvider, kind: ForeignKind, name: &str) -> Check<bool> {
    let foreign = provider.foreign().await?;
    Ok(foreign.iter().any(|foreign| foreign.kind == kind && foreign.name == name))
}

/// Checks that a container is no sandbox: it is not listed, found or removed, and still exists
/// afterwards.
async fn ensure_foreign(provider: &DockerProvider, name: &SandboxName, id: &str) -> Check {
    let container = format!("eyot-{name}");
    let listed = provider.list().await?;
    ensure!(listed.iter().all(|info| info.name != *name), "it is listed");
    for known_as in [name.as_str(), id] {
        refused!(provider.open(known_as).await, NotFound);
        refused!(provider.info(known_as).await, NotFound);
        refused!(provider.wake(known_as).await, NotFound);
        refused!(provider.sleep(known_as).await, NotFound);
        refused!(provider.remove(known_as).await, NotFound);
    }
    let wanted = SandboxSpec { name: Some(name.clone()), ..spec(BUSYBOX) };
    refused!(Sandbox::create(provider, wanted).await, AlreadyExists);
    ensure!(is_foreign(provider, ForeignKind::Container, &container).await?, "it is not shown as foreign");
    docker(&["inspect", &container]).map(drop)
}

/// Returns a record of version 1, of a sandbox whose time is over and that takes this workspace
/// along.
fn forged_record(name: &SandboxName, id: &str, workspace: &str) -> String {
    format!(
        r#"{{"id":"{id}","name":"{name}","created_ms":1000,"spec":{{"lifecycle":{{"ttl_ms":1}},"workspace":{{"mode":"persistent","id":"{workspace}","destroy_on_session_destroy":true}}}},"secret":{secret:?},"user":"0","env":[],"made_workspace":true}}"#,
        secret = [7; 32]
    )
}

/// Returns labels with this record and without a signature.
fn forged_labels(schema: &str, name: &SandboxName, id: &str, workspace: &str) -> Vec<(String, String)> {
    let record = forged_record(name, id, workspace);
    let labels = [("schema", schema), ("id", id), ("name", name.as_str()), ("record", &record)];
    labels.map(|(key, value)| (format!("dev.eyot.{key}"), value.to_owned())).into()
}

/// An image with these labels. It is removed when this is dropped.
struct Image(String);

impl Image {
    fn with_labels(what: &str, labels: &[(String, String)]) -> Check<Self> {
        let tag = format!("eyot-test-{what}:{}", std::process::id());
        let container = docker(&["create", "--network", "none", BUSYBOX, "true"])?;
        let changes: Vec<String> =
            labels.iter().map(|(key, value)| format!("--change=LABEL {key}={value:?}")).collect();
        let mut arguments = vec!["commit"];
        arguments.extend(changes.iter().map(String::as_str));
        arguments.extend([container.as_str(), &tag]);
        let committed = docker(&arguments);
        docker(&["rm", &container])?;
        committed.map(|_| Self(tag))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Err(error) = docker(&["rmi", "-f", &self.0]) {
            eprintln!("an image is left: {}", error.message().unwrap_or_default());
        }
    }
}

async fn a4_an_image_that_forges_a_record_is_no_sandbox_and_has_no_workspace_removed(
    engine: TestEngine,
) -> Check {
    let name = named("forged")?;
    let (id, victim) = (eyot::SandboxId::generate(), format!("victim-{}", std::process::id()));
    let owner = SandboxSpec { workspace: workspace(&victim), ..spec(BUSYBOX) };
    with_sandbox(&engine, owner, async |owner| {
        owner.write("note", "kept").await?;
        engine.provider.sleep(owner.id().as_str()).await?;
        for schema in ["1", "2"] {
            let image = Image::with_labels("forged", &forged_labels(schema, &name, id.as_str(), &victim))?;
            let container = format!("eyot-{name}");
            docker(&["run", "--network", "none", "--name", &container, &image.0, "true"])?;
            let tried = ensure_foreign(&engine.provider, &name, id.as_str()).await;
            docker(&["rm", "-v", &container])?;
            tried?;
        }
        let woken = Sandbox::wake(&*engine.provider, owner.id().as_str()).await?;
        ensure_eq!(woken.read_text("note").await?, "kept");
        Ok(())
    })
    .await
}

/// Forges a container that is like Eyot's in everything but the MAC, the guest's mount included.
async fn a4_a_forged_record_with_everything_but_the_mac_is_no_sandbox(engine: TestEngine) -> Check {
    let (name, id) = (named("unsigned")?, eyot::SandboxId::generate());
    with_sandbox(&engine, spec(BUSYBOX), async |model| {
        let container = format!("eyot-{name}");
        let model = format!("eyot-{}", model.name());
        for (mac, state) in [(None, None), (Some("00".repeat(32)), None), (Some(String::new()), Some(""))] {
            let mut labels = forged_labels("2", &name, id.as_str(), "w");
            labels.extend(mac.map(|mac| ("dev.eyot.mac".to_owned(), mac)));
            labels.extend(state.map(|state| ("dev.eyot.state".to_owned(), state.to_owned())));
            create_container(&container, &model, &labels)?;
            let tried = ensure_foreign(&engine.provider, &name, id.as_str()).await;
            docker(&["rm", "-v", &container])?;
            tried?;
        }
        Ok(())
    })
    .await
}

async fn a4_labels_that_docker_commit_has_copied_are_no_sandbox_under_any_name(engine: TestEngine) -> Check {
    let (name, copied) = (named("original")?, named("copied")?);
    let tag = format!("eyot-test-copied:{}", std::process::id());
    let wanted = SandboxSpec { name: Some(name.clone()), ..spec(BUSYBOX) };
    let id = with_sandbox(&engine, wanted, async |sandbox| {
        docker(&["commit", &format!("eyot-{name}"), &tag])?;
        let container = format!("eyot-{copied}");
        // It is told from its original by its name.
        create_container(&container, &format!("eyot-{name}"), &[])?;
        let tried = ensure_no_sandbox(&engine.provider, &copied).await;
        docker(&["rm", "-v", &container])?;
        tried.map(|()| sandbox.id().to_string())
    })
    .await?;
    let image = Image(tag);
    // The original is gone, and its name is free.
    let container = format!("eyot-{name}");
    docker(&["create", "--network", "none", "--name", &container, &image.0])?;
    let tried = ensure_foreign(&engine.provider, &name, &id).await;
    docker(&["rm", "-v", &container])?;
    tried
}

/// Checks the same as [`ensure_foreign`], for a container whose labels have another sandbox's id.
async fn ensure_no_sandbox(provider: &DockerProvider, name: &SandboxName) -> Check {
    refused!(provider.open(name.as_str()).await, NotFound);
    refused!(provider.remove(name.as_str()).await, NotFound);
    let container = format!("eyot-{name}");
    ensure!(is_foreign(provider, ForeignKind::Container, &container).await?, "it is not foreign");
    docker(&["inspect", &container]).map(drop)
}

async fn a4_an_images_labels_neither_win_over_a_sandboxs_nor_add_to_them(engine: TestEngine) -> Check {
    let mut labels = forged_labels("1", &named("image")?, "forged", "w");
    labels.push(("dev.eyot.metadata.team".to_owned(), "red".to_owned()));
    labels.push(("org.example.team".to_owned(), "blue".to_owned()));
    let image = Image::with_labels("labels", &labels)?;
    let wanted = SandboxSpec { image: Some(image.0.clone()), ..spec(BUSYBOX) };
    with_sandbox(&engine, wanted, async |sandbox| {
        let label = |key: &str| inspected(sandbox, &format!("{{{{index .Config.Labels \"{key}\"}}}}"));
        ensure_eq!(label("dev.eyot.id")?, sandbox.id().as_str());
        ensure_eq!(label("dev.eyot.metadata.team")?, "");
        ensure_eq!(label("org.example.team")?, "blue");
        ensure!(!label("dev.eyot.record")?.contains("secret"), "a label holds a secret");
        let found = Sandbox::open(&*engine.provider, sandbox.name().as_str()).await?;
        ensure_eq!(output(&found, "echo alive").await?, "alive");
        Ok(())
    })
    .await
}

async fn a4_a_container_that_eyot_did_not_make_is_said_to_be_that(_: TestEngine) -> Check {
    let (other, name) = (Other::new()?, named("unrelated")?);
    let container = format!("eyot-{name}");
    docker(&["create", "--name", &container, BUSYBOX, "true"])?;
    let tried = async {
        let wanted = SandboxSpec { name: Some(name.clone()), ..spec(BUSYBOX) };
        let told = |error: eyot::Error| format!("{error} {}", error.hint().unwrap_or_default());
        let taken = Sandbox::create(&*other.provider, wanted).await.err().map(told).unwrap_or_default();
        ensure!(taken.contains("Eyot did not make") && taken.contains("docker rename"), "{taken}");
        let absent = other.provider.open(name.as_str()).await.err().map(told).unwrap_or_default();
        ensure!(absent.contains("Eyot did not make") && !absent.contains("adopt"), "{absent}");
        let refused = other.provider.adopt(name.as_str()).await.err().map(told).unwrap_or_default();
        ensure!(refused.contains("Eyot did not make"), "{refused}");
        ensure!(!is_foreign(&other.provider, ForeignKind::Container, &container).await?, "it is shown");
        docker(&["inspect", &container]).map(drop)
    };
    let came_to = tried.await;
    docker(&["rm", &container])?;
    came_to
}

async fn a4_the_sandboxes_of_another_state_folder_are_foreign_and_left_alone(engine: TestEngine) -> Check {
    let other = Other::new()?;
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        ensure_foreign(&other.provider, sandbox.name(), sandbox.id().as_str()).await?;
        engine.provider.sleep(sandbox.name().as_str()).await?;
        ensure_foreign(&other.provider, sandbox.name(), sandbox.id().as_str()).await?;
        let container = format!("eyot-{}", sandbox.name());
        ensure!(
            !is_foreign(&engine.provider, ForeignKind::Container, &container).await?,
            "it is foreign to its own"
        );
        let woken = Sandbox::wake(&*engine.provider, sandbox.name().as_str()).await?;
        ensure_eq!(output(&woken, "echo alive").await?, "alive");
        Ok(())
    })
    .await
}

async fn a4_a_workspace_of_another_state_folder_is_neither_used_nor_removed(engine: TestEngine) -> Check {
    let other = Other::new()?;
    let id = format!("shared-{}", std::process::id());
    let volume = format!("eyot-workspace-{id}");
    let wanted = SandboxSpec { workspace: workspace(&id), ..spec(BUSYBOX) };
    with_sandbox(&engine, wanted.clone(), async |_| {
        refused!(Sandbox::create(&*other.provider, wanted.clone()).await, Conflict);
        ensure!(is_foreign(&other.provider, ForeignKind::Volume, &volume).await?, "it is not foreign");
        Ok(())
    })
    .await?;
    ensure!(docker(&["inspect", &volume]).is_err(), "its own sandbox did not take it along");
    // One that somebody made by hand, without labels.
    docker(&["volume", "create", &volume])?;
    let tried = async {
        refused!(Sandbox::create(&*engine.provider, wanted.clone()).await, Conflict);
        engine.provider.adopt(&volume).await?;
        Sandbox::create(&*engine.provider, wanted).await?.destroy().await?;
        ensure!(docker(&["inspect", &volume]).is_err(), "an adopted one stays");
        Check::Ok(())
    };
    let tried = tried.await;
    docker(&["volume", "rm", "-f", &volume])?;
    tried
}

async fn a4_a_container_from_before_is_used_only_once_it_is_adopted(engine: TestEngine) -> Check {
    let (name, id) = (named("before")?, eyot::SandboxId::generate());
    let (container, victim) = (format!("eyot-{name}"), format!("before-{}", std::process::id()));
    docker(&["volume", "create", &format!("eyot-workspace-{victim}")])?;
    let record = forged_record(&name, id.as_str(), &victim).replace(r#""ttl_ms":1}"#, r#""ttl_ms":null}"#);
    let mut labels = forged_labels("1", &name, id.as_str(), &victim);
    labels.retain(|(key, _)| key != "dev.eyot.record");
    labels.push(("dev.eyot.record".to_owned(), record));
    let tried = with_sandbox(&engine, spec(BUSYBOX), async |model| {
        create_container(&container, &format!("eyot-{}", model.name()), &labels)?;
        ensure_foreign(&engine.provider, &name, id.as_str()).await?;
        docker(&["start", &container])?;
        let adopted = engine.provider.adopt(name.as_str()).await?;
        ensure_eq!(adopted.id.as_ref(), Some(&id));
        ensure_eq!(adopted.foreign_volume, Some(format!("eyot-workspace-{victim}")));
        refused!(engine.provider.adopt(name.as_str()).await, Conflict);
        let sandbox = Sandbox::open(&*engine.provider, id.as_str()).await?;
        ensure_eq!(output(&sandbox, "echo alive").await?, "alive");
        ensure!(!is_foreign(&engine.provider, ForeignKind::Container, &container).await?, "it is foreign");
        sandbox.destroy().await?;
        ensure!(docker(&["inspect", &container]).is_err(), "it was not removed");
        // The volume was not adopted: a record alone has none removed.
        docker(&["inspect", &format!("eyot-workspace-{victim}")]).map(drop)
    })
    .await;
    docker(&["volume", "rm", "-f", &format!("eyot-workspace-{victim}")])?;
    tried
}

async fn a4_a_container_of_another_state_folder_is_adopted_once_it_has_stopped(engine: TestEngine) -> Check {
    let other = Other::new()?;
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("note", "kept").await?;
        let container = format!("eyot-{}", sandbox.name());
        let error = refused!(other.provider.adopt(sandbox.name().as_str()).await, Conflict);
        ensure!(error.hint().is_some_and(|hint| hint.contains("docker stop")), "{:?}", error.hint());
        docker(&["stop", &container])?;
        other.provider.adopt(sandbox.id().as_str()).await?;
        let woken = Sandbox::wake(&*other.provider, sandbox.name().as_str()).await?;
        ensure_eq!(woken.read_text("note").await?, "kept");
        woken.destroy().await?;
        ensure!(docker(&["inspect", &container]).is_err(), "it was not removed");
        refused!(other.provider.adopt("eyot-test-nobody-made-this").await, NotFound);
        Ok(())
    })
    .await
}
