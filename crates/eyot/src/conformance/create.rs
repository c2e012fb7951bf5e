//! Making, finding and listing sandboxes: a name or an id belongs to one, a refusal harms no
//! sandbox and leaves nothing, the manifest is there when the sandbox is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;

use super::check::{
    Check, Disposable, Failure, cases, ensure, ensure_eq, ensure_fails, output, promptly, unique_name,
    with_spec,
};
use super::{Fixture, check};
use crate::capabilities::{Capabilities, Capability};
use crate::created::{SandboxInfo, SandboxStatus};
use crate::path::SandboxPath;
use crate::provider::SandboxProvider;
use crate::sandbox::Sandbox;
use crate::spec::{
    IdleAction, Limits, Manifest, Mount, NetworkMode, SandboxId, SandboxName, SandboxSpec, SnapshotId,
    WorkspaceSpec,
};

cases! {
    a_new_sandbox_is_listed_and_can_be_opened_by_id_and_by_name(fixture) needs [];
    one_sandbox_is_told_as_the_list_tells_it_until_it_is_gone(fixture) needs [];
    a_sandbox_tells_what_it_was_made_from(fixture) needs [];
    a_taken_name_is_refused_and_harms_nobody(fixture) needs [];
    a_taken_id_is_refused_and_harms_nobody(fixture) needs [];
    a_bad_spec_is_refused_by_its_field_and_makes_nothing(fixture) needs [];
    what_a_provider_lacks_is_refused_before_anything_is_made(fixture) needs [];
    a_manifests_files_and_directories_are_there_at_the_start(fixture) needs [];
    a_manifest_that_cannot_be_applied_undoes_the_create(fixture) needs [];
    a_workdir_of_its_own_is_where_everything_starts(fixture) needs [Shell];
    a_sandbox_that_nobody_made_is_not_found(fixture) needs [];
    get_or_create_says_whether_it_made_the_sandbox(fixture) needs [];
    get_or_create_with_another_id_for_a_name_is_refused(fixture) needs [];
    get_or_create_with_the_id_of_another_name_is_refused(fixture) needs [];
    twenty_get_or_creates_at_once_make_one_sandbox(fixture) needs [];
    two_sandboxes_share_no_files(fixture) needs [Shell];
    two_handles_are_the_same_sandbox(fixture) needs [Shell];
    a_sandbox_that_is_opened_again_has_its_variables_and_limits(fixture) needs [Shell];
}

/// The fixture's spec under a name of its own.
pub(super) fn named(fixture: &dyn Fixture) -> (SandboxSpec, SandboxName) {
    let name = unique_name();
    (SandboxSpec { name: Some(name.clone()), ..fixture.spec() }, name)
}

/// Returns whether the provider lists this name.
pub(super) async fn listed(provider: &dyn SandboxProvider, name: &SandboxName) -> Check<bool> {
    Ok(provider.list().await?.iter().any(|info| info.name == *name))
}

/// Fails if anything of that name is left.
pub(super) async fn nothing_left(provider: &dyn SandboxProvider, name: &SandboxName) -> Check {
    ensure!(!listed(provider, name).await?, "`{name}` is in the list");
    ensure_fails!(provider.open(name.as_str()).await.map(drop), NotFound | Destroyed);
    Ok(())
}

async fn a_new_sandbox_is_listed_and_can_be_opened_by_id_and_by_name(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, name) = named(&*fixture);
    let provider = fixture.provider();
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        let list = provider.list().await?;
        let info = list.iter().find(|info| info.id == *sandbox.id());
        ensure!(info.is_some_and(|info| info.name == name), "{name} is not in the list");
        ensure!(info.is_some_and(|info| info.status == SandboxStatus::Running), "it does not run: {info:?}");
        for key in [name.as_str(), sandbox.id().as_str()] {
            ensure_eq!(Sandbox::open(&*provider, key).await?.id(), sandbox.id());
        }
        Ok(())
    })
    .await
}

/// Returns what a provider says of a sandbox, but for its life, which a list need not know.
fn told(mut info: SandboxInfo) -> Check<serde_json::Value> {
    info.life.clear();
    serde_json::to_value(info).map_err(|error| Failure::Broken(error.to_string()))
}

async fn one_sandbox_is_told_as_the_list_tells_it_until_it_is_gone(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, name) = named(&*fixture);
    let provider = fixture.provider();
    ensure_fails!(provider.info(name.as_str()).await, NotFound);
    let sandbox = Disposable(Sandbox::create(&*provider, spec).await?);
    let in_list = provider.list().await?.into_iter().find(|info| info.name == name);
    let in_list = told(in_list.ok_or_else(|| Failure::Broken("it is not in the list".to_owned()))?)?;
    for key in [name.as_str(), sandbox.0.id().as_str()] {
        ensure_eq!(told(provider.info(key).await?)?, in_list);
    }
    sandbox.0.destroy().await?;
    for key in [name.as_str(), sandbox.0.id().as_str()] {
        ensure_fails!(provider.info(key).await, NotFound | Destroyed);
    }
    Ok(())
}

async fn a_sandbox_tells_what_it_was_made_from(fixture: Arc<dyn Fixture>) -> Check {
    let (mut spec, name) = named(&*fixture);
    spec.labels.insert("team".to_owned(), "red".to_owned());
    spec.metadata.insert("ticket".to_owned(), "ä 42".to_owned());
    let (labels, metadata) = (spec.labels.clone(), spec.metadata.clone());
    let provider = fixture.provider();
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        let opened = Sandbox::open(&*provider, name.as_str()).await?;
        for info in [sandbox.info(), opened.info()] {
            ensure_eq!((&info.name, info.provider.as_str()), (&name, provider.name()));
            ensure_eq!((&info.spec.labels, &info.spec.metadata), (&labels, &metadata));
            ensure_eq!(info.workdir.as_str(), "/workspace");
            ensure!(info.created_ms > 1_600_000_000_000, "it was made at {}", info.created_ms);
        }
        ensure_eq!(opened.isolation(), sandbox.isolation());
        // Images are the provider's to make: a pool that a tenant has does not, though the provider of its sandboxes does.
        let of_sandboxes =
            |all: &Capabilities| Capabilities::new(all.iter().filter(|one| *one != Capability::Commit));
        ensure_eq!(of_sandboxes(opened.capabilities()), of_sandboxes(provider.capabilities()));
        Ok(())
    })
    .await
}

/// Tries to make `second`, which must be refused, beside a living `first`.
async fn refused_beside(fixture: &dyn Fixture, first: SandboxSpec, second: SandboxSpec) -> Check {
    let provider = fixture.provider();
    with_spec(fixture, first, async |sandbox: Sandbox| {
        sandbox.write("note", "mine").await?;
        for _ in 0..2 {
            ensure_fails!(Sandbox::create(&*provider, second.clone()).await.map(Disposable), AlreadyExists);
        }
        ensure_eq!(sandbox.read_text("note").await?, "mine");
        let found = Sandbox::open(&*provider, sandbox.name().as_str()).await?;
        ensure_eq!(found.id(), sandbox.id());
        ensure_eq!(found.read_text("note").await?, "mine");
        Ok(())
    })
    .await
}

async fn a_taken_name_is_refused_and_harms_nobody(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, _) = named(&*fixture);
    refused_beside(&*fixture, spec.clone(), spec).await
}

async fn a_taken_id_is_refused_and_harms_nobody(fixture: Arc<dyn Fixture>) -> Check {
    let id = Some(SandboxId::generate());
    let (first, _) = named(&*fixture);
    let (second, name) = named(&*fixture);
    let (first, second) = (SandboxSpec { id: id.clone(), ..first }, SandboxSpec { id, ..second });
    refused_beside(&*fixture, first, second).await?;
    nothing_left(&*fixture.provider(), &name).await
}

/// Specs that are wrong, each with what its refusal must name.
fn bad_specs(good: &SandboxSpec) -> Vec<(&'static str, SandboxSpec)> {
    let with_limits = |limits: Limits| SandboxSpec { limits, ..good.clone() };
    let with_manifest = |manifest: Manifest| SandboxSpec { manifest, ..good.clone() };
    let with_env = |name: &str| BTreeMap::from([(name.to_owned(), String::new())]);
    let file = |path: &str| BTreeMap::from([(path.to_owned(), Bytes::new())]);
    let mut lifecycle = good.lifecycle.clone();
    lifecycle.ttl_ms = Some(0);
    vec![
        ("limits.memory_mib", with_limits(Limits { memory_mib: Some(1), ..Limits::default() })),
        ("limits.pids", with_limits(Limits { pids: Some(1), ..Limits::default() })),
        ("limits.cpus", with_limits(Limits { cpus: Some(f64::NAN), ..Limits::default() })),
        ("limits.timeout_ms", with_limits(Limits { timeout_ms: Some(u64::MAX), ..Limits::default() })),
        ("lifecycle.ttl_ms", SandboxSpec { lifecycle, ..good.clone() }),
        ("env", SandboxSpec { env: with_env("A=B"), ..good.clone() }),
        ("manifest.env", with_manifest(Manifest { env: with_env(""), ..Manifest::default() })),
        ("manifest.files", with_manifest(Manifest { files: file("../x"), ..Manifest::default() })),
        ("manifest.files", with_manifest(Manifest { files: file("/x"), ..Manifest::default() })),
        (
            "manifest.directories",
            with_manifest(Manifest { directories: vec!["a/../..".into()], ..Manifest::default() }),
        ),
        ("user", SandboxSpec { user: Some("a b".to_owned()), ..good.clone() }),
        ("image", SandboxSpec { image: Some(" ".to_owned()), ..good.clone() }),
        ("workdir", SandboxSpec { workdir: Some(SandboxPath::root()), ..good.clone() }),
    ]
}

async fn a_bad_spec_is_refused_by_its_field_and_makes_nothing(fixture: Arc<dyn Fixture>) -> Check {
    let (good, name) = named(&*fixture);
    let provider = fixture.provider();
    for (field, spec) in bad_specs(&good) {
        let refused = Sandbox::create(&*provider, spec).await.map(Disposable);
        let sentence = refused.as_ref().err().map(ToString::to_string).unwrap_or_default();
        ensure_fails!(refused, Invalid);
        ensure!(sentence.contains(&format!("`{field}`")), "`{sentence}` does not name `{field}`");
    }
    nothing_left(&*provider, &name).await
}

/// Specs that need a capability.
fn demanding_specs(good: &SandboxSpec) -> Check<Vec<(Capability, SandboxSpec)>> {
    let mount =
        Mount { source: "/usr".into(), target: SandboxPath::parse("/mnt/usr")?, writable: false, cow: false };
    let workspace =
        WorkspaceSpec::Persistent { id: "conformance".to_owned(), destroy_on_session_destroy: true };
    let (mut ttl, mut sleep) = (good.lifecycle.clone(), good.lifecycle.clone());
    ttl.ttl_ms = Some(3_600_000);
    sleep.on_idle = IdleAction::Sleep;
    Ok(vec![
        (
            Capability::CowMounts,
            SandboxSpec { mounts: vec![Mount { cow: true, ..mount.clone() }], ..good.clone() },
        ),
        (Capability::Mounts, SandboxSpec { mounts: vec![mount], ..good.clone() }),
        (Capability::PersistentWorkspace, SandboxSpec { workspace, ..good.clone() }),
        (Capability::NetworkHost, SandboxSpec { network: NetworkMode::Host, ..good.clone() }),
        (Capability::Deadlines, SandboxSpec { lifecycle: ttl, ..good.clone() }),
        (Capability::Sleep, SandboxSpec { lifecycle: sleep, ..good.clone() }),
        (
            Capability::Snapshots,
            SandboxSpec { snapshot: Some(SnapshotId::generate()), image: None, ..good.clone() },
        ),
    ])
}

async fn what_a_provider_lacks_is_refused_before_anything_is_made(fixture: Arc<dyn Fixture>) -> Check {
    let (good, name) = named(&*fixture);
    let provider = fixture.provider();
    for (capability, spec) in demanding_specs(&good)? {
        if !provider.capabilities().has(capability) {
            let made = Sandbox::create(&*provider, spec).await.map(Disposable);
            ensure!(made.is_err(), "a spec that needs {capability:?} was taken");
            // A server may keep from its clients what its provider can do.
            ensure_fails!(made, Unsupported | Permission);
        }
    }
    nothing_left(&*provider, &name).await
}

async fn a_manifests_files_and_directories_are_there_at_the_start(fixture: Arc<dyn Fixture>) -> Check {
    let files = [("a.txt", "text"), ("deep/er/b.bin", "\0\u{1}"), ("made/c", ""), ("ü space", "name")];
    let files = files.map(|(path, content)| (path.to_owned(), Bytes::from(content)));
    let directories = ["made", "made/below", "."].map(str::to_owned).to_vec();
    let manifest = Manifest { files: files.clone().into(), directories, ..Manifest::default() };
    let spec = SandboxSpec { manifest, ..fixture.spec() };
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        for (path, content) in &files {
            ensure_eq!(sandbox.read(path).await?, content);
        }
        ensure!(sandbox.stat("made/below").await?.is_directory, "a directory of the manifest is missing");
        sandbox.write("made/below/mine", "the user may write there").await?;
        Ok(())
    })
    .await
}

async fn a_manifest_that_cannot_be_applied_undoes_the_create(fixture: Arc<dyn Fixture>) -> Check {
    let (good, name) = named(&*fixture);
    let files = ["file", "file/below"].map(|path| (path.to_owned(), Bytes::from("x")));
    let manifest = Manifest { files: files.into(), ..Manifest::default() };
    let provider = fixture.provider();
    let bad = SandboxSpec { manifest, ..good.clone() };
    let refused = Sandbox::create(&*provider, bad).await.map(Disposable);
    let sentence = refused.as_ref().err().map(ToString::to_string).unwrap_or_default();
    ensure!(refused.is_err(), "a file was made below a file");
    ensure!(sentence.contains("file/below"), "`{sentence}` does not name the file");
    nothing_left(&*provider, &name).await?;
    with_spec(&*fixture, good, async |sandbox: Sandbox| {
        ensure!(!sandbox.exists("file").await?, "something of the first try is left");
        Ok(())
    })
    .await
}

async fn a_workdir_of_its_own_is_where_everything_starts(fixture: Arc<dyn Fixture>) -> Check {
    let workdir = SandboxPath::parse("/srv/deep/app")?;
    let spec = SandboxSpec { workdir: Some(workdir.clone()), ..fixture.spec() };
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        ensure_eq!(sandbox.cwd(), &workdir);
        ensure_eq!(output(&sandbox, "pwd && echo x > note").await?, workdir.as_str());
        ensure_eq!(sandbox.read_text("/srv/deep/app/note").await?, "x\n");
        Ok(())
    })
    .await
}

async fn a_sandbox_that_nobody_made_is_not_found(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (name, id) = (unique_name(), SandboxId::generate());
    for key in [name.as_str(), id.as_str(), "", "../..", "No Such Name", "sb_", "/"] {
        ensure_fails!(Sandbox::open(&*provider, key).await, NotFound | Invalid);
        ensure_fails!(provider.remove(key).await, NotFound | Invalid);
    }
    Ok(())
}

async fn get_or_create_says_whether_it_made_the_sandbox(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, _) = named(&*fixture);
    let provider = fixture.provider();
    let (first, created) = Sandbox::get_or_create(&*provider, spec.clone()).await?;
    let first = Disposable(first);
    ensure!(created, "nobody made it, and yet it was there");
    first.0.write("note", "kept").await?;
    let (second, created) = Sandbox::get_or_create(&*provider, spec.clone()).await?;
    ensure_eq!((second.id(), created), (first.0.id(), false));
    ensure_eq!(second.read_text("note").await?, "kept");
    first.0.destroy().await?;
    let (third, created) = Sandbox::get_or_create(&*provider, spec).await?;
    let third = Disposable(third);
    ensure!(created && third.0.id() != first.0.id(), "the destroyed sandbox came back");
    ensure!(!third.0.exists("note").await?, "a file of the destroyed sandbox came back");
    Ok(third.0.destroy().await?)
}

async fn get_or_create_with_another_id_for_a_name_is_refused(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, _) = named(&*fixture);
    let other = SandboxSpec { id: Some(SandboxId::generate()), ..spec.clone() };
    let provider = fixture.provider();
    with_spec(&*fixture, spec, async |_sandbox: Sandbox| {
        let refused = Sandbox::get_or_create(&*provider, other).await.map(|(made, _)| Disposable(made));
        ensure_fails!(refused, AlreadyExists);
        Ok(())
    })
    .await
}

async fn get_or_create_with_the_id_of_another_name_is_refused(fixture: Arc<dyn Fixture>) -> Check {
    let (first, _) = named(&*fixture);
    let (second, _) = named(&*fixture);
    let provider = fixture.provider();
    with_spec(&*fixture, first, async |sandbox: Sandbox| {
        let spec = SandboxSpec { id: Some(sandbox.id().clone()), ..second };
        let refused = Sandbox::get_or_create(&*provider, spec).await.map(|(made, _)| Disposable(made));
        ensure_fails!(refused, AlreadyExists);
        Ok(())
    })
    .await
}

async fn twenty_get_or_creates_at_once_make_one_sandbox(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, name) = named(&*fixture);
    let provider = fixture.provider();
    let all = (0..20).map(|_| Sandbox::get_or_create(&*provider, spec.clone()));
    let (mut made, mut ids, mut failed) = (0, BTreeSet::new(), Vec::new());
    let mut kept = Vec::new();
    for result in promptly("twenty", join_all(all)).await? {
        match result {
            Ok((sandbox, created)) => {
                made += u32::from(created);
                ids.insert(sandbox.id().clone());
                kept.push(Disposable(sandbox));
            }
            Err(error) => failed.push(error.to_string()),
        }
    }
    ensure!(failed.is_empty(), "{} failed: {}", failed.len(), failed[0]);
    ensure_eq!((made, ids.len()), (1, 1));
    let infos = provider.list().await?;
    ensure_eq!(infos.iter().filter(|info| info.name == name).count(), 1);
    Ok(kept[0].0.destroy().await?)
}

async fn two_sandboxes_share_no_files(fixture: Arc<dyn Fixture>) -> Check {
    let other = fixture.clone();
    check::in_a_sandbox(fixture, async |first: Sandbox| {
        check::in_a_sandbox(other, async |second: Sandbox| {
            output(&first, "echo secret > note; echo secret > /tmp/note; echo secret > ~/note").await?;
            for path in ["note", "/tmp/note"] {
                ensure!(!second.exists(path).await?, "`{path}` of the other sandbox is here");
            }
            ensure_eq!(output(&second, "ls -A . ~ /tmp | grep -c note || true").await?, "0");
            Ok(())
        })
        .await
    })
    .await
}

async fn two_handles_are_the_same_sandbox(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    with_spec(&*fixture, fixture.spec(), async |first: Sandbox| {
        let second = Sandbox::open(&*provider, first.id().as_str()).await?;
        first.write("note", "from the first").await?;
        ensure_eq!(output(&second, "cat note").await?, "from the first");
        drop(second);
        ensure_eq!(output(&first, "cat note").await?, "from the first");
        Ok(())
    })
    .await
}

async fn a_sandbox_that_is_opened_again_has_its_variables_and_limits(fixture: Arc<dyn Fixture>) -> Check {
    let mut spec = fixture.spec();
    spec.env.insert("FROM_SPEC".to_owned(), "one".to_owned());
    spec.manifest.env.insert("FROM_MANIFEST".to_owned(), "two".to_owned());
    spec.limits.max_output_bytes = Some(5);
    let provider = fixture.provider();
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        let again = Sandbox::open(&*provider, sandbox.id().as_str()).await?;
        let result = check::sh(&again, "printf %s%s $FROM_SPEC $FROM_MANIFEST").await?;
        ensure_eq!((&result.stdout[..], result.stdout_bytes), (&b"onetw"[..], 6));
        Ok(())
    })
    .await
}
