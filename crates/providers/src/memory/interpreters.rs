//! The interpreters of a command: its own, and one for each child that a program of ours starts.
//! Their limits are here.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bashkit::{BashBuilder, ExecutionLimits, MemoryLimits, SessionLimits};

use super::cancels::CancelFlags;
use super::files::MemoryFiles;
use super::known_programs::KnownPrograms;
use super::read_account::ReadAccount;
use super::shell_factory::ShellFactory;
use super::shell_files::{SandboxView, ShellFiles};
use super::tasks::Tasks;

/// The rounds that the loops of one interpreter may go, all together.
const MAX_ROUNDS: usize = 50_000_000;
/// The bytes that the values of a command may take while it runs, without its children.
pub(super) const MAX_LIVE_BYTES: u64 = 128 << 20;
/// The longest output of one interpreter.
const MAX_OUTPUT_BYTES: usize = 128 << 20;
/// The bytes that all children of a command may take, as long as there are few of them.
const CHILDREN_BYTES: u64 = 256 << 20;
/// A child gets this part of what is left.
const SHARES: u64 = 4;
/// The least that a child gets, however many there are.
const LEAST_BYTES: u64 = 1 << 20;
/// The children that run at once.
const MAX_CHILDREN: usize = 64;
/// Longer than any command lives: its deadline is the handle's.
pub(super) const NO_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The user of every command.
pub(super) const USER: &str = "user";

/// The parts that all interpreters of one command share.
pub(super) struct Interpreters {
    pub factory: ShellFactory,
    pub programs: Arc<KnownPrograms>,
    pub files: MemoryFiles,
    pub tasks: Arc<Tasks>,
    /// The number of the command in the list of tasks.
    pub command: u32,
    pub host_name: String,
    pub cancels: Arc<CancelFlags>,
    /// The files that programs have read.
    pub reads: ReadAccount,
    lent: Arc<Mutex<ChildLoans>>,
}

/// The memory that the running children have taken.
#[derive(Debug, Default)]
struct ChildLoans {
    children: usize,
    bytes: u64,
}

/// A child's part of the memory, until this is dropped.
#[derive(Debug)]
pub(super) struct MemoryShare {
    lent: Arc<Mutex<ChildLoans>>,
    pub bytes: u64,
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.children -= 1;
        lent.bytes -= self.bytes;
    }
}

impl Interpreters {
    pub(super) fn new(
        factory: ShellFactory,
        programs: Arc<KnownPrograms>,
        files: MemoryFiles,
        tasks: Arc<Tasks>,
        command: u32,
        host_name: String,
        cancels: Arc<CancelFlags>,
    ) -> Self {
        let (reads, lent) = (ReadAccount::default(), Arc::default());
        Self { factory, programs, files, tasks, command, host_name, cancels, reads, lent }
    }

    /// Sets a part of the memory aside for a child. `None`: there are too many.
    pub(super) fn lend(&self) -> Option<MemoryShare> {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        if lent.children == MAX_CHILDREN {
            return None;
        }
        let bytes = (CHILDREN_BYTES.saturating_sub(lent.bytes) / SHARES).max(LEAST_BYTES);
        lent.children += 1;
        lent.bytes += bytes;
        Some(MemoryShare { lent: self.lent.clone(), bytes })
    }

    /// Returns the files for an interpreter. With `encodes_names`, names that it would refuse are encoded.
    pub(super) fn shell_files(&self, encodes_names: bool) -> ShellFiles {
        ShellFiles::from(SandboxView { encodes_names, ..self.view() })
    }

    /// Prepares an interpreter over the command's files, without programs of ours.
    pub(super) fn builder<'a>(
        &self,
        cwd: &Path,
        env: impl Iterator<Item = (&'a String, &'a String)>,
        live_bytes: u64,
        timeout: Duration,
    ) -> BashBuilder {
        let builder =
            blank(&self.factory, self.shell_files(false), &self.host_name, live_bytes, timeout).cwd(cwd);
        env.fold(builder, |builder, (name, value)| builder.env(name, value))
    }

    /// Returns the part of the sandbox that the interpreters see.
    pub(super) fn view(&self) -> SandboxView {
        let (files, tasks) = (self.files.clone(), self.tasks.clone());
        SandboxView { files, tasks, host_name: self.host_name.clone(), encodes_names: false }
    }
}

/// Prepares an interpreter over files, without a directory, variables or our own programs.
pub(super) fn blank(
    factory: &ShellFactory,
    files: ShellFiles,
    host_name: &str,
    live_bytes: u64,
    timeout: Duration,
) -> BashBuilder {
    let variables = usize::try_from(live_bytes).unwrap_or(usize::MAX);
    factory()
        .fs(Arc::new(files))
        .limits(limits(live_bytes, timeout))
        .memory_limits(MemoryLimits::new().max_total_variable_bytes(variables))
        .session_limits(SessionLimits::unlimited())
        .username(USER)
        .hostname(host_name)
}

/// Returns the limits of an interpreter.
pub(super) fn limits(live_bytes: u64, timeout: Duration) -> ExecutionLimits {
    ExecutionLimits::new()
        .max_work_units(u64::MAX)
        .max_aggregate_input_bytes(u64::MAX)
        .max_live_intermediate_bytes(live_bytes)
        .max_commands(usize::MAX)
        .max_loop_iterations(MAX_ROUNDS)
        .max_total_loop_iterations(MAX_ROUNDS)
        .max_parser_operations(10_000_000)
        .max_stdout_bytes(MAX_OUTPUT_BYTES)
        .max_stderr_bytes(MAX_OUTPUT_BYTES)
        .timeout(timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_share_a_memory_that_does_not_grow_with_their_number() {
        let files = MemoryFiles::with_max_bytes(crate::memory::DEFAULT_MAX_BYTES);
        let factory: ShellFactory = Arc::new(bashkit::Bash::builder);
        let shells = Interpreters::new(
            factory.clone(),
            Arc::new(KnownPrograms::new(factory, [])),
            files,
            Arc::default(),
            1,
            "box".to_owned(),
            Arc::default(),
        );
        let mut shares: Vec<_> = std::iter::from_fn(|| shells.lend()).collect();
        assert_eq!(shares.len(), MAX_CHILDREN);
        let total: u64 = shares.iter().map(|share| share.bytes).sum();
        assert!(total <= CHILDREN_BYTES + MAX_CHILDREN as u64 * LEAST_BYTES, "{total}");
        shares.pop();
        assert!(shells.lend().is_some());
    }
}
