//! Rounds on the native provider: each of a sandbox's operations right after the host's own, so
//! that both find the same caches; and whole programs, one after another.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use eyot::{Command as Run, ExecOptions, Sandbox, SandboxProvider, SandboxSpec};

use super::{BranchRounds, Item, Items, OverHttp, Peers};
use crate::errors::Failure;

const SPAWN: Item = Item::plain("host: spawn /bin/true and wait");
const OUTPUT: Item = Item::plain("host: Command::output() of /bin/true");
const SHELL: Item = Item::plain("host: Command::output() of bash -c true");
const HOST_WRITE: Item = Item::plain("host: write 1 MiB");
const HOST_READ: Item = Item::plain("host: read 1 MiB");
const EXEC: Item = Item::ratio("exec /bin/true", OUTPUT.name, 1.2);
const EXEC_SHELL: Item = Item::beside("exec of a shell line `true` (bash)", SHELL.name);
const HOST_SH: Item = Item::plain("host: Command::output() of sh -c true");
const BY_SOCKET: Item = Item::ratio("exec sh -c true over HTTP, keep-alive, unix socket", HOST_SH.name, 1.3);
const BY_TCP: Item = Item::beside("exec sh -c true over HTTP, keep-alive, TCP", HOST_SH.name);
const WRITE: Item = Item::ratio("write 1 MiB", HOST_WRITE.name, 1.4);
const READ: Item = Item::ratio("read 1 MiB", HOST_READ.name, 2.0);
const CREATE: Item = Item::ratio("create → ready", SPAWN.name, 3.0);
const FROM_SLOT: Item = Item::ratio("create → ready, from a slot", SPAWN.name, 1.0);
const FIRST_EXEC: Item = Item::beside("first exec /bin/true in a new sandbox", OUTPUT.name);
const DESTROY: Item = Item::plain("destroy");
const SLEEP: Item = Item::plain("sleep");
const CREATE_AND_EXEC: Item = Item::plain("create + exec /bin/true");
const WAKE_AND_EXEC: Item = Item::beside("wake of a sleeping sandbox + exec /bin/true", CREATE_AND_EXEC.name);
const WHOLE: Item = Item::ratio("create + exec + destroy", super::peers::BWRAP, 0.8);
const WHOLE_FROM_SLOT: Item = Item::beside("create + exec + destroy, from a slot", super::peers::BWRAP);
const PROGRAM: Item = Item::ratio(super::peers::EYOT_RUN, super::peers::BWRAP, 1.1);

/// The subjects of a round.
pub struct Rounds<'a> {
    /// The provider of the sandboxes.
    pub provider: &'a dyn SandboxProvider,
    /// The provider of sandboxes from slots; `None` for an ordinary user, who has none.
    pub slots: Option<&'a dyn SandboxProvider>,
    /// The sandbox that lives through all rounds.
    pub live: &'a Sandbox,
    /// The id of a sandbox that is put to sleep and woken.
    pub sleeper: &'a str,
    /// A folder for the benchmark's files, on the disk of the state folder.
    pub folder: &'a Path,
    /// The program `eyot` itself.
    pub eyot: &'a Path,
    /// A server, and connections to it.
    pub over_http: &'a OverHttp,
    /// A pool whose sandboxes are branched.
    pub branches: &'a BranchRounds,
    /// Other isolators.
    pub peers: &'a Peers,
}

impl Rounds<'_> {
    /// Runs one round.
    pub async fn round(&self, items: &mut Items) -> Result<(), Failure> {
        self.commands(items).await?;
        self.over_http(items).await?;
        self.files(items).await?;
        self.fresh(items).await?;
        self.ready_made(items).await?;
        self.asleep(items).await?;
        self.branches.few(items).await?;
        self.programs(items)
    }

    async fn commands(&self, items: &mut Items) -> Result<(), Failure> {
        let since = Instant::now();
        Command::new("/bin/true").output().map_err(cannot("run /bin/true"))?;
        items.note(OUTPUT, since);
        let since = Instant::now();
        self.live.exec(Run::argv(["/bin/true"]), ExecOptions::default()).await?;
        items.note(EXEC, since);
        let since = Instant::now();
        Command::new("/bin/bash").args(["-c", "true"]).output().map_err(cannot("run /bin/bash"))?;
        items.note(SHELL, since);
        let since = Instant::now();
        self.live.exec("true", ExecOptions::default()).await?;
        items.note(EXEC_SHELL, since);
        Ok(())
    }

    /// Measures a program that uses Eyot over HTTP: the server is another process, and the
    /// connection is open already.
    async fn over_http(&self, items: &mut Items) -> Result<(), Failure> {
        let since = Instant::now();
        Command::new("sh").args(["-c", "true"]).output().map_err(cannot("run sh"))?;
        items.note(HOST_SH, since);
        // One that is not measured: the server has slept since the last round, as no agent lets it.
        self.over_http.by_socket.exec().await?;
        let since = Instant::now();
        self.over_http.by_socket.exec().await?;
        items.note(BY_SOCKET, since);
        let since = Instant::now();
        self.over_http.by_tcp.exec().await?;
        items.note(BY_TCP, since);
        Ok(())
    }

    async fn files(&self, items: &mut Items) -> Result<(), Failure> {
        let (file, mebibyte) = (self.folder.join("host-file"), vec![7; 1 << 20]);
        let since = Instant::now();
        std::fs::write(&file, &mebibyte).map_err(cannot("write a file"))?;
        items.note(HOST_WRITE, since);
        let since = Instant::now();
        self.live.write("file", mebibyte).await?;
        items.note(WRITE, since);
        let since = Instant::now();
        let read = std::fs::read(&file).map_err(cannot("read a file"))?;
        items.note(HOST_READ, since);
        drop(read);
        let since = Instant::now();
        let read = self.live.read("file").await?;
        items.note(READ, since);
        assert_eq!(read.len(), 1 << 20);
        Ok(())
    }

    async fn fresh(&self, items: &mut Items) -> Result<(), Failure> {
        let since = Instant::now();
        Command::new("/bin/true").status().map_err(cannot("run /bin/true"))?;
        items.note(SPAWN, since);
        let whole = Instant::now();
        let sandbox = Sandbox::create(self.provider, SandboxSpec::default()).await?;
        items.note(CREATE, whole);
        let since = Instant::now();
        sandbox.exec(Run::argv(["/bin/true"]), ExecOptions::default()).await?;
        items.note(FIRST_EXEC, since);
        items.note(CREATE_AND_EXEC, whole);
        let since = Instant::now();
        sandbox.destroy().await?;
        items.note(DESTROY, since);
        items.note(WHOLE, whole);
        Ok(())
    }

    /// Measures a sandbox from a slot. The provider has had the rest of the round to make another.
    async fn ready_made(&self, items: &mut Items) -> Result<(), Failure> {
        let Some(provider) = self.slots else { return Ok(()) };
        let whole = Instant::now();
        let sandbox = Sandbox::create(provider, SandboxSpec::default()).await?;
        items.note(FROM_SLOT, whole);
        sandbox.exec(Run::argv(["/bin/true"]), ExecOptions::default()).await?;
        sandbox.destroy().await?;
        items.note(WHOLE_FROM_SLOT, whole);
        Ok(())
    }

    /// Measures sleep and wake, with another sandbox than the live one, which would lose its
    /// connection.
    async fn asleep(&self, items: &mut Items) -> Result<(), Failure> {
        let since = Instant::now();
        self.provider.sleep(self.sleeper).await?;
        items.note(SLEEP, since);
        let since = Instant::now();
        let woken = Sandbox::wake(self.provider, self.sleeper).await?;
        woken.exec(Run::argv(["/bin/true"]), ExecOptions::default()).await?;
        items.note(WAKE_AND_EXEC, since);
        Ok(())
    }

    /// Measures whole programs. They come last: the cleanup that they leave to the kernel (above all
    /// `runc`'s control groups) then overlaps with the host's own operations, which begin the next
    /// round, and not with ours.
    fn programs(&self, items: &mut Items) -> Result<(), Failure> {
        let mut eyot = Command::new(self.eyot);
        eyot.args(["run", "--state"]).arg(self.program_state()).args(["--", "/bin/true"]);
        let since = Instant::now();
        quietly(&mut eyot)?;
        items.note(PROGRAM, since);
        for peer in self.peers.iter() {
            let since = Instant::now();
            quietly(&mut peer.command())?;
            items.note(peer.item, since);
        }
        Ok(())
    }

    /// Returns the state folder for `eyot run`, which is on the same disk as everything else here.
    pub fn program_state(&self) -> PathBuf {
        self.folder.join("program-state")
    }
}

/// Runs a program to its end, without input and output.
pub fn quietly(command: &mut Command) -> Result<(), Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let what = format!("run {}", command.get_program().display());
    let status = command.status().map_err(cannot(&what))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::host(&what, std::io::Error::other(format!("{status}"))))
    }
}

fn cannot(what: &str) -> impl Fn(std::io::Error) -> Failure {
    let what = what.to_owned();
    move |error| Failure::host(&what, error)
}
