//! K16: a protection that can't be set up. Each step of the set-up is made to fail, on the host, in
//! a process of its own whose descendants can be counted.

use std::path::Path;

use eyot::{ErrorKind, Limits, NetworkMode, Sandbox, SandboxSpec, Security};
use eyot_native::{NativeOptions, NativeProvider};
use tempfile::TempDir;
use tokio::process::Command;

use crate::check::{Check, cases, ensure, not_here, promptly};
use crate::facts::{Facts, note};
use crate::world::World;

cases! {
    k16_every_step_that_fails_ends_the_create_and_leaves_nothing(world);
    k16_landlock_that_fails_ends_the_create_and_leaves_nothing(world);
    k16_control_groups_that_fail_end_the_create_and_leave_nothing(world);
    k16_a_limit_of_the_process_namespace_that_fails_ends_the_create_and_leaves_nothing(world);
    k16_a_create_without_a_failing_step_succeeds_in_the_same_process(world);
}

const LANDLOCK: &str = "restrict by Landlock";
/// Each is there with one of the two ways to map ids alone.
const MAPPED_BY_ROOT: &str = "become inner root";
const MAPPED_BY_OTHERS: &str = "map the user";
/// A step that needs Linux 6.14: before, the number is the whole host's.
const PID_MAX: &str = "limit the process namespace";

/// Returns the steps that every create takes, as root or not, without those that some kernels lack.
fn steps_taken() -> impl Iterator<Item = &'static str> {
    let other_map = if rustix::process::geteuid().is_root() { MAPPED_BY_OTHERS } else { MAPPED_BY_ROOT };
    eyot_native::step_names().into_iter().filter(move |step| ![LANDLOCK, PID_MAX, other_map].contains(step))
}

/// Tries to create a sandbox with a step that fails (or none) in the folder that is given, and says
/// what came of it and what is left. Every step has the same folder: what one leaves is seen there.
pub fn probe(arguments: &[String]) {
    let [folder, fail_step] = arguments else { return };
    let state = Path::new(folder).join("state");
    let fail_step = Some(fail_step.clone()).filter(|step| !step.is_empty());
    let options = NativeOptions { state: state.clone(), fail_step, ..NativeOptions::default() };
    let security = Security { readonly_rootfs: true, ..Security::default() };
    // With every step that a create can have; without `cpus` the processors are not chosen.
    let limits = Limits { cpus: Some(1.0), disk_mib: Some(16), ..Limits::default() };
    let spec = SandboxSpec { security, limits, network: NetworkMode::Egress, ..SandboxSpec::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let (Ok(provider), Ok(runtime)) = (NativeProvider::new(options), runtime) else { return };
    // Who loses their parent becomes a child of this process, and is counted.
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_err() {
        return;
    }
    match runtime.block_on(Sandbox::create(&*provider, spec)) {
        Ok(sandbox) => {
            note("created", true);
            note("guests", descendants());
            note("destroyed", runtime.block_on(sandbox.destroy()).is_ok());
        }
        Err(error) => {
            note("kind", error.kind());
            note("message", &error);
            note("is_setup", error.kind() == ErrorKind::Setup);
        }
    }
    for name in ["sandboxes", "names", "blocks", "trash"] {
        note(format_args!("left_{name}"), count(&state.join(name)));
    }
    note("left_processes", wait_for_no_descendants());
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map(Iterator::count).unwrap_or(usize::MAX)
}

/// Counts the living descendants of this process, without the launcher.
fn descendants() -> usize {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((before, after)) = stat.rsplit_once(')') else { continue };
        let pid = before.split(' ').next().and_then(|pid| pid.parse::<u32>().ok());
        let parent = after.split_whitespace().nth(1).and_then(|pid| pid.parse::<u32>().ok());
        // An ended process stays a zombie of this process, its last ancestor, which does not reap
        // it.
        let has_ended = after.split_whitespace().next() == Some("Z");
        if let (Some(pid), Some(parent), false) = (pid, parent, has_ended) {
            parents.push((pid, parent));
        }
    }
    let mut family = vec![std::process::id()];
    let mut seen = 0;
    while seen < family.len() {
        let parent = family[seen];
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        seen += 1;
    }
    family.len().saturating_sub(2)
}

/// A process that was killed may still be on its way out.
fn wait_for_no_descendants() -> usize {
    for _ in 0..100 {
        if descendants() == 0 {
            return 0;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    descendants()
}

/// Makes the folder that a test's attempts share.
fn own_folder(world: &World) -> Check<TempDir> {
    Ok(tempfile::tempdir_in(world.scratch())?)
}

/// Why containers are left out.
const STEPS: &str =
    "the steps of a container's set-up are its engine's; what the guest does itself must succeed or it ends";

async fn try_with(folder: &TempDir, step: &str) -> Check<Facts> {
    let attempt = Command::new(std::env::current_exe()?)
        .args(["probe", "fail-closed"])
        .args([folder.path(), step.as_ref()])
        .kill_on_drop(true)
        .output();
    let output = promptly(step, attempt).await??;
    let facts = Facts::parse(&String::from_utf8_lossy(&output.stdout));
    facts.each("left_", &["0"])?;
    Ok(facts)
}

async fn ensure_fails_closed(folder: &TempDir, step: &str) -> Check {
    let facts = try_with(folder, step).await?;
    let message = facts.get("message")?;
    ensure!(facts.get("is_setup")? == "true", "{step}: {} {message}", facts.get("kind")?);
    ensure!(message.contains(step), "`{message}` does not name the step `{step}`");
    Ok(())
}

async fn k16_every_step_that_fails_ends_the_create_and_leaves_nothing(world: std::sync::Arc<World>) -> Check {
    world.need_native(STEPS)?;
    let known = eyot_native::step_names();
    for step in ["install the seccomp filter", MAPPED_BY_ROOT, MAPPED_BY_OTHERS, LANDLOCK, PID_MAX] {
        ensure!(known.len() >= 19 && known.contains(&step), "the steps are no longer found: {known:?}");
    }
    let folder = own_folder(&world)?;
    for step in steps_taken() {
        ensure_fails_closed(&folder, step).await?;
    }
    Ok(())
}

async fn k16_landlock_that_fails_ends_the_create_and_leaves_nothing(world: std::sync::Arc<World>) -> Check {
    world.need_native(STEPS)?;
    let stage = world.stage().await?;
    let abi = stage.sandbox.isolation().landlock_abi;
    stage.end().await?;
    match abi {
        Some(_) => ensure_fails_closed(&own_folder(&world)?, LANDLOCK).await,
        None => not_here("this kernel has no Landlock"),
    }
}

async fn k16_control_groups_that_fail_end_the_create_and_leave_nothing(
    world: std::sync::Arc<World>,
) -> Check {
    world.need_native(STEPS)?;
    let stage = world.stage().await?;
    let controllers = stage.sandbox.isolation().cgroup_controllers.clone();
    stage.end().await?;
    if controllers.is_empty() {
        return not_here("no control group here can be written to");
    }
    let folder = own_folder(&world)?;
    for step in ["make its control groups", "set the limits of its control groups"] {
        ensure_fails_closed(&folder, step).await?;
    }
    Ok(())
}

async fn k16_a_limit_of_the_process_namespace_that_fails_ends_the_create_and_leaves_nothing(
    world: std::sync::Arc<World>,
) -> Check {
    world.need_native(STEPS)?;
    const NUMBER: &str = "/proc/sys/kernel/pid_max";
    let stage = world.stage().await?;
    let inside = stage.output(&format!("cat {NUMBER}")).await?;
    stage.end().await?;
    if inside == std::fs::read_to_string(NUMBER)?.trim() {
        not_here("this kernel has no `pid_max` per process namespace")
    } else {
        ensure_fails_closed(&own_folder(&world)?, PID_MAX).await
    }
}

async fn k16_a_create_without_a_failing_step_succeeds_in_the_same_process(
    world: std::sync::Arc<World>,
) -> Check {
    world.need_native(STEPS)?;
    let facts = try_with(&own_folder(&world)?, "").await?;
    facts.is("created", "true")?;
    facts.is("destroyed", "true")?;
    // The counting counts: there was a guest.
    ensure!(facts.number("guests")? >= 1, "{facts:?}");
    Ok(())
}
