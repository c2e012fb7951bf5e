//! The tasks that run in a sandbox: each command, and what it waits for. `/proc` and the list of processes
//! show it.

use std::collections::{BTreeMap, BTreeSet};
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
    /// The commands that were killed and whose threads have not ended yet.
    killed: BTreeSet<u32>,
}

#[derive(Debug, Clone)]
struct Task {
    argv: Vec<String>,
    /// The command that started it. It may have ended.
    parent: Option<u32>,
}

impl TaskTable {
    /// The number of a task's parent: 1 once that has ended, as in Linux.
    fn parent_of(&self, task: &Task) -> u32 {
        task.parent.filter(|parent| self.tasks.contains_key(parent)).unwrap_or(1)
    }
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

/// Returns whether two command lines are the same, apart from the folder of the program.
fn is_same(left: &[String], right: &[String]) -> bool {
    match (left, right) {
        ([left, left_rest @ ..], [right, right_rest @ ..]) => {
            program_name(left) == program_name(right) && left_rest == right_rest
        }
        _ => false,
    }
}

/// Returns the name of a program without its folder.
pub(super) fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, TaskTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a task from now on, unless the command that starts it was killed.
    pub(super) fn add(self: &Arc<Self>, argv: Vec<String>, parent: Option<u32>) -> RunningTask {
        let mut table = self.lock();
        table.last = table.last.max(1).wrapping_add(1);
        let pid = table.last;
        if !parent.is_some_and(|parent| table.killed.contains(&parent)) {
            table.tasks.insert(pid, Task { argv, parent });
        }
        RunningTask { tasks: self.clone(), pid }
    }

    /// Lists a part of a command as its own task, unless it is the whole command.
    pub(super) fn add_part(self: &Arc<Self>, argv: Vec<String>, command: u32) -> Option<RunningTask> {
        let is_whole = self.lock().tasks.get(&command).is_some_and(|task| is_same(&task.argv, &argv));
        (!is_whole).then(|| self.add(argv, Some(command)))
    }

    /// Shows nothing of a command any more, though its thread may still have to end.
    pub(super) fn kill(&self, command: u32) {
        let mut table = self.lock();
        table.killed.insert(command);
        table.tasks.retain(|pid, task| *pid != command && task.parent != Some(command));
    }

    /// Forgets that a command was killed: its thread has ended.
    pub(super) fn forget(&self, command: u32) {
        self.lock().killed.remove(&command);
    }

    /// Returns the numbers of the running tasks.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.lock().tasks.keys().copied().collect()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Returns the running tasks with their command lines.
    pub(super) fn command_lines(&self) -> Vec<(u32, Vec<String>)> {
        self.lock().tasks.iter().map(|(pid, task)| (*pid, task.argv.clone())).collect()
    }

    /// Returns what a file in `/proc` shows of a task.
    pub(super) fn proc_file(&self, pid: u32, file: ProcFile) -> Option<Vec<u8>> {
        let table = self.lock();
        let task = table.tasks.get(&pid)?;
        let name = task.argv.first().map_or("", |program| program_name(program));
        Some(match file {
            ProcFile::CommandLine => {
                task.argv.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect()
            }
            ProcFile::Name => format!("{name}\n").into_bytes(),
            ProcFile::Status => {
                let parent = table.parent_of(task);
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
            parent_pid: table.parent_of(task),
            user: "user".to_owned(),
            state: 'S',
            cpu_ms: None,
            memory_bytes: None,
            command: task.argv.join(" "),
        };
        table.tasks.iter().map(live).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_one_program_is_one_task() {
        let tasks: Arc<Tasks> = Arc::default();
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let command = tasks.add(words("/usr/bin/sleep 60"), None);
        assert!(tasks.add_part(words("sleep 60"), command.pid).is_none());
        let part = tasks.add_part(words("sleep 61"), command.pid);
        assert_eq!(tasks.count(), 2);
        drop((part, command));
        assert_eq!(tasks.count(), 0);
    }
}
