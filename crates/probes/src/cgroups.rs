//! K10: control groups, whose files once led to root on the host.

use std::fs::OpenOptions;

use crate::check::{Check, cases, ensure, not_enforced};
use crate::facts::{note, tried, tried_io};
use crate::sys;
use crate::world::Stage;

cases! {
    k10_there_is_no_cgroup_file_system_and_none_can_be_mounted(stage);
    k10_a_process_does_not_see_where_its_groups_are_and_can_not_move(stage);
}

/// Looks for groups, and tries to mount them.
pub fn probe(_arguments: &[String]) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_cgroup = |line: &str| line.split(' ').nth(2).is_some_and(|kind| kind.starts_with("cgroup"));
    note("mounted", mounts.lines().any(is_cgroup));
    let target = sys::address(c"/tmp");
    for (name, kind) in [("v1", c"cgroup"), ("v2", c"cgroup2")] {
        let kind = sys::address(kind);
        for (options, text) in
            [("plain", c""), ("rdma", c"rdma"), ("memory", c"memory"), ("named", c"none,name=x")]
        {
            let mounted = sys::call(libc::SYS_mount, &[kind, target, kind, 0, sys::address(text)]);
            tried(format_args!("mount_{name}_{options}"), mounted);
        }
    }
    for name in
        ["cgroup.procs", "release_agent", "memory/cgroup.procs", "unified/cgroup.procs", "rdma/release_agent"]
    {
        let file = OpenOptions::new().write(true).open(format!("/sys/fs/cgroup/{name}"));
        tried_io(format_args!("write_{name}"), file);
    }
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let outside = groups.lines().filter(|line| line.rsplit(':').next() != Some("/"));
    note("seen", outside.collect::<Vec<_>>().join(" "));
}

async fn k10_there_is_no_cgroup_file_system_and_none_can_be_mounted(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["cgroups"]).await?;
        if stage.is_native() {
            facts.is("mounted", "false")?;
        }
        facts.each("mount_", stage.refusals(&["EPERM"]))?;
        // A container has it, read-only.
        facts.each("write_", if stage.is_native() { &["ENOENT"] } else { &["ENOENT", "EROFS", "EACCES"] })?;
    }
    Ok(())
}

async fn k10_a_process_does_not_see_where_its_groups_are_and_can_not_move(stage: Stage) -> Check {
    if !stage.sandbox.isolation().namespaces.iter().any(|namespace| namespace == "cgroup") {
        return not_enforced(
            "there is no cgroup namespace, as `isolation()` says: a process sees where its groups are",
        );
    }
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["cgroups"]).await?;
        let seen = facts.get("seen")?;
        ensure!(seen.is_empty(), "{who} sees where its groups are: {seen}");
    }
    Ok(())
}
