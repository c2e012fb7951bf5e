//! `/proc`: a directory for each task, as programs look for what runs.

use std::path::Path;

use super::tasks::{ProcFile, Tasks};

/// An entry of `/proc`.
#[derive(Debug)]
pub(super) enum ProcEntry {
    Directory(Vec<(String, ProcEntry)>),
    File(Vec<u8>),
}

const FILES: [(&str, ProcFile); 3] =
    [("cmdline", ProcFile::CommandLine), ("comm", ProcFile::Name), ("status", ProcFile::Status)];

/// Looks up a path relative to `/proc`.
pub(super) fn lookup(tasks: &Tasks, path: &Path) -> Option<ProcEntry> {
    let mut names = path.iter().filter_map(|name| name.to_str());
    let Some(pid) = names.next() else {
        let directory = |pid: &u32| (pid.to_string(), ProcEntry::Directory(Vec::new()));
        return Some(ProcEntry::Directory(tasks.pids().iter().map(directory).collect()));
    };
    let pid = pid.parse().ok()?;
    let all = FILES
        .iter()
        .map(|(name, file)| Some(((*name).to_owned(), ProcEntry::File(tasks.proc_file(pid, *file)?))));
    let mut all: Vec<(String, ProcEntry)> = all.collect::<Option<_>>()?;
    let Some(wanted) = names.next() else { return Some(ProcEntry::Directory(all)) };
    let found = all.iter().position(|(name, _)| name == wanted).filter(|_| names.next().is_none())?;
    Some(all.swap_remove(found).1)
}
