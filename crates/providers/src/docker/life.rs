//! One life of a sandbox, from a start of its container to the end of its guest. The nonces are
//! derived from the time of the start, so a client of an earlier guest can't reach the next one.

use eyot::{Limits, SandboxSpec, WorkspaceSpec};
use eyot_guest::environment;
use eyot_guest::protocol::container::{ContainerConfig, PreparedDirectory};
use eyot_guest::protocol::{GuestConfig, Identity, LOG_BYTES};
use sha2::{Digest, Sha256};

use super::isolation::root_capabilities;
use super::labels::Record;

/// The number of processes that a sandbox may start per second on average, before the numbers of an
/// earlier life could be used again: the host does not know how many numbers an earlier guest gave
/// out.
const PROCESSES_PER_SECOND: i64 = 64;

/// The home directory where the root file system is read-only.
pub(crate) const WRITABLE_HOME: &str = "/home/user";

/// The directories for everybody's temporary files.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// A life, identified by the Engine's start time of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Life(pub String);

impl Life {
    /// Returns the client's nonce and the guest's answer.
    pub(crate) fn nonces(&self, record: &Record) -> ([u8; 16], [u8; 16]) {
        (self.derived(record, "client"), self.derived(record, "guest"))
    }

    fn derived(&self, record: &Record, role: &str) -> [u8; 16] {
        let digest = Sha256::new()
            .chain_update(record.guest_secret)
            .chain_update(role)
            .chain_update([0])
            .chain_update(&self.0);
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&digest.finalize()[..16]);
        nonce
    }

    /// Returns the configuration for the guest of this life. `is_first` is set during the create.
    pub(crate) fn config(&self, record: &Record, is_first: bool, now_ms: i64) -> ContainerConfig {
        let (client_nonce, guest_nonce) = self.nonces(record);
        let lifecycle = &record.spec.lifecycle;
        let readonly = record.spec.security.readonly_rootfs;
        let ttl_ms = if is_first {
            lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy)
        } else {
            record.ttl_left_ms(now_ms).map(|left| left.max(1))
        };
        ContainerConfig {
            guest: GuestConfig {
                client_nonce,
                guest_nonce,
                ttl_ms,
                idle_timeout_ms: lifecycle.idle_timeout_ms.filter(|_| lifecycle.auto_destroy),
                // The guest looks for it in the container.
                user: Identity { name: String::new(), uid: 0, gid: 0, home: String::new(), capabilities: 0 },
                users: Vec::new(),
                env: environment::completed(&record.env),
                switch_user: true,
                log_bytes: LOG_BYTES,
                // The Engine counts; the kernel would count whatever else has the same user id on its host.
                max_processes: None,
                forbid_setuid: leaves_programs(&record.spec),
                memory_events_fd: None,
                last_process_id: if is_first { 0 } else { used_numbers(record, now_ms) },
                later_users: None,
                late_files: Vec::new(),
            },
            user: record.user.clone(),
            capabilities: root_capabilities(&record.spec.security),
            home: readonly.then(|| WRITABLE_HOME.to_owned()),
            is_woken: !is_first,
            directories: directories(record),
        }
    }
}

/// Lists the directories that need a volume to stay writable where the root file system is read-only.
pub(crate) fn writable_directories(record: &Record) -> impl Iterator<Item = &'static str> {
    let workdir = record.workdir().to_string();
    let is_mounted = move |path: &str| {
        path == workdir || record.spec.container.tmpfs_mib.keys().any(|memory| memory.as_str() == path)
    };
    TEMPORARY.into_iter().chain([WRITABLE_HOME]).filter(move |path| !is_mounted(path))
}

fn used_numbers(record: &Record, now_ms: i64) -> u32 {
    let lived_ms = now_ms.saturating_sub(record.created_ms).clamp(0, Limits::MAX as i64);
    u32::try_from(lived_ms * PROCESSES_PER_SECOND / 1000).unwrap_or(u32::MAX / 2)
}

/// Lists the mount points that belong to the user who runs commands, and the temporary ones if they are.
pub(crate) fn directories(record: &Record) -> Vec<PreparedDirectory> {
    let of_user = |path: String| PreparedDirectory { path, of_user: true, mode: None };
    let workdir = record.workdir().to_string();
    let mut directories = Vec::new();
    // Else it is no mount point, and a link could have taken its place.
    if !record.has_own_workdir() {
        directories.push(of_user(workdir));
    }
    if record.spec.security.readonly_rootfs {
        directories.extend(writable_directories(record).map(|path| {
            let is_home = path == WRITABLE_HOME;
            let mode = (!is_home).then_some(0o1777);
            PreparedDirectory { path: path.to_owned(), of_user: is_home, mode }
        }));
    }
    let memory = record.spec.container.tmpfs_mib.keys();
    directories.extend(memory.map(|path| of_user(path.to_string())));
    directories
}

/// Tells whether set-id programs that the sandbox makes could be used outside, on a volume that
/// outlives it. The filter against them needs `no_new_privileges`; a spec without that asks for a
/// sandbox in which such programs work.
fn leaves_programs(spec: &SandboxSpec) -> bool {
    spec.security.no_new_privileges && matches!(spec.workspace, WorkspaceSpec::Persistent { .. })
}

#[cfg(test)]
mod tests {
    use eyot::{SandboxSpec, Security};

    use super::*;
    use crate::docker::labels::tests::record;

    #[test]
    fn every_life_has_nonces_of_its_own_and_the_two_sides_differ() {
        let record = record(SandboxSpec::default());
        let (one, other) = (Life("2026-01-01T00:00:00.1Z".into()), Life("2026-01-01T00:00:00.2Z".into()));
        let (client, guest) = one.nonces(&record);
        assert_ne!(client, guest);
        assert_ne!(one.nonces(&record), other.nonces(&record));
        assert_eq!(one.nonces(&record), (client, guest));
    }

    #[test]
    fn a_later_life_counts_on_and_its_ttl_is_what_is_left() {
        let mut spec = SandboxSpec::default();
        spec.lifecycle.ttl_ms = Some(10_000);
        let record = record(spec);
        let life = Life("x".into());
        let first = life.config(&record, true, 5_000);
        assert_eq!(
            (first.guest.ttl_ms, first.guest.last_process_id, first.is_woken),
            (Some(10_000), 0, false)
        );
        let later = life.config(&record, false, 5_000);
        assert_eq!(
            (later.guest.ttl_ms, later.guest.last_process_id, later.is_woken),
            (Some(6_000), 256, true)
        );
    }

    #[test]
    fn k17_no_set_id_bit_can_be_set_where_the_workspace_outlives_the_sandbox() {
        let forbids = |json: &str| {
            let record = record(serde_json::from_str(json).unwrap());
            Life("x".into()).config(&record, true, 0).guest.forbid_setuid
        };
        assert!(forbids(r#"{"workspace":{"mode":"persistent","id":"w"}}"#));
        assert!(!forbids("{}"));
    }

    #[test]
    fn a_read_only_root_leaves_home_and_the_temporary_directories_writable() {
        let security = Security { readonly_rootfs: true, ..Security::default() };
        let config =
            Life("x".into()).config(&record(SandboxSpec { security, ..SandboxSpec::default() }), true, 0);
        let paths: Vec<&str> = config.directories.iter().map(|directory| directory.path.as_str()).collect();
        assert_eq!(paths, ["/workspace", "/tmp", "/var/tmp", "/home/user"]);
        assert_eq!(config.home.as_deref(), Some("/home/user"));
    }
}
