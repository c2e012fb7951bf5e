//! The resources that a sandbox's control groups count. They are read from outside, so a sandbox is
//! neither asked nor woken.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use eyot::Usage;

/// Reads what the groups of one sandbox count.
pub(crate) fn measure(paths: &[PathBuf]) -> Usage {
    UsageReader::default().measure(paths)
}

/// Reads what the groups of many sandboxes count. Groups of the same parent have the same files, so
/// a file that one lacks is not looked for in the next.
#[derive(Debug, Default)]
pub(crate) struct UsageReader {
    missing: HashSet<(PathBuf, &'static str)>,
}

/// The most bytes that are read of a file: enough for every number, and for the first line of
/// `cpu.stat`.
const READ_BYTES: usize = 256;

impl UsageReader {
    /// Reads what the groups of one sandbox count. A value that no group counts is `None`. The
    /// processes are known only if none runs beside the guest.
    pub(crate) fn measure(&mut self, paths: &[PathBuf]) -> Usage {
        let cpu_us = self.read("cpu.stat", paths).and_then(|text| word(&text, "usage_usec"));
        let cpu_us = cpu_us.or_else(|| Some(self.number("cpuacct.usage", paths)? / 1000));
        let memory = self.number("memory.current", paths);
        let peak = self.number("memory.peak", paths);
        Usage {
            processes: (self.process_count(paths) == Some(1)).then_some(0),
            memory_bytes: memory.or_else(|| self.number("memory.usage_in_bytes", paths)),
            memory_peak_bytes: peak.or_else(|| self.number("memory.max_usage_in_bytes", paths)),
            cpu_ms: cpu_us.map(|us| us / 1000),
            ..Usage::default()
        }
    }

    /// Counts the processes in the first group that can be read, the guest included. The count is
    /// too low where the list is longer than what is read of it, but never 1 then.
    fn process_count(&mut self, paths: &[PathBuf]) -> Option<usize> {
        self.read("cgroup.procs", paths).map(|text| text.lines().count())
    }

    fn number(&mut self, file: &'static str, paths: &[PathBuf]) -> Option<u64> {
        self.read(file, paths)?.trim().parse().ok()
    }

    /// Reads the beginning of a file from the first group that has it.
    fn read(&mut self, file: &'static str, paths: &[PathBuf]) -> Option<String> {
        paths.iter().find_map(|path| {
            let parent = path.parent()?.to_owned();
            let key = (parent, file);
            if self.missing.contains(&key) {
                return None;
            }
            match beginning(&path.join(file)) {
                Ok(text) => Some(text),
                Err(error) => {
                    // A group that is gone says nothing about others.
                    if error.kind() == io::ErrorKind::NotFound && path.exists() {
                        self.missing.insert(key);
                    }
                    None
                }
            }
        })
    }
}

fn beginning(path: &Path) -> io::Result<String> {
    let mut bytes = [0; READ_BYTES];
    let count = File::open(path)?.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// Finds the number behind a word at the start of a line.
fn word(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(parent: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let group = parent.join(name);
        std::fs::create_dir(&group).unwrap();
        for (file, text) in files {
            std::fs::write(group.join(file), text).unwrap();
        }
        group
    }

    #[test]
    fn what_one_group_lacks_is_read_from_another_in_every_sandbox() {
        let [v2, v1] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut reader = UsageReader::default();
        for (name, procs, processes) in [("one", "7\n", Some(0)), ("two", "8\n9\n", None)] {
            let cpu = [("cpu.stat", "usage_usec 5000\nuser_usec 1\n"), ("cgroup.procs", procs)];
            let memory = [("memory.usage_in_bytes", "4096\n"), ("memory.max_usage_in_bytes", "8192\n")];
            let paths = [group(v2.path(), name, &cpu), group(v1.path(), name, &memory)];
            let expected = Usage {
                processes,
                memory_bytes: Some(4096),
                memory_peak_bytes: Some(8192),
                cpu_ms: Some(5),
                ..Usage::default()
            };
            assert_eq!(reader.measure(&paths), expected, "{name}");
        }
        assert!(reader.missing.contains(&(v2.path().to_owned(), "memory.current")));
    }

    #[test]
    fn a_group_that_is_gone_says_nothing_about_the_others() {
        let parent = tempfile::tempdir().unwrap();
        let mut reader = UsageReader::default();
        assert_eq!(reader.measure(&[parent.path().join("gone")]), Usage::default());
        let there = group(parent.path(), "there", &[("memory.current", "1\n")]);
        assert_eq!(reader.measure(&[there]).memory_bytes, Some(1));
    }
}
