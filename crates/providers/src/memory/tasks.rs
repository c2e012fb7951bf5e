//! The tasks that run in a sandbox: each command, and what it waits for. `/proc` and the list of processes
//! show it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::LiveProcess;

/// Everything that runs in one sandbox.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    table: Mutex<TaskTable>,
}

#[derive(Debug, Default)]
struct TaskTable {
    last: u32,
    tasks: BTreeMap<u32, Task>,
}

#[derive(Debug, Clone)]
struct Task {
    argv: Vec<String>,
    parent: u32,
}

/// A task that runs until this is dropped.
#[derive(Debug)]
pub(super) struct RunningTask {
    tasks: Arc<Tasks>,
    /// The number that it is shown under.
    pub pid: u32,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.tasks.lock().tasks.remove(&self.pid);
    }
}

/// A file of a task's directory in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcFile {
    CommandLine,
    Name,
    Status,
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, TaskTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a task from now on. `parent` is 1 where it has none.
    pub(super) fn add(self: &Arc<Self>, argv: Vec<String>, parent: u32) -> RunningTask {
        let mut table = self.lock();
        table.last = table.last.max(1).wrapping_add(1);
        let pid = table.last;
        table.tasks.insert(pid, Task { argv, parent });
        RunningTask { tasks: self.clone(), pid }
    }

    /// Lists the numbers of what runs.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.lock().tasks.keys().copied().collect()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Returns what a file in `/proc` shows of a task.
    pub(super) fn proc_file(&self, pid: u32, file: ProcFile) -> Option<Vec<u8>> {
        let task = self.lock().tasks.get(&pid).cloned()?;
        let name = task.argv.first().map_or("", |program| program.rsplit('/').next().unwrap_or_default());
        Some(match file {
            ProcFile::CommandLine => {
                task.argv.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect()
            }
            ProcFile::Name => format!("{name}\n").into_bytes(),
            ProcFile::Status => {
                let parent = task.parent;
                format!("Name:\t{name}\nState:\tS (sleeping)\nPid:\t{pid}\nPPid:\t{parent}\nUid:\t1000\t1000\t1000\t1000\n")
                    .into_bytes()
            }
        })
    }

    /// Lists what runs as the contract shows it.
    pub(super) fn live(&self) -> Vec<LiveProcess> {
        let table = self.lock();
        let live = |(pid, task): (&u32, &Task)| LiveProcess {
            pid: *pid,
            parent_pid: task.parent,
            user: "user".to_owned(),
            state: 'S',
            cpu_ms: 0,
            memory_bytes: 0,
            command: task.argv.join(" "),
        };
        table.tasks.iter().map(live).collect()
    }
}
