//! The differences between the sandbox that was asked for and the one that is there.

use eyot::{NetworkMode, SandboxSpec, WorkspaceSpec};

use crate::args::SpecArgs;
use crate::durations::DeadlineArg;

/// Names what a sandbox has otherwise than the flags ask for. What they leave open may be anything.
pub fn differences(asked: &SpecArgs, is: &SandboxSpec) -> Vec<&'static str> {
    let all = [what_it_is(asked, is), what_it_has(asked, is), limits(asked, is), deadlines(asked, is)];
    all.into_iter().flatten().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

/// A name, and whether it differs.
type Row = (&'static str, bool);

fn what_it_is(asked: &SpecArgs, is: &SandboxSpec) -> Vec<Row> {
    let (allow, deny) = (&is.egress.allow, &is.egress.deny);
    let lacks_rule = asked.allow.iter().any(|rule| !allow.contains(rule))
        || asked.deny.iter().any(|rule| !deny.contains(rule));
    vec![
        ("image", other(&asked.image, &is.image)),
        ("network", asked.net.is_some_and(|net| NetworkMode::from(net) != is.network)),
        ("rules of the network", lacks_rule),
        ("user", other(&asked.user, &is.user)),
        ("working directory", other(&asked.workdir, &is.workdir)),
        ("workspace", asked.workspace.as_ref().is_some_and(|id| !is_workspace(&is.workspace, id))),
    ]
}

fn what_it_has(asked: &SpecArgs, is: &SandboxSpec) -> Vec<Row> {
    let mut mounts = asked.mount.iter().chain(&asked.volume);
    let mut labels = asked.label.iter();
    vec![
        ("set of mounts", mounts.any(|mount| !is.mounts.contains(mount))),
        ("set of ports", asked.publish.iter().any(|port| !is.container.ports.contains(port))),
        ("set of labels", labels.any(|(key, value)| is.labels.get(key) != Some(value))),
    ]
}

fn limits(asked: &SpecArgs, is: &SandboxSpec) -> Vec<Row> {
    let limits = &is.limits;
    vec![
        ("memory limit", other(&asked.memory_mib(), &limits.memory_mib)),
        ("limit of processors", other(&asked.cpus, &limits.cpus)),
        ("limit of processes", other(&asked.pids, &limits.pids)),
        ("disk limit", other(&asked.disk_mib(), &limits.disk_mib)),
        ("deadline of commands", other(&asked.timeout.or(asked.timeout_ms), &limits.timeout_ms)),
    ]
}

fn deadlines(asked: &SpecArgs, is: &SandboxSpec) -> Vec<Row> {
    let lifecycle = &is.lifecycle;
    let differs = |asked: Option<DeadlineArg>, is| asked.is_some_and(|DeadlineArg(after)| after != is);
    vec![
        ("ttl", differs(asked.ttl, lifecycle.ttl_ms)),
        ("idle timeout", differs(asked.idle_timeout, lifecycle.idle_timeout_ms)),
        ("action when idle", asked.on_idle.is_some_and(|action| action != lifecycle.on_idle)),
    ]
}

/// Tells whether something was asked for and is otherwise.
fn other<T: PartialEq>(asked: &Option<T>, is: &Option<T>) -> bool {
    asked.is_some() && asked != is
}

fn is_workspace(workspace: &WorkspaceSpec, asked: &str) -> bool {
    matches!(workspace, WorkspaceSpec::Persistent { id, .. } if id == asked)
}
