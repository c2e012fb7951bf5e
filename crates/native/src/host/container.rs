//! Being inside somebody's container: how to tell, and what to run the container with.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// What runs the container. It is no cause of anything, but decides what advice is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Container {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// A pod.
    Kubernetes,
    /// LXC, LXD, Incus.
    Lxc,
    /// Something else that names itself to systemd.
    Other,
}

impl Container {
    /// What this process seems to be in. Docker's mark counts only where the root directory is no disk's: it is in many
    /// images that were made from containers.
    pub(super) fn detect(root_on_disk: bool) -> Option<Self> {
        let exists = |path: &str| Path::new(path).exists();
        let told = std::fs::read_to_string("/run/systemd/container").unwrap_or_default();
        match told.trim() {
            _ if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => Some(Self::Kubernetes),
            _ if exists("/var/run/secrets/kubernetes.io") => Some(Self::Kubernetes),
            "podman" => Some(Self::Podman),
            "docker" => Some(Self::Docker),
            "lxc" | "lxc-libvirt" => Some(Self::Lxc),
            _ if exists("/run/.containerenv") => Some(Self::Podman),
            _ if exists("/.dockerenv") && !root_on_disk => Some(Self::Docker),
            _ if exists("/dev/lxd") || exists("/dev/incus") => Some(Self::Lxc),
            "" => None,
            _ => Some(Self::Other),
        }
    }

    /// The command that starts such a container so that sandboxes can be made in it, by its root or by a user of its.
    pub(super) fn advice(self, as_root: bool) -> Option<String> {
        let command = match (self, as_root) {
            (Self::Docker, true) => "docker run --privileged -v eyot:/var/lib/eyot …",
            (Self::Docker, false) => {
                "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
                 --security-opt systempaths=unconfined -v eyot:/home/user/.local/state …"
            }
            (Self::Podman, true) => "podman run --privileged --user 1000 -v eyot:/home/user/.local/state:U …",
            (Self::Podman, false) => {
                "podman run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
                 --security-opt unmask=ALL -v eyot:/home/user/.local/state:U …"
            }
            (Self::Kubernetes, _) => "kubectl run eyot --privileged --image=…",
            (Self::Lxc, _) => "lxc config set … security.nesting=true",
            (Self::Other, _) => return None,
        };
        Some(command.to_owned())
    }
}
