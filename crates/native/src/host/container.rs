//! Detects that this process runs in a container, and knows which options that container needs.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The runtime of the container. It causes no failure, but decides which advice applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Container {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// A pod of Kubernetes.
    Kubernetes,
    /// LXC, LXD, Incus.
    Lxc,
    /// Another container runtime that names itself to systemd.
    Other,
}

impl Container {
    /// Guesses the runtime of the container around this process. The mark `/.dockerenv` counts only
    /// if the root directory is not on a disk, because many images that were made from containers
    /// hold one.
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

    /// Returns the command that starts such a container so that its root, or one of its ordinary
    /// users, can make sandboxes in it.
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
