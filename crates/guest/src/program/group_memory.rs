//! The memory that the guest's own control group counts. In a container its files can be read
//! inside, and the topmost visible group is the sandbox's.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The files of the memory in use: by cgroup v2, by v1.
const CURRENT: [&str; 2] = ["/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes"];
/// The most that ever was. Linux before 5.19 has none with v2.
const PEAK: [&str; 2] = ["/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"];

/// The group's files, where there are any.
#[derive(Debug, Default)]
pub struct GroupMemory {
    current: Option<File>,
    peak: Option<File>,
}

impl GroupMemory {
    /// Opens them before anything else runs in the sandbox.
    pub fn find() -> Self {
        let open = |places: [&str; 2]| places.into_iter().find_map(|place| File::open(place).ok());
        Self { current: open(CURRENT), peak: open(PEAK) }
    }

    /// Bytes in use now.
    pub fn current(&self) -> Option<u64> {
        number_in(self.current.as_ref()?)
    }

    /// The most bytes that ever were in use.
    pub fn peak(&self) -> Option<u64> {
        number_in(self.peak.as_ref()?)
    }
}

fn number_in(file: &File) -> Option<u64> {
    let mut text = [0; 32];
    let count = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..count]).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_groups_numbers_are_read_anew_each_time() {
        let mut file = tempfile::tempfile().unwrap();
        let memory = GroupMemory { current: Some(file.try_clone().unwrap()), peak: None };
        file.write_all(b"4096\n").unwrap();
        assert_eq!((memory.current(), memory.peak()), (Some(4096), None));
        file.write_at(b"8192\n", 0).unwrap();
        assert_eq!(memory.current(), Some(8192));
    }

    #[test]
    fn what_is_no_number_is_not_known() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"max\n").unwrap();
        assert_eq!(GroupMemory { current: Some(file), peak: None }.current(), None);
    }
}
