//! The surroundings of every case: a provider, sandboxes, canaries on the host's own addresses, and
//! the internet's logs.

use std::future::Future;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use eyot::{EgressRules, ExecOptions, NetworkMode, Sandbox, SandboxSpec};
use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::{Failed, Trial};

use crate::internet::{HITS, QUERIES};
use crate::network::SHARED;

/// The result of a case.
pub type Check<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// One case.
pub struct Case {
    pub name: &'static str,
    /// The programs below `/usr` that the case needs.
    pub needs: &'static [&'static str],
    pub run: fn(World) -> Pin<Box<dyn Future<Output = Check> + Send>>,
}

/// Lists the cases of a file.
macro_rules! cases {
    ($($name:ident $(needs $($program:literal),+)?;)*) => {
        pub fn cases() -> Vec<crate::world::Case> {
            vec![$(crate::world::Case {
                name: stringify!($name),
                needs: &["python3", "curl", $($($program),+)?],
                run: |world| Box::pin($name(world)),
            }),*]
        }
    };
}

/// Fails unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($said:tt)+) => {
        if !$holds {
            return Err(format!("{} ({}:{})", format_args!($($said)+), file!(), line!()).into());
        }
    };
}

pub(crate) use {cases, ensure};

/// Turns a case into a test.
pub fn trial(case: Case, missing: Option<&str>) -> Trial {
    let folders = ["/usr/bin", "/usr/local/bin", "/usr/lib/apt"];
    let has = |program: &str| folders.iter().any(|folder| Path::new(folder).join(program).exists());
    let uninstalled = case.needs.iter().find(|program| !has(program));
    let uninstalled = uninstalled.map(|program| format!("{program} is not installed"));
    let missing = missing.map(str::to_owned).or(uninstalled);
    let trial = Trial::test(case.name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let done = runtime.block_on(async {
            let world = World::new()?;
            tokio::time::timeout(Duration::from_secs(240), (case.run)(world)).await?
        });
        done.map_err(|error: Box<dyn std::error::Error + Send + Sync>| Failed::from(error.to_string()))
    });
    match missing {
        Some(reason) => trial.with_kind(reason).with_ignored_flag(true),
        None => trial,
    }
}

/// A case's surroundings.
pub struct World {
    pub provider: Arc<NativeProvider>,
    pub state: PathBuf,
    shared: PathBuf,
    /// Listens on every address of the host. No sandbox may reach it.
    canary: TcpListener,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Check<Self> {
        let folder = tempfile::tempdir()?;
        let state = folder.path().join("state");
        let provider =
            NativeProvider::new(NativeOptions { state: state.clone(), ..NativeOptions::default() })?;
        let canary = TcpListener::bind("[::]:0")?;
        canary.set_nonblocking(true)?;
        let shared = PathBuf::from(std::env::var(SHARED)?);
        Ok(Self { provider, state, shared, canary, _folder: folder })
    }

    /// Returns the port of the canary.
    pub fn canary_port(&self) -> Check<u16> {
        Ok(self.canary.local_addr()?.port())
    }

    /// Checks that no connection reached the host itself, and that the canary still listens.
    pub fn ensure_canary_lives(&self) -> Check {
        let visitor = self.canary.accept();
        ensure!(visitor.is_err(), "somebody connected to the host: {visitor:?}");
        // It notices who does: the host itself.
        let own = std::net::TcpStream::connect(("127.0.0.1", self.canary_port()?))?;
        let (_, noticed) = self.canary.accept()?;
        ensure!(noticed.port() == own.local_addr()?.port(), "the canary notices nobody");
        Ok(())
    }

    /// Makes a sandbox with these allow rules.
    pub async fn sandbox(&self, allow: &[&str]) -> Check<Sandbox> {
        let spec = SandboxSpec {
            network: NetworkMode::Egress,
            egress: rules(allow, &[])?,
            ..SandboxSpec::default()
        };
        let sandbox = Sandbox::create(&*self.provider, spec).await?;
        for (name, script) in [
            ("try.py", crate::inside::TRY),
            ("raw.py", crate::inside::RAW),
            ("look_up.py", crate::inside::LOOK_UP),
            ("crowd.py", crate::inside::CROWD),
            ("hold.py", crate::inside::HOLD),
        ] {
            sandbox.write(name, script).await?;
        }
        Ok(sandbox)
    }

    /// Lists the requests to the web server that contain this text.
    pub fn hits(&self, part: &str) -> Check<Vec<String>> {
        lines_with(&self.shared.join(HITS), part)
    }

    /// Lists the requests to the name server that contain this text.
    pub fn queries(&self, part: &str) -> Check<Vec<String>> {
        lines_with(&self.shared.join(QUERIES), part)
    }

    /// Returns the folder that the web server serves.
    pub fn www(&self) -> Check<PathBuf> {
        let www = self.shared.join("www");
        std::fs::create_dir_all(&www)?;
        Ok(www)
    }

    /// Returns the process number of a sandbox's egress program.
    pub async fn egress_pid(&self, sandbox: &Sandbox) -> Check<i32> {
        use std::io::{BufRead, BufReader, Write};
        let socket = self.state.join("sandboxes").join(sandbox.id().as_str()).join("egress.sock");
        let mut stream = std::os::unix::net::UnixStream::connect(socket)?;
        stream.write_all(b"{\"ask\":\"status\"}\n")?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        let status: serde_json::Value = serde_json::from_str(&line)?;
        Ok(i32::try_from(status["pid"].as_i64().ok_or("no pid")?)?)
    }
}

fn lines_with(file: &Path, part: &str) -> Check<Vec<String>> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    Ok(text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect())
}

/// Parses rules.
pub fn rules(allow: &[&str], deny: &[&str]) -> Check<EgressRules> {
    let parse = |texts: &[&str]| texts.iter().map(|text| text.parse()).collect::<Result<Vec<_>, _>>();
    Ok(EgressRules { allow: parse(allow)?, deny: parse(deny)? })
}

/// Runs a shell line and returns its output on both streams.
pub async fn said(sandbox: &Sandbox, line: &str) -> Check<String> {
    let options = ExecOptions { timeout_ms: Some(180_000), ..ExecOptions::default() };
    let result = sandbox.exec(line, options).await?;
    Ok(format!("{}{}", result.stdout_text(), result.stderr_text()))
}

/// Waits until a file exists in a sandbox.
pub async fn until_there(sandbox: &Sandbox, file: &str) -> Check {
    for _ in 0..1500 {
        if sandbox.exists(file).await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(format!("`{file}` never came").into())
}

/// Waits until a process has ended.
pub fn until_ended(pid: i32) -> Check {
    let Some(pid) = rustix::process::Pid::from_raw(pid) else { return Err("no process number".into()) };
    let pidfd = match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        other => other?,
    };
    let mut waited = [rustix::event::PollFd::new(&pidfd, rustix::event::PollFlags::IN)];
    let patience = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
    let ready = rustix::event::poll(&mut waited, Some(&patience))?;
    ensure!(ready == 1, "process {pid:?} goes on");
    Ok(())
}
