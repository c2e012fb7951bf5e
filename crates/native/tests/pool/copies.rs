//! Copies on write of folders of the host: what an apply writes, what it refuses, and what it never does.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Instant;

use eyot::{
    ApplyConflictReason, ApplyOptions, ChangeKind, CompareOptions, Error, ErrorKind, Mount, Sandbox,
    SandboxName, SandboxPath, SandboxSpec,
};
use eyot_engine::{ComparedPoint, ForkOptions, RollbackOptions, SandboxPool, SnapshotOptions};
use libtest_mimic::{Failed, Trial};

use crate::session::{Session, output};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("an_apply_writes_every_kind_of_change_into_the_folder", every_kind),
        trial("an_apply_is_refused_as_a_whole_where_the_host_has_changed_one_of_the_files", conflicts),
        trial("what_was_applied_is_no_conflict_for_the_next_apply_of_the_same_sandbox", again),
        trial("a_fork_is_compared_with_the_folder_as_it_was_when_the_first_sandbox_was_made", forks),
        trial("f4_an_apply_follows_no_link_and_sets_no_set_id_bit", links),
        trial("a_copy_is_what_a_comparison_and_a_rollback_of_a_pool_know_of", compared),
        trial("an_apply_of_a_sandbox_that_works_is_refused_and_a_dry_run_is_not", working),
        trial("a_folder_with_another_file_system_below_it_is_not_copied", mounted_below),
        trial("a_copy_of_a_folder_of_20000_files_is_made_and_applied_in_seconds", large),
    ]
}

/// A pool with the sandbox `dev`, which has a copy of a folder.
struct Scene {
    _session: Session,
    pool: SandboxPool,
    folder: tempfile::TempDir,
    dev: Sandbox,
}

const COPY: &str = "/mnt/copy";

impl Scene {
    async fn new(fill: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<Self, Failed> {
        let (session, folder) = (Session::new()?, tempfile::tempdir()?);
        fill(folder.path())?;
        let pool = session.pool("p")?;
        let dev = pool.as_provider();
        let dev = Sandbox::create(&*dev, spec(folder.path())?).await?;
        Ok(Self { _session: session, pool, folder, dev })
    }

    /// Runs a line in the copy.
    async fn run(&self, line: &str) -> Result<String, Failed> {
        run(&self.pool, "dev", line).await
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn read(&self, path: &str) -> Result<String, Failed> {
        Ok(fs::read_to_string(self.path(path))?)
    }

    async fn apply(&self, name: &str) -> eyot::Result<eyot::ApplyReport> {
        self.pool.apply(name, &ApplyOptions::default(), false).await
    }

    async fn foresee(&self, name: &str) -> eyot::Result<eyot::ApplyReport> {
        self.pool.apply(name, &ApplyOptions { dry_run: true, ..ApplyOptions::default() }, false).await
    }

    async fn close(self) -> Result<(), Failed> {
        drop(self.dev);
        Ok(self.pool.close().await?)
    }
}

fn spec(folder: &Path) -> Result<SandboxSpec, Failed> {
    let mount =
        Mount { source: folder.to_owned(), target: SandboxPath::parse(COPY)?, writable: false, cow: true };
    Ok(SandboxSpec { name: Some(SandboxName::parse("dev")?), mounts: vec![mount], ..SandboxSpec::default() })
}

async fn run(pool: &SandboxPool, name: &str, line: &str) -> Result<String, Failed> {
    output(&pool.get(name).await?, &format!("cd {COPY} && {line}")).await
}

fn names(folder: &Path) -> Result<Vec<String>, Failed> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn is_conflict(error: &Error, path: &str) -> bool {
    error.kind() == ErrorKind::Conflict && error.to_string().contains(path)
}

fn fill(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder.join("old/deep"))?;
    fs::create_dir(folder.join("dir"))?;
    for (path, text) in
        [("a", "a"), ("b", "b"), ("old/one", "1"), ("old/deep/two", "2"), ("dir/in", "i"), ("file", "f")]
    {
        fs::write(folder.join(path), text)?;
    }
    Ok(())
}

async fn every_kind() -> Result<(), Failed> {
    let scene = Scene::new(fill).await?;
    scene
        .run(
            "echo A > a; chmod 755 b; rm -r old; mkdir -p new/deep; echo n > new/deep/n; chmod 555 new/deep; \
             ln -s ../a new/link; rm -r dir; echo now-a-file > dir; rm file; mkdir file; echo x > file/x; mkfifo pipe",
        )
        .await?;
    let foreseen = scene.foresee("dev").await?;
    ensure(!foreseen.applied && foreseen.conflicts.is_empty(), format!("{foreseen:?}"))?;
    ensure(scene.read("a")? == "a", "a dry run has written")?;
    let report = scene.apply("dev").await?;
    ensure(report.applied && report.changes == foreseen.changes, format!("{report:?}"))?;
    ensure(report.left_out == ["/mnt/copy/pipe"], format!("{report:?}"))?;
    ensure(names(scene.folder.path())? == ["a", "b", "dir", "file", "new"], "other names")?;
    ensure(scene.read("a")? == "A\n" && scene.read("dir")? == "now-a-file\n", "other content")?;
    ensure(scene.read("file/x")? == "x\n" && scene.read("new/deep/n")? == "n\n", "other content")?;
    let mode =
        |path: &str| fs::symlink_metadata(scene.path(path)).map(|found| found.permissions().mode() & 0o7777);
    ensure(mode("b")? == 0o755 && mode("new/deep")? == 0o555, "other permissions")?;
    ensure(fs::read_link(scene.path("new/link"))? == Path::new("../a"), "another link")?;
    ensure(scene.run("cat a new/link file/x").await? == "A\nA\nx", "the sandbox has other files")?;
    fs::set_permissions(scene.path("new/deep"), fs::Permissions::from_mode(0o755))?;
    scene.close().await
}

async fn conflicts() -> Result<(), Failed> {
    let scene = Scene::new(fill).await?;
    scene.run("echo A > a; echo B > b; echo n > n; rm old/one; echo I > dir/in; echo ok > fine").await?;
    // Of the same size, and in the same tick perhaps.
    fs::write(scene.path("a"), "x")?;
    fs::write(scene.path("n"), "host")?;
    fs::remove_dir_all(scene.path("dir"))?;
    fs::write(scene.path("untouched-inside"), "host")?;
    let found = scene.foresee("dev").await?.conflicts;
    let found: Vec<_> = found.iter().map(|conflict| (conflict.path.as_str(), conflict.reason)).collect();
    let expected = [
        ("/mnt/copy/a", ApplyConflictReason::Changed),
        ("/mnt/copy/dir", ApplyConflictReason::Removed),
        ("/mnt/copy/dir/in", ApplyConflictReason::Removed),
        ("/mnt/copy/n", ApplyConflictReason::Added),
    ];
    ensure(found == expected, format!("{found:?}"))?;
    let Err(error) = scene.apply("dev").await else { return Err("it was applied".into()) };
    ensure(is_conflict(&error, "`/mnt/copy/a` (the host changed it)"), format!("{error}"))?;
    ensure(scene.read("b")? == "b" && scene.read("old/one")? == "1", "a part was applied")?;
    ensure(!scene.path("fine").exists(), "a part was applied")?;
    scene.close().await
}

async fn again() -> Result<(), Failed> {
    let scene = Scene::new(fill).await?;
    scene.run("echo one > a").await?;
    scene.apply("dev").await?;
    let second = scene.apply("dev").await?;
    ensure(second.applied && second.changes.is_empty(), format!("{second:?}"))?;
    scene.run("echo two > a; rm b").await?;
    scene.apply("dev").await?;
    ensure(scene.read("a")? == "two\n" && !scene.path("b").exists(), "it was not applied")?;
    fs::write(scene.path("a"), "new\n")?;
    let third = scene.apply("dev").await?;
    ensure(third.changes.is_empty() && scene.read("a")? == "new\n", format!("{third:?}"))?;
    scene.run("echo three > a").await?;
    let Err(error) = scene.apply("dev").await else { return Err("it was applied".into()) };
    ensure(is_conflict(&error, "/mnt/copy/a"), format!("{error}"))?;
    ensure(scene.read("a")? == "new\n", "the host's change is lost")?;
    scene.close().await
}

async fn forks() -> Result<(), Failed> {
    let scene = Scene::new(fill).await?;
    scene.run("echo before > b").await?;
    let options = ForkOptions { from: "dev".to_owned(), count: 2, name: None, stop: false };
    scene.pool.as_provider().fork(scene.pool.fork_source("dev").await?, options).await?;
    run(&scene.pool, "dev-1", "echo first > a").await?;
    run(&scene.pool, "dev-2", "echo second > a").await?;
    scene.apply("dev-1").await?;
    ensure(scene.read("a")? == "first\n" && scene.read("b")? == "before\n", "not the fork's files")?;
    let Err(error) = scene.apply("dev-2").await else { return Err("it was applied".into()) };
    ensure(is_conflict(&error, "/mnt/copy/a"), format!("{error}"))?;
    ensure(scene.read("a")? == "first\n", "it was applied")?;
    scene.close().await
}

async fn links() -> Result<(), Failed> {
    let outside = tempfile::tempdir()?;
    fs::write(outside.path().join("secret"), "host")?;
    let scene = Scene::new(|folder| {
        fs::create_dir(folder.join("d"))?;
        fs::write(folder.join("d/secret"), "inside")?;
        symlink(outside.path(), folder.join("out"))
    })
    .await?;
    scene.run("echo written > d/secret; echo set > set; chmod 6755 set; ln -s /etc/passwd passwd").await?;
    // A directory becomes a link that leads elsewhere.
    fs::rename(scene.path("d"), scene.path("kept"))?;
    symlink(outside.path(), scene.path("d"))?;
    let Err(error) = scene.apply("dev").await else { return Err("it was applied".into()) };
    ensure(is_conflict(&error, "/mnt/copy/d"), format!("{error}"))?;
    ensure(fs::read_to_string(outside.path().join("secret"))? == "host", "it was written outside")?;
    fs::remove_file(scene.path("d"))?;
    fs::rename(scene.path("kept"), scene.path("d"))?;
    scene.apply("dev").await?;
    let mode = fs::metadata(scene.path("set"))?.permissions().mode();
    ensure(mode & 0o7777 == 0o755, format!("{mode:o}"))?;
    ensure(scene.read("d/secret")? == "written\n", "it was not applied")?;
    // A link goes as a link.
    ensure(fs::read_link(scene.path("passwd"))? == Path::new("/etc/passwd"), "no link")?;
    let (made, folder) = (fs::metadata(scene.path("set"))?, fs::metadata(scene.folder.path())?);
    let owner = std::os::unix::fs::MetadataExt::uid;
    ensure(owner(&made) == owner(&folder), "another owner")?;
    scene.close().await
}

/// The staging directory of the apply is in the way of itself.
async fn compared() -> Result<(), Failed> {
    let scene = Scene::new(fill).await?;
    let options = CompareOptions { path: SandboxPath::parse("/")?, text: true };
    let (base, now) = (ComparedPoint::BaseOf("dev".to_owned()), ComparedPoint::Sandbox("dev".to_owned()));
    scene.run("echo a2 >> a; rm b; echo x > /home/user/x").await?;
    let found = scene.pool.compare(&base, &now, &options).await?.changes;
    let told: Vec<_> = found.iter().map(|change| (change.path.as_str(), change.change)).collect();
    let expected = [
        ("/home/user/x", ChangeKind::Added),
        ("/mnt/copy", ChangeKind::Added),
        ("/mnt/copy/a", ChangeKind::Changed),
        ("/mnt/copy/b", ChangeKind::Removed),
    ];
    ensure(told == expected, format!("{told:?}"))?;
    let text = found[2].text.as_deref().unwrap_or_default();
    ensure(text.starts_with("--- a/mnt/copy/a\n") && text.contains("+aa2"), text.to_owned())?;
    let below = CompareOptions::below(SandboxPath::parse("/mnt/copy/a")?);
    ensure(scene.pool.compare(&base, &now, &below).await?.changes.len() == 1, "other changes")?;
    let taken = scene.pool.snapshot("dev", SnapshotOptions::default()).await?.snapshot;
    ensure(
        scene.pool.compare(&base, &now, &options).await?.changes.is_empty(),
        "changes since the snapshot",
    )?;
    scene.run("echo later > a").await?;
    let options = RollbackOptions { snapshot: taken.id.to_string(), stop: false, asleep_only: false };
    scene.pool.roll_back("dev", &options).await?;
    ensure(scene.run("cat a; ls").await? == "aa2\na\ndir\nfile\nold", "other files")?;
    let sizes = scene.pool.snapshots_with_sizes().await?;
    ensure(sizes[0].own_bytes.is_some_and(|bytes| bytes > 0), format!("{sizes:?}"))?;
    scene.close().await
}

async fn working() -> Result<(), Failed> {
    let scene = Scene::new(fill).await?;
    scene.run("echo A > a").await?;
    let dev = scene.pool.get("dev").await?;
    dev.start("sleep 1000", eyot::StartOptions::default()).await?;
    ensure(scene.foresee("dev").await?.changes.len() == 1, "another change")?;
    let Err(error) = scene.apply("dev").await else { return Err("it was applied".into()) };
    ensure(is_conflict(&error, "sleep 1000") && scene.read("a")? == "a", format!("{error}"))?;
    scene.pool.apply("dev", &ApplyOptions::default(), true).await?;
    ensure(scene.read("a")? == "A\n", "it was not applied")?;
    let other = ApplyOptions { target: Some(SandboxPath::parse("/mnt/other")?), dry_run: false };
    let Err(error) = scene.pool.apply("dev", &other, false).await else { return Err("no such copy".into()) };
    ensure(error.kind() == ErrorKind::Invalid, format!("{error}"))?;
    scene.close().await
}

async fn mounted_below() -> Result<(), Failed> {
    // A state folder in `/dev/shm` would be another reason.
    let session = Session::on_disk()?;
    let pool = session.pool("p")?;
    // `/dev` has others below it wherever tests run.
    let Err(error) = Sandbox::create(&*pool.as_provider(), spec(Path::new("/dev"))?).await else {
        return Err("it was copied".into());
    };
    ensure(error.kind() == ErrorKind::Invalid && error.to_string().contains("/dev/"), format!("{error}"))?;
    Ok(pool.close().await?)
}

async fn large() -> Result<(), Failed> {
    let began = Instant::now();
    let scene = Scene::new(|folder| {
        for number in 0..20_000 {
            if number % 200 == 0 {
                fs::create_dir(folder.join(format!("{}", number / 200)))?;
            }
            fs::write(folder.join(format!("{}/{number}", number / 200)), "x")?;
        }
        Ok(())
    })
    .await?;
    scene.run("for d in *; do echo y > $d/new; done; rm -r 7").await?;
    let report = scene.apply("dev").await?;
    // A new file in each of 99, and a directory of 200 less.
    ensure(report.changes.len() == 99 + 201, format!("{}", report.changes.len()))?;
    ensure(!scene.path("7").exists() && scene.read("8/new")? == "y\n", "it was not applied")?;
    ensure(began.elapsed().as_secs() < 60, format!("{:?}", began.elapsed()))?;
    scene.close().await
}
