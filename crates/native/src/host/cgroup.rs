//! Control groups. A sandbox can be made without them, but without them its limits are not
//! enforced.

use serde::{Deserialize, Serialize};

use super::by_hand::{Hierarchies, has_systemd};
use super::facts::Facts;
use super::finding::{Finding, Status};
use crate::cgroup::{CgroupCause, CgroupController, CgroupSupport};

/// The support for limits that control groups give on this host.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cgroups {
    /// The controllers that limit sandboxes: `cpu`, `memory`, `pids`. `None` if it is not known,
    /// because no sandbox could be made.
    pub controllers: Option<Vec<String>>,
    /// The reason why a controller is missing, in words.
    pub why: Option<String>,
    /// The command that makes the missing controllers available.
    pub fix: Option<String>,
}

impl Cgroups {
    /// Takes the support that the launcher found.
    pub(super) fn of(support: &CgroupSupport, uid: u32) -> Self {
        let held = CgroupController::ALL.into_iter().filter(|controller| support.has(*controller));
        let cause = support.cause.as_ref();
        Self {
            controllers: Some(held.map(|controller| controller.name().to_owned()).collect()),
            why: cause.map(ToString::to_string),
            fix: cause.and_then(|cause| fix(cause, uid)),
        }
    }
}

/// Returns the command that makes the missing controllers available to this user.
pub(crate) fn fix(cause: &CgroupCause, uid: u32) -> Option<String> {
    if has_systemd() { with_systemd(cause, uid) } else { Hierarchies::read().fix(cause, uid) }
}

/// Reports which controllers limit sandboxes, and which are missing.
pub(super) fn finding(facts: &Facts) -> Finding {
    let Some(held) = &facts.cgroups.controllers else {
        let why = "not known: no sandbox could be made".to_owned();
        return Finding { id: "limits", cause: None, status: Status::Info, why, fix: None };
    };
    let missing = CgroupController::ALL.into_iter().map(CgroupController::name);
    let missing: Vec<&str> = missing.filter(|name| !held.iter().any(|held| held == name)).collect();
    if missing.is_empty() {
        let why = "memory, processor time and processes are limited by control groups".to_owned();
        return Finding { id: "limits", cause: None, status: Status::Ok, why, fix: None };
    }
    let because = facts.cgroups.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let why = format!("control groups do not limit {}{because}", missing.join(", "));
    let fix = facts.cgroups.fix.clone();
    Finding { id: "limits", cause: Some("no-cgroup"), status: Status::Warn, why, fix }
}

fn with_systemd(cause: &CgroupCause, uid: u32) -> Option<String> {
    let scope = match uid {
        0 => "systemd-run --scope --property=Delegate=yes eyot doctor",
        _ => "systemd-run --user --scope --property=Delegate=yes eyot doctor",
    };
    let command = match cause {
        CgroupCause::NotMounted => "sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup".to_owned(),
        CgroupCause::NotDelegated => format!("sudo loginctl enable-linger {uid}"),
        CgroupCause::NotWritable { .. } | CgroupCause::Occupied { .. } => scope.to_owned(),
        CgroupCause::NoScope { .. } => "systemctl --user status".to_owned(),
        CgroupCause::NoController { controller, .. } if uid == 0 => {
            format!("echo +{} > /sys/fs/cgroup/cgroup.subtree_control", controller.name())
        }
        CgroupCause::NoController { .. } => {
            "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' \
             | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload"
                .to_owned()
        }
    };
    Some(command)
}
