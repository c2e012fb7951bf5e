//! A state folder of the test's own, and checks of its content.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::Failed;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A state folder that is removed with the test.
pub struct State {
    folder: tempfile::TempDir,
}

impl State {
    pub fn new() -> Result<Self, Failed> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn provider(&self) -> Result<Arc<NativeProvider>, Failed> {
        Ok(NativeProvider::new(NativeOptions { state: self.path(), ..NativeOptions::default() })?)
    }

    /// Returns the process number of a sandbox's guest.
    pub fn guest_of(&self, id: &str) -> Result<i32, Failed> {
        let ready = fs::read_link(self.path().join("sandboxes").join(id).join("ready"))?;
        Ok(ready.to_string_lossy().split(' ').next().unwrap_or_default().parse()?)
    }

    /// Checks that nothing is left: no sandbox, name, range of ids or trash, and no mount in this
    /// namespace.
    pub fn assert_empty(&self) -> Result<(), Failed> {
        for folder in ["sandboxes", "slots", "names", "blocks", "trash"] {
            let left: Vec<String> = names(&self.path().join(folder))?;
            crate::ensure(left.is_empty(), format!("{folder}/ still holds {left:?}"))?;
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let own = self.path().to_string_lossy().into_owned();
        crate::ensure(!mounts.contains(&own), "a mount of the state folder is left")
    }
}

fn names(folder: &Path) -> Result<Vec<String>, Failed> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

/// Waits until a process has ended. One that has ended before is no error.
pub async fn wait_for_end(pid: i32) -> Result<(), Failed> {
    let Some(pid) = Pid::from_raw(pid) else { return Err("not a process number".into()) };
    let ended = tokio::task::spawn_blocking(move || match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).map(drop),
        Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error),
    });
    Ok(ended.await??)
}
