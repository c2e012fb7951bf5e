//! The rule for descriptors of files that a guest passes: the host reads a file itself only if it is
//! on the sandbox's own overlay, disk or workspace. The kernel says on which mount a descriptor is,
//! and which mounts the sandbox has. Nobody inside can mount anything, so these stay the same while its guest lives, until a
//! snapshot puts another root in the place of the present one: what is not on a known mount is looked for again. Everything else travels as a stream: `/proc` and memory, whose reading could
//! wait or cost the host's memory, and the caller's mounts, which may be on a network.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use eyot::{SandboxSpec, WorkspaceSpec};
use eyot_guest::client::FileGate;
use eyot_guest::protocol::DISK_FILE_SYSTEMS;
use rustix::fs::{AtFlags, StatxFlags};

use crate::mount_line::MountLine;
use crate::ready::ReadyMark;
use crate::record::Record;

/// The mounts of a sandbox whose files the host may use itself.
pub(crate) struct SandboxMounts {
    /// The sandbox's directory, which has its overlay's upper layer or its disk.
    directory: PathBuf,
    workspace: Option<String>,
    callers_mounts: Vec<String>,
    /// The numbers of mounts, and whether each is one of them.
    known: Mutex<HashMap<u64, bool>>,
}

impl SandboxMounts {
    /// The mounts of the sandbox with this record and directory.
    pub(crate) fn of(record: &Record, directory: PathBuf) -> Self {
        let spec: &SandboxSpec = &record.info.spec;
        let persists = matches!(spec.workspace, WorkspaceSpec::Persistent { .. });
        Self {
            directory,
            workspace: persists.then(|| record.info.workdir.to_string()),
            callers_mounts: spec.mounts.iter().map(|mount| mount.target.to_string()).collect(),
            known: Mutex::default(),
        }
    }

    fn has(&self, mount: u64) -> io::Result<bool> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(is_own) = known.get(&mount) {
            return Ok(*is_own);
        }
        *known = HashMap::from([(mount, false)]);
        if is_on_disk(&self.directory)? {
            known.extend(self.read()?);
        }
        Ok(known.get(&mount).is_some_and(|is_own| *is_own))
    }

    /// Reads the table of mounts of the guest that runs now.
    fn read(&self) -> io::Result<HashMap<u64, bool>> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let guest = ReadyMark::read(&self.directory)?.and_then(|ready| ready.guest).ok_or_else(gone)?;
        let table = std::fs::read(format!("/proc/{}/mountinfo", guest.pid))?;
        // Looked at after the reading: it was no later process's table.
        guest.open()?.ok_or_else(gone)?;
        Ok(table.split(|byte| *byte == b'\n').filter_map(|line| self.mount_of(line)).collect())
    }

    /// Returns the number of the mount in a line of mountinfo, and whether it is the sandbox's own.
    fn mount_of(&self, line: &[u8]) -> Option<(u64, bool)> {
        let mount = MountLine::parse(line)?;
        let point = mount.point();
        let is_on_disk = DISK_FILE_SYSTEMS.iter().any(|(known, _)| known.as_bytes() == mount.kind);
        let is_workspace = self.workspace.as_deref().is_some_and(|workspace| point == Path::new(workspace));
        let is_own = mount.kind == b"overlay" || (is_on_disk && is_workspace);
        let is_callers = self.callers_mounts.iter().any(|target| point.starts_with(target));
        Some((mount.id, is_own && !is_callers))
    }
}

/// Tells whether a folder of the host is on a disk. What is written to an overlay in memory would be
/// memory of whoever writes it.
fn is_on_disk(folder: &Path) -> io::Result<bool> {
    let magic = rustix::fs::statfs(folder)?.f_type & 0xffff_ffff;
    Ok(DISK_FILE_SYSTEMS.iter().any(|(_, number)| *number == magic))
}

impl FileGate for SandboxMounts {
    fn admits(&self, file: BorrowedFd<'_>) -> io::Result<bool> {
        // The mount of a descriptor never changes, so no file system is asked for it.
        let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let found = rustix::fs::statx(file, "", how, StatxFlags::MNT_ID)?;
        let is_known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        Ok(is_known && self.has(found.stx_mnt_id)?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;
    use crate::record::GuestProcess;
    use crate::record::tests::record;

    const TABLE: &str = "884 709 0:121 / / rw,nosuid - overlay overlay rw,upperdir=upper\n\
        887 884 0:125 / /usr ro,nosuid master:1 - overlay overlay ro\n\
        891 884 0:245 / /proc rw - proc proc rw\n\
        941 884 0:119 /null /dev/null rw - tmpfs none rw\n\
        948 884 0:250 / /dev/shm rw - tmpfs tmpfs rw\n\
        950 884 254:0 /state/w1 /workspace rw - ext4 /dev/vda rw\n\
        951 950 254:0 /srv /workspace/srv rw - ext4 /dev/vda rw\n\
        952 884 0:44 / /data rw - nfs4 server:/ rw\n\
        953 884 0:45 / /mnt/image rw - overlay overlay rw\n\
        955 884 0:47 / /my\\040data rw - overlay overlay rw\n\
        954 884 0:46 / /mnt/fuse rw - fuse.sshfs x rw\n";

    fn mounts(workspace: Option<&str>) -> SandboxMounts {
        SandboxMounts {
            directory: std::env::temp_dir(),
            workspace: workspace.map(str::to_owned),
            callers_mounts: ["/workspace/srv", "/mnt", "/my data"].map(str::to_owned).to_vec(),
            known: Mutex::default(),
        }
    }

    fn own(mounts: &SandboxMounts) -> Vec<u64> {
        let all = TABLE.lines().filter_map(|line| mounts.mount_of(line.as_bytes()));
        all.filter_map(|(id, is_own)| is_own.then_some(id)).collect()
    }

    #[test]
    fn only_the_overlays_and_the_workspace_are_the_sandboxs_own() {
        assert_eq!(own(&mounts(None)), [884, 887]);
        assert_eq!(own(&mounts(Some("/workspace"))), [884, 887, 950]);
        assert_eq!(mounts(None).mount_of(b"rubbish"), None);
    }

    #[test]
    fn n6_files_of_the_host_and_of_no_disk_are_not_admitted() {
        let directory = tempfile::tempdir().unwrap();
        ReadyMark::running(GuestProcess::of(std::process::id() as i32).unwrap())
            .make(directory.path())
            .unwrap();
        let mounts = SandboxMounts { directory: directory.path().to_owned(), ..mounts(None) };
        let memory = rustix::fs::memfd_create("m", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::fcntl_add_seals(&memory, rustix::fs::SealFlags::WRITE).unwrap();
        assert!(!mounts.admits(memory.as_fd()).unwrap());
        for path in ["/proc/self/status", "/dev/null"] {
            assert!(!mounts.admits(File::open(path).unwrap().as_fd()).unwrap(), "{path}");
        }
    }

    #[test]
    fn without_a_guest_nothing_is_admitted() {
        let directory = tempfile::tempdir().unwrap();
        let mounts = SandboxMounts::of(&record(), directory.path().to_owned());
        let file = File::open("/proc/self/exe").unwrap();
        // An error on a disk; on any other file system no file is admitted.
        assert!(!mounts.admits(file.as_fd()).unwrap_or(false));
    }
}
