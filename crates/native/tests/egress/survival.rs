//! The lifetime of the egress program: as long as the sandbox, even if its maker or its provider
//! ends.

use std::process::{Command, ExitCode, Stdio};

use eyot::{ErrorKind, NetworkMode, Sandbox, SandboxSpec};
use eyot_native::{NativeOptions, NativeProvider};

use crate::network::ROLE;
use crate::world::{Check, World, cases, ensure, said, until_ended};

cases! {
    n01_the_way_out_outlives_a_killed_maker_and_ends_with_the_sandbox;
    n01_the_way_out_ends_when_the_guest_is_killed;
    n01_a_sandbox_whose_egress_program_has_ended_reaches_nothing;
    n01_the_egress_program_runs_as_nobody_else_and_holds_nothing_of_its_makers;
}

/// The variable with the state folder of the process that makes a sandbox and waits to be killed.
const STATE: &str = "EYOT_EGRESS_STATE";

/// Makes a sandbox, prints its id, and waits.
pub fn maker() -> ExitCode {
    let state = std::env::var_os(STATE).expect("the state folder is named").into();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let provider = NativeProvider::new(NativeOptions { state, ..NativeOptions::default() });
    let (provider, runtime) = (provider.expect("a provider"), runtime.expect("a runtime"));
    let spec = SandboxSpec { network: NetworkMode::Egress, ..SandboxSpec::default() };
    let sandbox = runtime.block_on(Sandbox::create(&*provider, spec)).expect("a sandbox");
    println!("{}", sandbox.id());
    loop {
        std::thread::park();
    }
}

async fn n01_the_way_out_outlives_a_killed_maker_and_ends_with_the_sandbox(world: World) -> Check {
    let mut maker = Command::new(std::env::current_exe()?);
    maker.env(ROLE, "maker").env(STATE, &world.state).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut maker = maker.spawn()?;
    let mut id = String::new();
    let said_by_maker = maker.stdout.take().ok_or("no output")?;
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said_by_maker), &mut id)?;
    maker.kill()?;
    maker.wait()?;
    let sandbox = Sandbox::open(&*world.provider, id.trim()).await?;
    let answer = said(&sandbox, "curl -sS -m 30 http://pub.test/hello").await?;
    ensure!(answer.starts_with("hello from"), "{answer}");
    let pid = world.egress_pid(&sandbox).await?;
    sandbox.destroy().await?;
    until_ended(pid)
}

async fn n01_the_way_out_ends_when_the_guest_is_killed(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let pid = world.egress_pid(&sandbox).await?;
    let ready = std::fs::read_link(world.state.join("sandboxes").join(sandbox.id().as_str()).join("ready"))?;
    let guest = ready.to_string_lossy().split_whitespace().next().and_then(|pid| pid.parse().ok());
    let guest = guest.and_then(rustix::process::Pid::from_raw).ok_or("no guest")?;
    rustix::process::kill_process(guest, rustix::process::Signal::KILL)?;
    until_ended(pid)?;
    Ok(sandbox.destroy().await?)
}

async fn n01_a_sandbox_whose_egress_program_has_ended_reaches_nothing(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let pid = world.egress_pid(&sandbox).await?;
    let process = rustix::process::Pid::from_raw(pid).ok_or("no process")?;
    rustix::process::kill_process(process, rustix::process::Signal::KILL)?;
    until_ended(pid)?;
    let answer = said(&sandbox, "curl -sS -m 10 http://pub.test/dead; echo $?").await?;
    ensure!(!answer.trim_end().ends_with("\n0") && world.hits("/dead")?.is_empty(), "{answer}");
    let error = sandbox.egress_rules().await.err().ok_or("somebody answers")?;
    ensure!(error.kind() == ErrorKind::Unavailable, "{error}");
    Ok(sandbox.destroy().await?)
}

async fn n01_the_egress_program_runs_as_nobody_else_and_holds_nothing_of_its_makers(world: World) -> Check {
    let sandbox = world.sandbox(&[]).await?;
    let pid = world.egress_pid(&sandbox).await?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<String>>()
    };
    ensure!(field("NoNewPrivs:") == ["1"] && field("Seccomp:") == ["2"], "{status}");
    if rustix::process::geteuid().is_root() {
        let uid: u32 = field("Uid:").first().ok_or("no uid")?.parse()?;
        ensure!((0x7000_0000..0x8000_0000).contains(&uid), "{uid}");
        ensure!(field("Groups:").is_empty() && field("CapEff:") == ["0000000000000000"], "{status}");
        ensure!(std::fs::read(format!("/proc/{pid}/environ"))?.is_empty(), "it has variables");
    }
    Ok(sandbox.destroy().await?)
}
