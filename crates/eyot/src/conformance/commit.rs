//! Commits: images of snapshots, and what a sandbox that is made from one finds. The image below is made here, of the programs
//! of a sandbox.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Fixture;
use super::check::{
    Check, Disposable, cases, ensure, ensure_eq, ensure_fails, need_program, output, promptly,
};
use super::create::named;
use super::snapshots::{fork, remove, take};
use crate::error::ErrorKind;
use crate::files::ByteRange;
use crate::images::ImageInfo;
use crate::sandbox::Sandbox;
use crate::snapshot::{NewImage, SnapshotInfo};
use crate::spec::{PullPolicy, SandboxId, SandboxSpec, SnapshotId};

cases! {
    a_sandbox_from_a_commit_has_the_files_of_the_snapshot(fixture) needs [Commit, Snapshots, Shell];
    what_was_removed_or_replaced_before_a_commit_stays_so(fixture) needs [Commit, Snapshots, Shell, Symlinks];
    a_commit_keeps_modes_links_and_owners(fixture) needs [Commit, Snapshots, Shell, Symlinks];
    a_commit_of_a_fork_has_the_files_of_both(fixture) needs [Commit, Snapshots, Shell];
    a_commit_of_a_sandbox_from_a_commit_lies_above_it(fixture) needs [Commit, Snapshots, Shell];
    a_commit_that_can_not_be_is_refused_and_changes_no_image(fixture) needs [Commit, Snapshots, Shell];
    a_commit_that_nobody_waits_for_makes_no_image(fixture) needs [Commit, Snapshots, Shell];
}

/// The programs of the images here.
const PROGRAMS: &str = "sh cat ls stat mkdir rm chmod ln mv rmdir readlink id head";

/// Makes what the image below has and commits change.
const MAKE_DATA: &str =
    "mkdir -p data/gone data/hidden && echo base > data/kept && echo base > data/gone/file
echo base > data/hidden/file; echo base > data/replaced; ln -s kept data/link";

/// Puts the programs, and the libraries that they need, into `root`, beside the data.
const COPY_PROGRAMS: &str = r#"
mkdir -p root/bin root/etc && mv data root || exit
for program in $PROGRAMS; do
    file=$(readlink -f "$(command -v $program)") && cp "$file" root/bin/$program || exit
    ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        test -e root$library || { mkdir -p root${library%/*} && cp -L $library root$library; } || exit
    done || exit
done
tar cf root.tar -C root ."#;

/// An image below commits, and the images that were made above it. What a case leaves is removed at its end.
struct CommitGround {
    fixture: Arc<dyn Fixture>,
    base: String,
    /// The folder of it that commits change.
    data: &'static str,
}

impl CommitGround {
    /// It is a commit of an ordinary sandbox or, where such a sandbox is over no image, one with a few programs of the host.
    async fn new(fixture: Arc<dyn Fixture>) -> Check<Self> {
        let provider = fixture.provider();
        let sandbox = Disposable(Sandbox::create(&*provider, named(&*fixture).0).await?);
        output(&sandbox.0, &format!("cd /tmp && {MAKE_DATA}")).await?;
        let (snapshot, woken) = take(&*fixture, sandbox.0.info()).await?;
        let base = reference();
        let new = NewImage { reference: base.clone(), max_bytes: None };
        let made = provider.snapshots()?.commit(&snapshot.id, &new).await;
        remove(&*fixture, &[&snapshot]).await?;
        match made {
            Ok(_) => Ok(Self { fixture, base, data: "/tmp/data" }),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                ensure!(error.hint().is_some(), "{error:?} has no hint");
                Self::imported(fixture, &woken, base).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn imported(fixture: Arc<dyn Fixture>, sandbox: &Sandbox, base: String) -> Check<Self> {
        let images = fixture.provider().images(Arc::new(|_| None))?;
        need_program(sandbox, "ldd").await?;
        need_program(sandbox, "tar").await?;
        output(sandbox, MAKE_DATA).await?;
        output(sandbox, &format!("PROGRAMS='{PROGRAMS}'{COPY_PROGRAMS}")).await?;
        let tar = sandbox.read_stream("root.tar", ByteRange::default()).await?;
        images.import(tar, Some(&base)).await?;
        Ok(Self { fixture, base, data: "/data" })
    }

    async fn sandbox_from(&self, image: &str) -> Check<Disposable> {
        let spec = self.spec(image);
        Ok(Disposable(promptly("the create", Sandbox::create(&*self.fixture.provider(), spec)).await??))
    }

    fn spec(&self, image: &str) -> SandboxSpec {
        let mut spec = SandboxSpec { image: Some(image.to_owned()), ..named(&*self.fixture).0 };
        spec.container.pull = PullPolicy::Never;
        spec
    }

    async fn commit(&self, snapshot: &SnapshotInfo, reference: &str) -> Check<ImageInfo> {
        let new = NewImage { reference: reference.to_owned(), max_bytes: None };
        let snapshots = self.fixture.provider().snapshots()?;
        let made = promptly("the commit", snapshots.commit(&snapshot.id, &new)).await??;
        ensure_eq!((made.name.as_str(), made.complete), (reference, true));
        Ok(made)
    }

    /// Commits a snapshot, and makes a sandbox from the image.
    async fn run_commit(&self, snapshot: &SnapshotInfo) -> Check<(ImageInfo, Disposable)> {
        let made = self.commit(snapshot, &reference()).await?;
        let from = self.sandbox_from(&made.name).await?;
        Ok((made, from))
    }

    async fn ensure_absent(&self, image: &str) -> Check {
        let refused = Sandbox::create(&*self.fixture.provider(), self.spec(image)).await;
        let kind = refused.as_ref().err().map(crate::Error::kind);
        // Where there are images of snapshots alone, every other one is `unsupported`.
        let is_absent = matches!(kind, Some(ErrorKind::NotFound | ErrorKind::Unsupported));
        ensure!(is_absent, "an image is there that was not to be made: {kind:?}");
        Ok(())
    }

    /// Runs a line in the folder in which there is something to remove.
    async fn in_data(&self, sandbox: &Sandbox, line: &str) -> Check<String> {
        output(sandbox, &format!("cd {} && {{ {line}; }}", self.data)).await
    }

    /// Lists that folder.
    async fn listed(&self, sandbox: &Sandbox) -> Check<String> {
        let line = "for f in * */*; do test -e \"$f\" -o -L \"$f\" && echo \"$f\"; done; true";
        let listed = self.in_data(sandbox, line).await?;
        let names: BTreeSet<&str> = listed.lines().collect();
        Ok(names.into_iter().collect::<Vec<_>>().join(" "))
    }

    /// Removes images, those of sandboxes that go at the end of the case too.
    async fn remove(&self, references: &[&str]) -> Check {
        for reference in references.iter().chain([&self.base.as_str()]) {
            self.fixture.remove_image(reference).await?;
        }
        Ok(())
    }
}

fn reference() -> String {
    format!("{}:1", SandboxId::generate().as_str().replace('_', "-"))
}

async fn a_sandbox_from_a_commit_has_the_files_of_the_snapshot(fixture: Arc<dyn Fixture>) -> Check {
    let ground = CommitGround::new(fixture.clone()).await?;
    let sandbox = ground.sandbox_from(&ground.base).await?;
    let name = "n".repeat(150);
    output(
        &sandbox.0,
        &format!("echo one > kept; mkdir -p deep/{name}; echo x > deep/{name}/'a b'; echo > empty"),
    )
    .await?;
    let (snapshot, woken) = take(&*fixture, sandbox.0.info()).await?;
    woken.write("kept", "later").await?;
    let (made, from) = ground.run_commit(&snapshot).await?;
    let found =
        output(&from.0, &format!("cat kept deep/{name}/'a b' empty {data}/kept", data = ground.data)).await?;
    ensure_eq!(found, "one\nx\n\nbase");
    // The image is its own: it stays when all that it was made of is gone.
    woken.destroy().await?;
    remove(&*fixture, &[&snapshot]).await?;
    let again = ground.sandbox_from(&made.name).await?;
    ensure_eq!(again.0.read("kept").await?, "one\n");
    ground.remove(&[&made.name]).await
}

async fn what_was_removed_or_replaced_before_a_commit_stays_so(fixture: Arc<dyn Fixture>) -> Check {
    let ground = CommitGround::new(fixture.clone()).await?;
    let sandbox = ground.sandbox_from(&ground.base).await?;
    ground
        .in_data(&sandbox.0, "rm -r gone kept; rm -r hidden; mkdir hidden; echo new > hidden/other; rm link")
        .await?;
    ground.in_data(&sandbox.0, "rm replaced; mkdir replaced; echo d > replaced/f").await?;
    // Over two snapshots: what one removed the other may have made again.
    let (first, woken) = take(&*fixture, sandbox.0.info()).await?;
    ground
        .in_data(
            &woken,
            "mkdir gone; echo again > gone/new; rm hidden/other; rm -r replaced; echo file > replaced",
        )
        .await?;
    let (second, _) = take(&*fixture, sandbox.0.info()).await?;
    let (one, from) = ground.run_commit(&first).await?;
    ensure_eq!(ground.listed(&from.0).await?, "hidden hidden/other replaced replaced/f");
    let (other, from) = ground.run_commit(&second).await?;
    ensure_eq!(ground.listed(&from.0).await?, "gone gone/new hidden replaced");
    ensure_eq!(ground.in_data(&from.0, "cat replaced gone/new").await?, "file\nagain");
    remove(&*fixture, &[&first, &second]).await?;
    ground.remove(&[&one.name, &other.name]).await
}

async fn a_commit_keeps_modes_links_and_owners(fixture: Arc<dyn Fixture>) -> Check {
    let ground = CommitGround::new(fixture.clone()).await?;
    let sandbox = ground.sandbox_from(&ground.base).await?;
    let long = "t".repeat(180);
    let make = format!(
        "echo x > a; chmod 640 a; ln a b; ln -s a s; ln -s {long} far; mkdir -p d/e; echo y > d/e/f; chmod 555 d/e; chmod 1751 d"
    );
    output(&sandbox.0, &make).await?;
    let show = "stat -c '%a %u %g %h %F' a b s d d/e d/e/f; readlink s far; stat -c %Y a; id -u";
    let before = output(&sandbox.0, show).await?;
    let (snapshot, _) = take(&*fixture, sandbox.0.info()).await?;
    let (made, from) = ground.run_commit(&snapshot).await?;
    ensure_eq!(output(&from.0, show).await?, before);
    ensure_eq!(output(&from.0, "stat -c %i a b").await?.lines().collect::<BTreeSet<_>>().len(), 1);
    remove(&*fixture, &[&snapshot]).await?;
    ground.remove(&[&made.name]).await
}

async fn a_commit_of_a_fork_has_the_files_of_both(fixture: Arc<dyn Fixture>) -> Check {
    let ground = CommitGround::new(fixture.clone()).await?;
    let sandbox = ground.sandbox_from(&ground.base).await?;
    output(&sandbox.0, "echo first > first; echo first > both").await?;
    let (snapshot, _) = take(&*fixture, sandbox.0.info()).await?;
    let forked = fork(&*fixture, &snapshot).await?;
    output(&forked.0, "echo second > second; echo second > both; chmod 700 both").await?;
    let (of_fork, _) = take(&*fixture, forked.0.info()).await?;
    let (made, from) = ground.run_commit(&of_fork).await?;
    let found = output(&from.0, "cat first second both; stat -c %a both").await?;
    ensure_eq!(found, "first\nsecond\nsecond\n700");
    // What the fork wrote, and what it found, belong to the same user as in the fork.
    let owners = "stat -c %u first second both; id -u";
    ensure_eq!(output(&from.0, owners).await?.lines().collect::<BTreeSet<_>>().len(), 1);
    remove(&*fixture, &[&of_fork, &snapshot]).await?;
    ground.remove(&[&made.name]).await
}

async fn a_commit_of_a_sandbox_from_a_commit_lies_above_it(fixture: Arc<dyn Fixture>) -> Check {
    let ground = CommitGround::new(fixture.clone()).await?;
    let sandbox = ground.sandbox_from(&ground.base).await?;
    output(&sandbox.0, "echo one > one").await?;
    let (snapshot, _) = take(&*fixture, sandbox.0.info()).await?;
    let (first, from) = ground.run_commit(&snapshot).await?;
    output(&from.0, "echo two > two").await?;
    ground.in_data(&from.0, "rm kept").await?;
    let (above, _) = take(&*fixture, from.0.info()).await?;
    let (second, from) = ground.run_commit(&above).await?;
    ensure_eq!(output(&from.0, "cat one two").await?, "one\ntwo");
    ensure!(!ground.listed(&from.0).await?.contains("kept"), "a file is back");
    ensure!(first.layers < second.layers, "the second lies above the first: {first:?}, {second:?}");
    remove(&*fixture, &[&snapshot, &above]).await?;
    ground.remove(&[&first.name, &second.name]).await
}

async fn a_commit_that_can_not_be_is_refused_and_changes_no_image(fixture: Arc<dyn Fixture>) -> Check {
    let ground = CommitGround::new(fixture.clone()).await?;
    let sandbox = ground.sandbox_from(&ground.base).await?;
    let (snapshot, _) = take(&*fixture, sandbox.0.info()).await?;
    let ours = reference();
    let snapshots = fixture.provider().snapshots()?;
    for wrong in ["", "UPPER", "a b", "/etc/passwd", "../x", "host"] {
        let new = NewImage { reference: wrong.to_owned(), max_bytes: None };
        ensure_fails!(snapshots.commit(&snapshot.id, &new).await, Invalid);
    }
    let new = NewImage { reference: ours.clone(), max_bytes: None };
    ensure_fails!(snapshots.commit(&SnapshotId::generate(), &new).await, NotFound);
    ground.ensure_absent(&ours).await?;
    remove(&*fixture, &[&snapshot]).await?;
    ground.remove(&[]).await
}

async fn a_commit_that_nobody_waits_for_makes_no_image(fixture: Arc<dyn Fixture>) -> Check {
    let ground = CommitGround::new(fixture.clone()).await?;
    let sandbox = ground.sandbox_from(&ground.base).await?;
    output(&sandbox.0, "head -c 50000000 /dev/zero > large").await?;
    let (snapshot, _) = take(&*fixture, sandbox.0.info()).await?;
    let new = NewImage { reference: reference(), max_bytes: None };
    let snapshots = fixture.provider().snapshots()?;
    let mut commit = snapshots.commit(&snapshot.id, &new);
    ensure!(futures_util::poll!(&mut commit).is_pending(), "50 MB were packed at once");
    drop(commit);
    // Whoever asks for the same then gets it: nothing stands in its way.
    let (made, from) = ground.run_commit(&snapshot).await?;
    ensure_eq!(output(&from.0, "stat -c %s large").await?, "50000000");
    ground.ensure_absent(&new.reference).await?;
    remove(&*fixture, &[&snapshot]).await?;
    ground.remove(&[&made.name]).await
}
