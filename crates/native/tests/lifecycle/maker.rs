//! The maker: a process that makes sandboxes, reports on its standard output, and carries out the
//! task in its arguments. Tests start it, and kill it or let it end.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use eyot::{ExecOptions, IdleAction, Lifecycle, Limits, Sandbox, SandboxProvider, SandboxSpec, StartOptions};
use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::Failed;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The maker's `main`. Its arguments are the state folder, the task, and a number or a sandbox for
/// the task.
pub fn main(arguments: impl Iterator<Item = String>) {
    let arguments: Vec<String> = arguments.collect();
    let [state, task, argument] = &arguments[..] else { panic!("maker <state> <task> <argument>") };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(work(state, task, argument)).expect("the maker's task");
}

async fn work(state: &str, task: &str, argument: &str) -> eyot::Result<()> {
    let provider = NativeProvider::new(NativeOptions { state: state.into(), ..NativeOptions::default() })?;
    match task {
        "wake" => wake(&provider, argument).await,
        "naps" => naps(&provider, argument).await,
        "launchers" => outlive_launchers(&provider).await,
        "once" => make_one_in_process(state).await,
        "slots" => keep_slots(state, argument.parse().expect("a number")).await,
        "noexec" => make_without_programs(state).await,
        _ => make(provider, task, argument.parse().expect("a number")).await,
    }
}

/// Makes a sandbox with a launcher that is a thread, and prints its id. The sandbox stays.
async fn make_one_in_process(state: &str) -> eyot::Result<()> {
    let options = NativeOptions { state: state.into(), in_process: true, ..NativeOptions::default() };
    let sandbox = Sandbox::create(&*NativeProvider::new(options)?, SandboxSpec::default()).await?;
    let said = sandbox.exec("echo up", ExecOptions::default()).await?.stdout_text();
    assert_eq!(said, "up\n");
    println!("{}", sandbox.id());
    Ok(())
}

/// Makes slots, prints their number, and stays.
async fn keep_slots(state: &str, slots: usize) -> eyot::Result<()> {
    let provider =
        NativeProvider::new(NativeOptions { state: state.into(), slots, ..NativeOptions::default() })?;
    println!("{}", provider.fill_slots(&SandboxSpec::default()).await?);
    std::future::pending().await
}

/// Makes a sandbox in a state folder from which nothing can be executed, and prints the number of
/// programs in the folder. This process has a mount namespace of its own.
async fn make_without_programs(state: &str) -> eyot::Result<()> {
    let flags = rustix::mount::MountFlags::NOEXEC;
    rustix::mount::mount("none", state, "tmpfs", flags, Some(c"mode=700")).expect("a tmpfs");
    for in_process in [false, true] {
        let options = NativeOptions { state: state.into(), in_process, ..NativeOptions::default() };
        let sandbox = Sandbox::create(&*NativeProvider::new(options)?, SandboxSpec::default()).await?;
        let said = sandbox.exec("echo up", ExecOptions::default()).await?.stdout_text();
        assert_eq!(said, "up\n");
        sandbox.destroy().await?;
    }
    println!("{}", std::fs::read_dir(Path::new(state).join("programs")).expect("the folder").count());
    Ok(())
}

/// Wakes a sandbox, leaves a line in its memory, and prints the content of its file.
async fn wake(provider: &NativeProvider, id: &str) -> eyot::Result<()> {
    let sandbox = Sandbox::wake(provider, id).await?;
    sandbox.exec("echo one >> /dev/shm/woken", ExecOptions::default()).await?;
    println!("{}", sandbox.read_text("marker").await?);
    Ok(())
}

/// Puts a sandbox to sleep and wakes it, forever. Each time it writes a file with a new name, and
/// then prints the name.
async fn naps(provider: &NativeProvider, id: &str) -> eyot::Result<()> {
    for number in 0_u32.. {
        let sandbox = Sandbox::wake(provider, id).await?;
        let name = format!("file-{}-{number}", std::process::id());
        sandbox.write(&name, name.clone()).await?;
        println!("{name}");
        provider.sleep(id).await?;
    }
    Ok(())
}

/// Makes a sandbox, wakes it and makes another, and ends its own launcher before each. Then creates
/// go on while launchers are ended. Prints the ids of the sandboxes.
async fn outlive_launchers(provider: &Arc<NativeProvider>) -> eyot::Result<()> {
    let first = Sandbox::create(&**provider, SandboxSpec::default()).await?;
    println!("{}", first.id());
    end_own_children();
    let second = Sandbox::create(&**provider, SandboxSpec::default()).await?;
    println!("{}", second.id());
    provider.sleep(first.id().as_str()).await?;
    end_own_children();
    Sandbox::wake(&**provider, first.id().as_str()).await?;
    let mut creates = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let provider = Arc::clone(provider);
        creates.spawn(async move { Sandbox::create(&*provider, SandboxSpec::default()).await });
    }
    while let Some(made) = creates.join_next().await {
        match made.expect("a task") {
            Ok(sandbox) => println!("{}", sandbox.id()),
            Err(error) => assert_eq!(error.kind(), eyot::ErrorKind::Unavailable, "{error}"),
        }
        end_own_children();
    }
    let last = Sandbox::create(&**provider, SandboxSpec::default()).await?;
    println!("{}", last.id());
    Ok(())
}

/// Ends the children of this process as `kill -9` does. Its only children are launchers.
fn end_own_children() {
    let own = rustix::process::getpid();
    for process in std::fs::read_dir("/proc").expect("read /proc").flatten() {
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        if let (Some(pid), true) = (pid, parent == Some(own.as_raw_pid())) {
            // One that has ended may be reaped meanwhile.
            match kill_process(pid, Signal::KILL) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => panic!("kill a launcher: {error}"),
            }
        }
    }
}

async fn make(provider: Arc<NativeProvider>, task: &str, number: u64) -> eyot::Result<()> {
    let lifecycle = match task {
        "ttl" => Lifecycle { ttl_ms: Some(number), ..Lifecycle::default() },
        "idle" => Lifecycle { idle_timeout_ms: Some(number), ..Lifecycle::default() },
        "drowsy" => {
            let on_idle = IdleAction::Sleep;
            Lifecycle { idle_timeout_ms: Some(number), on_idle, ..Lifecycle::default() }
        }
        _ => Lifecycle::default(),
    };
    match task {
        "many" => return make_many(provider, number, SandboxSpec::default()).await,
        "disks" => return make_many(provider, number, with_a_disk(16)).await,
        _ => {}
    }
    let sandbox = Sandbox::create(&*provider, SandboxSpec { lifecycle, ..SandboxSpec::default() }).await?;
    if ["exec", "drowsy"].contains(&task) {
        sandbox.write("marker", "made by another process").await?;
    }
    println!("{}", sandbox.id());
    if task == "exec" {
        sandbox.start("sleep 1000", StartOptions::default()).await?;
        let mut command = sandbox.exec_stream("echo up; exec sleep 2000", ExecOptions::default()).await?;
        while let Some(event) = command.next().await {
            if let eyot::ExecEvent::Stdout(_) = event? {
                println!("up");
            }
        }
    }
    Ok(())
}

/// Returns the spec of a sandbox with a disk of this size, in MiB.
pub fn with_a_disk(mib: u64) -> SandboxSpec {
    let limits = Limits { disk_mib: Some(mib), ..Limits::default() };
    SandboxSpec { limits, ..SandboxSpec::default() }
}

async fn make_many(provider: Arc<NativeProvider>, number: u64, spec: SandboxSpec) -> eyot::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..number {
        let (provider, spec) = (provider.clone(), spec.clone());
        tasks.spawn(async move {
            let sandbox = Sandbox::create(&*provider, spec).await?;
            println!("{}", sandbox.id());
            sandbox.exec("sleep 1000", ExecOptions::default()).await
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task")?;
    }
    Ok(())
}

/// A running maker.
pub struct Maker {
    pub process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Maker {
    pub fn start(state: &Path, task: &str, number: u64) -> Result<Self, Failed> {
        Self::start_for(state, task, &number.to_string())
    }

    /// Starts a maker whose task takes a sandbox, not a number.
    pub fn start_for(state: &Path, task: &str, argument: &str) -> Result<Self, Failed> {
        let mut process = Command::new(std::env::current_exe()?);
        process.arg("maker").arg(state).args([task, argument]);
        Self::run(process)
    }

    fn run(mut process: Command) -> Result<Self, Failed> {
        let mut process = process.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let stdout = process.stdout.take().ok_or("the maker has no standard output")?;
        Ok(Self { process, lines: BufReader::new(stdout).lines() })
    }

    /// Starts a maker by another program, whose arguments end with the maker's own.
    pub fn start_within(wrapper: &[&str], state: &Path, task: &str) -> Result<Self, Failed> {
        let (program, arguments) = wrapper.split_first().ok_or("no program")?;
        let mut process = Command::new(program);
        process.args(arguments).arg(std::env::current_exe()?).arg("maker").arg(state).args([task, "0"]);
        Self::run(process)
    }

    /// Reads the next line of its output.
    pub async fn line(&mut self) -> Result<String, Failed> {
        self.line_or_end().await?.ok_or_else(|| "the maker ended without a word".into())
    }

    /// Reads the next line of its output; `None` after the last.
    pub async fn line_or_end(&mut self) -> Result<Option<String>, Failed> {
        Ok(self.lines.next_line().await?)
    }

    /// Ends it as `kill -9` does, and waits until it has ended.
    pub async fn kill_9(&mut self) -> Result<(), Failed> {
        Ok(self.process.kill().await?)
    }

    /// Waits until it ends on its own.
    pub async fn end(&mut self) -> Result<(), Failed> {
        let status = self.process.wait().await?;
        crate::ensure(status.success(), format!("the maker: {status}"))
    }
}
