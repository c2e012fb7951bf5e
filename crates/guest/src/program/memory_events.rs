//! Detection of commands that were killed because the sandbox's memory was used up. The guest has
//! no control group files inside. The maker hands it the file that counts such kills, open for
//! reading.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::sys;
use crate::protocol::Status;

/// The exit code of a shell whose child was killed.
const KILLED_CHILD: i32 = 128 + libc::SIGKILL;

/// The count of kills, where there is one.
#[derive(Debug)]
pub struct MemoryEvents {
    file: Option<File>,
    /// The number of kills that are accounted for. Each further command that was killed needs a
    /// kill beyond it.
    accounted: u64,
    /// Kills that [`MemoryEvents::has_new`] has told of.
    told: u64,
}

impl MemoryEvents {
    /// Takes over the file that was handed over, if there is one.
    pub fn take(fd: Option<i32>) -> std::io::Result<Self> {
        let file = fd.map(sys::take_inherited).transpose()?.map(File::from);
        Ok(Self { file, accounted: 0, told: 0 })
    }

    /// Looks for the file in a control group file system that this process sees, where its own
    /// group is at the top.
    pub fn find() -> Self {
        let places = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];
        Self { file: places.into_iter().find_map(|place| File::open(place).ok()), accounted: 0, told: 0 }
    }

    /// Returns the number of kills. The kernel counts before it kills.
    pub fn kills(&self) -> u64 {
        let mut text = [0; 512];
        let read = self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        read.map_or(0, |count| count_in(&String::from_utf8_lossy(&text[..count])))
    }

    /// Tells if there were kills since this was last asked.
    pub fn has_new(&mut self) -> bool {
        let kills = self.kills();
        std::mem::replace(&mut self.told, kills) < kills
    }

    /// Returns the status of a command that began when there were `before` kills. A command counts
    /// as killed for want of memory if it was killed, or its shell reports a killed child, while
    /// the count rose. Of two commands that end so, each needs a kill.
    pub fn explain(&mut self, status: Status, before: u64) -> Status {
        let was_killed = matches!(status, Status::Signaled(libc::SIGKILL) | Status::Exited(KILLED_CHILD));
        if !was_killed || self.file.is_none() {
            return status;
        }
        let known = before.max(self.accounted);
        if self.kills() <= known {
            return status;
        }
        self.accounted = known + 1;
        Status::OutOfMemory
    }
}

fn count_in(text: &str) -> u64 {
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const KILLED: Status = Status::Signaled(libc::SIGKILL);

    #[test]
    fn the_count_is_read_from_either_versions_file() {
        let v2 = "low 0\nhigh 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(count_in(v2), 2);
        assert_eq!(count_in("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), 7);
        assert_eq!(count_in(""), 0);
    }

    fn with_kills(file: &mut File, kills: u64) {
        file.set_len(0).unwrap();
        file.write_at(format!("oom_kill {kills}\n").as_bytes(), 0).unwrap();
        file.flush().unwrap();
    }

    #[test]
    fn a_killed_command_ran_out_of_memory_only_if_the_count_rose_while_it_ran() {
        let mut file = tempfile::tempfile().unwrap();
        with_kills(&mut file, 1);
        let mut events = MemoryEvents { file: Some(file.try_clone().unwrap()), accounted: 0, told: 0 };
        assert_eq!(events.explain(KILLED, 1), KILLED);
        with_kills(&mut file, 2);
        assert_eq!(events.explain(Status::Exited(1), 1), Status::Exited(1));
        assert_eq!(events.explain(Status::Signaled(libc::SIGTERM), 1), Status::Signaled(libc::SIGTERM));
        assert_eq!(events.explain(Status::Exited(137), 1), Status::OutOfMemory);
    }

    #[test]
    fn one_kill_explains_one_command() {
        let mut file = tempfile::tempfile().unwrap();
        with_kills(&mut file, 1);
        let mut events = MemoryEvents { file: Some(file.try_clone().unwrap()), accounted: 0, told: 0 };
        assert_eq!(events.explain(KILLED, 0), Status::OutOfMemory);
        assert_eq!(events.explain(KILLED, 0), KILLED);
        with_kills(&mut file, 2);
        assert_eq!(events.explain(KILLED, 0), Status::OutOfMemory);
    }

    #[test]
    fn without_the_file_nothing_is_explained() {
        let mut events = MemoryEvents::take(None).unwrap();
        assert_eq!((events.kills(), events.explain(KILLED, 0)), (0, KILLED));
    }
}
