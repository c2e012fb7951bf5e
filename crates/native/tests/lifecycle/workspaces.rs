//! Persistent workspaces and mounts.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use eyot::{
    ErrorKind, ExecOptions, Mount, Sandbox, SandboxPath, SandboxProvider, SandboxSpec, WorkspaceSpec,
};
use libtest_mimic::{Failed, Trial};

use crate::state::State;
use crate::{ensure, of_root, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_persistent_workspace_outlives_its_sandbox_and_is_shared_by_two", shared),
        trial("a_persistent_workspace_goes_with_its_sandbox_when_asked_to", goes_along),
        of_root(
            trial(
                "the_user_of_a_sandbox_can_write_to_the_top_of_its_new_persistent_workspace",
                of_another_user,
            ),
            "needs a range of ids, which root has",
        ),
        trial("a_mount_is_read_only_unless_asked_otherwise", mounts),
        trial("a_writable_mount_may_be_where_commands_start_and_its_files_stay", mount_as_workdir),
        trial("a_mount_whose_source_is_missing_is_refused_by_name", missing_mount),
        trial("a_mount_that_shows_the_state_folder_is_refused", mount_of_the_state),
        trial("k09_the_hosts_proc_and_sys_can_not_be_mounted", mount_of_the_kernels),
        trial("the_source_of_a_mount_may_be_a_link", linked_source),
        trial(
            "k17_root_can_run_commands_beside_a_writable_mount_and_leaves_nothing_in_it",
            writable_mount_as_root,
        ),
        of_root(
            trial(
                "k17_a_workspace_of_an_earlier_version_gets_owners_that_are_nobody_on_the_host",
                earlier_version,
            ),
            "needs a range of ids, which root has",
        ),
        of_root(
            trial(
                "k17_a_workspace_of_an_earlier_version_is_not_changed_while_a_sandbox_uses_it",
                earlier_version_in_use,
            ),
            "needs a range of ids, which root has",
        ),
        trial("a_read_only_root_leaves_workspace_home_and_tmp_writable", readonly_root),
    ]
}

fn persistent(destroy: bool) -> SandboxSpec {
    let workspace = WorkspaceSpec::Persistent { id: "shared".into(), destroy_on_session_destroy: destroy };
    SandboxSpec { workspace, ..SandboxSpec::default() }
}

async fn shared() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let first = Sandbox::create(&*provider, persistent(false)).await?;
    first.exec("echo from the first > a; mkdir d; mv d e", ExecOptions::default()).await?;
    let second = Sandbox::create(&*provider, persistent(false)).await?;
    let result =
        second.exec("cat a; echo and the second >> a; ls -d e; stat -c %U a", ExecOptions::default()).await?;
    ensure(result.stdout_text() == "from the first\ne\nuser\n", format!("{result:?}"))?;
    ensure(first.read_text("a").await? == "from the first\nand the second\n", "not shared")?;
    first.destroy().await?;
    second.destroy().await?;
    let third = Sandbox::create(&*provider, persistent(true)).await?;
    ensure(third.read_text("a").await?.contains("second"), "it did not outlive its sandboxes")?;
    third.destroy().await?;
    state.assert_empty()
}

async fn goes_along() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, persistent(true)).await?;
    sandbox.write("a", "x").await?;
    sandbox.destroy().await?;
    ensure(!state.path().join("workspaces/shared").exists(), "the workspace is left")
}

async fn of_another_user() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let spec = SandboxSpec { user: Some("1234:77".into()), ..persistent(true) };
    let sandbox = Sandbox::create(&*provider, spec).await?;
    let result = sandbox.exec("touch x && stat -c %u:%g . x", ExecOptions::default()).await?;
    ensure(result.stdout_text() == "1234:77\n1234:77\n", format!("{result:?}"))?;
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn mounts() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let folder = tempfile::tempdir()?;
    for name in ["ro", "rw"] {
        let path = folder.path().join(name);
        fs::create_dir(&path)?;
        fs::write(path.join("f"), name)?;
        // As root, a folder of the host's user 1000 is the inner user's.
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(1000), Some(1000))?;
        }
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
    let mount = |name: &str, writable| -> eyot::Result<Mount> {
        Ok(Mount {
            source: folder.path().join(name),
            target: SandboxPath::parse(&format!("/mnt/{name}"))?,
            writable,
            cow: false,
        })
    };
    let spec =
        SandboxSpec { mounts: vec![mount("ro", false)?, mount("rw", true)?], ..SandboxSpec::default() };
    let sandbox = Sandbox::create(&*provider, spec).await?;
    let script =
        "cat /mnt/ro/f /mnt/rw/f; echo x > /mnt/ro/new || echo refused; echo y > /mnt/rw/new && echo written";
    let result = sandbox.exec(script, ExecOptions::default()).await?;
    ensure(result.stdout_text() == "rorwrefused\nwritten\n", format!("{result:?}"))?;
    ensure(result.stderr_text().contains("Read-only file system"), result.stderr_text())?;
    sandbox.destroy().await?;
    ensure(
        fs::read_to_string(folder.path().join("rw/new"))? == "y\n",
        "what was written is not on the host",
    )?;
    ensure(folder.path().join("ro/f").exists(), "destroying the sandbox removed a mounted file")
}

async fn mount_as_workdir() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("x"), "of the host")?;
    if rustix::process::geteuid().is_root() {
        chown(folder.path(), Some(1000), Some(1000))?;
    }
    let workdir = SandboxPath::parse("/app")?;
    let mounts =
        vec![Mount { source: folder.path().into(), target: workdir.clone(), writable: true, cow: false }];
    let mut spec = SandboxSpec { mounts, workdir: Some(workdir), ..SandboxSpec::default() };
    spec.manifest.files.insert("given".into(), b"at the create".to_vec().into());
    spec.security.readonly_rootfs = true;
    let mut sandbox = Sandbox::create(&*provider, spec).await?;
    let large = vec![b'x'; 1 << 20];
    sandbox.write("large", large.clone()).await?;
    for life in ["first", "second"] {
        let script = format!("pwd; cat x given; echo; echo more > {life}");
        let result = sandbox.exec(script, ExecOptions::default()).await?;
        ensure(result.stdout_text() == "/app\nof the hostat the create\n", format!("{result:?}"))?;
        ensure(sandbox.read("large").await? == large, "the large file is another")?;
        provider.sleep(sandbox.id().as_str()).await?;
        sandbox = Sandbox::wake(&*provider, sandbox.id().as_str()).await?;
    }
    sandbox.destroy().await?;
    for name in ["x", "given", "large", "first", "second"] {
        ensure(folder.path().join(name).exists(), format!("`{name}` is not on the host"))?;
    }
    state.assert_empty()
}

async fn missing_mount() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let target = SandboxPath::parse("/mnt/x")?;
    let mounts = vec![Mount { source: "/nonexistent/x".into(), target, writable: false, cow: false }];
    let error = Sandbox::create(&*provider, SandboxSpec { mounts, ..SandboxSpec::default() }).await.err();
    let error = error.ok_or("a mount of nothing succeeded")?;
    ensure(
        error.kind() == ErrorKind::Invalid && error.to_string().contains("mounts.source"),
        error.to_string(),
    )?;
    state.assert_empty()
}

fn with_mount(source: PathBuf, writable: bool) -> Result<SandboxSpec, Failed> {
    let target = SandboxPath::parse("/mnt/x")?;
    Ok(SandboxSpec { mounts: vec![Mount { source, target, writable, cow: false }], ..SandboxSpec::default() })
}

async fn mount_of_the_state() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let folder = tempfile::tempdir()?;
    let link = folder.path().join("link");
    symlink(state.path().join("layers"), &link)?;
    let above = state.path().parent().ok_or("a state folder at the root")?.to_path_buf();
    for source in ["/".into(), above, state.path(), state.path().join("sandboxes"), link] {
        let error = Sandbox::create(&*provider, with_mount(source.clone(), false)?).await.err();
        let error = error.ok_or_else(|| format!("{} was mounted", source.display()))?;
        let named = error.to_string().contains("mounts.source") && error.to_string().contains("state folder");
        ensure(error.kind() == ErrorKind::Invalid && named, error.to_string())?;
    }
    state.assert_empty()
}

async fn mount_of_the_kernels() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    for source in ["/proc", "/proc/self", "/proc/sys/kernel", "/sys/kernel"] {
        let error = Sandbox::create(&*provider, with_mount(source.into(), false)?).await.err();
        let error = error.ok_or_else(|| format!("{source} was mounted"))?;
        ensure(error.kind() == ErrorKind::Invalid && error.to_string().contains("mounts.source"), &error)?;
    }
    state.assert_empty()
}

async fn linked_source() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    fs::create_dir(folder.path().join("real"))?;
    fs::write(folder.path().join("real/f"), "through the link")?;
    symlink("real", folder.path().join("link"))?;
    let spec = with_mount(folder.path().join("link"), false)?;
    let sandbox = Sandbox::create(&*provider, spec).await?;
    ensure(sandbox.read_text("/mnt/x/f").await? == "through the link", "another directory is mounted")?;
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn writable_mount_as_root() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let folder = tempfile::tempdir()?;
    let sandbox = Sandbox::create(&*provider, with_mount(folder.path().into(), true)?).await?;
    let options = ExecOptions { user: Some("root".into()), ..ExecOptions::default() };
    let result = sandbox.exec("cp /bin/sh /mnt/x/sh && chmod u+s /mnt/x/sh", options).await;
    let is_root = rustix::process::geteuid().is_root();
    // An ordinary user's sandbox has no root.
    ensure(result.is_ok() == is_root, format!("root: {result:?}"))?;
    ensure(!result.is_ok_and(|result| result.success()), "root could make a file")?;
    ensure(!folder.path().join("sh").exists(), "a file of root's is left on the host")?;
    sandbox.destroy().await?;
    state.assert_empty()
}

/// Makes the workspace `shared` as earlier versions did: the ids from inside are on the disk, with
/// all privileges.
fn make_as_earlier(state: &State) -> Result<PathBuf, Failed> {
    let workspace = state.path().join("workspaces/shared");
    fs::create_dir_all(workspace.join("d"))?;
    for (name, owner) in [("", 1000), ("of-user", 1000), ("d", 1000), ("d/of-root", 0)] {
        let path = workspace.join(name);
        if !path.exists() {
            fs::write(&path, "kept")?;
        }
        chown(&path, Some(owner), Some(owner))?;
    }
    fs::set_permissions(workspace.join("d/of-root"), fs::Permissions::from_mode(0o6755))?;
    symlink("/etc/passwd", workspace.join("link"))?;
    Ok(workspace)
}

fn owner(path: &Path) -> Result<(u32, u32), Failed> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.uid(), found.gid()))
}

async fn earlier_version() -> Result<(), Failed> {
    let (state, passwd) = (State::new()?, owner("/etc/passwd".as_ref())?);
    let provider = state.provider()?;
    let workspace = make_as_earlier(&state)?;
    let sandbox = Sandbox::create(&*provider, persistent(false)).await?;
    let script =
        "cat of-user d/of-root; stat -c '%n %U %a' of-user d d/of-root; echo more >> of-user; ls -l link";
    let result = sandbox.exec(script, ExecOptions::default()).await?;
    let wanted = "keptkeptof-user user 644\nd user 755\nd/of-root root 755\n";
    ensure(result.stdout_text().starts_with(wanted), format!("{result:?}"))?;
    sandbox.destroy().await?;
    for name in ["", "of-user", "d", "d/of-root", "link"] {
        let (uid, gid) = owner(&workspace.join(name))?;
        ensure(uid > 65_535 && gid > 65_535, format!("`{name}` belongs to {uid}:{gid}"))?;
    }
    ensure(owner("/etc/passwd".as_ref())? == passwd, "a link was followed")?;
    // What has such owners already stays as it is.
    let again = Sandbox::create(&*provider, persistent(true)).await?;
    ensure(again.read_text("of-user").await? == "keptmore\n", "something was lost")?;
    again.destroy().await?;
    state.assert_empty()
}

async fn earlier_version_in_use() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let first = Sandbox::create(&*provider, persistent(false)).await?;
    let workspace = make_as_earlier(&state)?;
    let error = Sandbox::create(&*provider, persistent(false)).await.err().ok_or("it was taken over")?;
    let named = error.to_string().contains(first.name().as_str());
    ensure(error.kind() == ErrorKind::Conflict && named, error.to_string())?;
    ensure(owner(&workspace.join("d/of-root"))? == (0, 0), "its owners were changed")?;
    first.destroy().await?;
    let second = Sandbox::create(&*provider, persistent(true)).await?;
    ensure(owner(&workspace.join("d/of-root"))?.0 > 65_535, "its owners were not changed")?;
    second.destroy().await?;
    state.assert_empty()
}

async fn readonly_root() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let mut spec = SandboxSpec::default();
    spec.security.readonly_rootfs = true;
    let sandbox = Sandbox::create(&*provider, spec).await?;
    let script = "for d in /workspace ~ /tmp /var/tmp /dev/shm /run; do echo x > $d/x && echo $d; done; \
                  for d in / /etc /srv /var /dev; do echo x > $d/x || echo no $d; done";
    let result = sandbox.exec(script, ExecOptions::default()).await?;
    let wanted =
        "/workspace\n/home/user\n/tmp\n/var/tmp\n/dev/shm\n/run\nno /\nno /etc\nno /srv\nno /var\nno /dev\n";
    ensure(result.stdout_text() == wanted, format!("{result:?}"))?;
    sandbox.destroy().await?;
    state.assert_empty()
}
