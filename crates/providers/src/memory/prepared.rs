//! Interpreters that are made in advance, because making one takes longer than a short command.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bashkit::{Bash, ShellState};
use tokio::runtime::{Builder, Runtime};

use super::interpreters::{Interpreters, MAX_LIVE_BYTES, NO_TIMEOUT, USER, blank};
use super::programs::{self, CommandSlot};
use super::shell_factory::ShellFactory;
use super::shell_files::ShellFiles;

/// The most interpreters that wait for a command.
const MAX_WAITING: usize = 4;
/// The variable of the host's name.
const HOST_NAME: &str = "HOSTNAME";
/// The host's name in an interpreter that has no command yet.
const NO_HOST: &str = "localhost";

/// The prepared interpreters of a provider.
pub(super) struct PreparedShells {
    factory: ShellFactory,
    waiting: Mutex<ShellPool>,
}

#[derive(Default)]
struct ShellPool {
    shells: Vec<PreparedShell>,
    runtimes: Vec<Runtime>,
}

/// An interpreter without a command. It cannot see any sandbox.
pub(super) struct PreparedShell {
    pub bash: Bash,
    /// The state that a script would start with.
    state: ShellState,
    files: ShellFiles,
    command: CommandSlot,
}

// Dropping a runtime normally blocks until its threads end, which is not allowed in async code.
impl Drop for ShellPool {
    fn drop(&mut self) {
        self.runtimes.drain(..).for_each(Runtime::shutdown_background);
    }
}

/// Makes the runtime of one command.
fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

impl PreparedShells {
    pub(super) fn new(factory: ShellFactory) -> Self {
        Self { factory, waiting: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, ShellPool> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a waiting interpreter, or makes one.
    pub(super) fn take(&self) -> PreparedShell {
        let waiting = self.lock().shells.pop();
        waiting.unwrap_or_else(|| PreparedShell::new(&self.factory))
    }

    /// Takes a waiting runtime, or makes one.
    ///
    /// # Errors
    /// The system can't create a runtime.
    pub(super) fn take_runtime(&self) -> io::Result<Runtime> {
        let waiting = self.lock().runtimes.pop();
        waiting.map_or_else(runtime, Ok)
    }

    /// Puts back an interpreter that no command used.
    pub(super) fn put_back(&self, shell: PreparedShell) {
        let mut waiting = self.lock();
        if waiting.shells.len() < MAX_WAITING {
            waiting.shells.push(shell);
        }
    }

    fn keep_runtime(&self, runtime: Runtime) {
        let mut waiting = self.lock();
        if waiting.runtimes.len() < MAX_WAITING {
            waiting.runtimes.push(runtime);
        } else {
            drop(waiting);
            runtime.shutdown_background();
        }
    }

    /// Makes one interpreter if fewer than two wait, so that the next two commands find one each.
    pub(super) fn keep_two(&self) {
        self.add_up_to(2);
    }

    /// Makes interpreters until `MAX_WAITING` wait, enough for several commands in a row.
    pub(super) fn refill(&self) {
        while self.add_up_to(MAX_WAITING) {}
    }

    /// Makes one interpreter if fewer than `most` wait. Returns whether it made one.
    fn add_up_to(&self, most: usize) -> bool {
        let (shells, runtimes) = {
            let waiting = self.lock();
            (waiting.shells.len(), waiting.runtimes.len())
        };
        if runtimes < most
            && let Ok(runtime) = runtime()
        {
            self.keep_runtime(runtime);
        }
        if shells < most {
            self.put_back(PreparedShell::new(&self.factory));
        }
        shells < most
    }
}

impl PreparedShell {
    fn new(factory: &ShellFactory) -> Self {
        let (files, command) = (ShellFiles::default(), CommandSlot::default());
        let builder = blank(factory, files.clone(), NO_HOST, MAX_LIVE_BYTES, NO_TIMEOUT);
        let bash = programs::install(builder, &command, None).build();
        Self { state: bash.shell_state(), bash, files, command }
    }

    /// Sets the interpreter up for a command, and returns it.
    pub(super) fn give<'a>(
        mut self,
        shells: Interpreters,
        cwd: &Path,
        env: impl Iterator<Item = (&'a String, &'a String)>,
    ) -> Bash {
        let state = &mut self.state;
        let user = ("USER".to_owned(), USER.to_owned());
        for (name, value) in env.map(|(name, value)| (name.clone(), value.clone())).chain([user]) {
            state.env.insert(name.clone(), value.clone());
            state.variables.insert(name, value);
        }
        if !state.env.contains_key(HOST_NAME) {
            state.variables.insert(HOST_NAME.to_owned(), shells.host_name.clone());
        }
        state.env.insert("PWD".to_owned(), cwd.to_string_lossy().into_owned());
        state.cwd = cwd.to_owned();
        self.bash.restore_shell_state(state);
        self.files.show(shells.view());
        self.command.fill(programs::children_of(shells));
        self.bash
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::memory::files::MemoryFiles;
    use crate::memory::known_programs::KnownPrograms;

    fn shells(factory: &ShellFactory) -> Interpreters {
        Interpreters::new(
            factory.clone(),
            Arc::new(KnownPrograms::new(factory.clone(), [])),
            MemoryFiles::with_max_bytes(crate::memory::DEFAULT_MAX_BYTES),
            Arc::default(),
            1,
            "box".to_owned(),
            Arc::default(),
        )
    }

    #[tokio::test]
    async fn a_prepared_interpreter_is_like_one_that_was_made_for_its_command() {
        let factory: ShellFactory = Arc::new(Bash::builder);
        let prepared = PreparedShells::new(factory.clone());
        prepared.refill();
        for names in [&["A", "USER", "HOME"][..], &["HOSTNAME", "PWD", "OLDPWD", "_", "OPTIND", "SHELLOPTS"]]
        {
            let env: BTreeMap<String, String> =
                names.iter().map(|name| ((*name).to_owned(), format!("{name} of the call"))).collect();
            let cwd = Path::new("/tmp");
            let made = shells(&factory).builder(cwd, env.iter(), MAX_LIVE_BYTES, NO_TIMEOUT).build();
            let mut given = prepared.take().give(shells(&factory), cwd, env.iter());
            let state = |bash: &Bash| serde_json::to_value(bash.shell_state()).unwrap();
            assert_eq!(state(&given), state(&made), "{names:?}");
            let printed = given.exec("cat /etc/hostname; basename \"$PWD\"").await.unwrap();
            assert_eq!(printed.stdout, "box\ntmp\n");
        }
    }

    #[tokio::test]
    async fn no_more_runtimes_wait_than_interpreters() {
        let prepared = PreparedShells::new(Arc::new(Bash::builder));
        for _ in 0..=MAX_WAITING {
            prepared.keep_runtime(runtime().unwrap());
        }
        assert_eq!(prepared.lock().runtimes.len(), MAX_WAITING);
    }

    #[tokio::test]
    async fn an_interpreter_without_a_command_sees_nothing_and_does_nothing() {
        let mut shell = PreparedShells::new(Arc::new(Bash::builder)).take();
        let tried = shell.bash.exec("ls /; sleep 0; echo x >/tmp/x; cat /tmp/x").await.unwrap();
        assert_eq!(tried.stdout, "");
        assert_ne!(tried.exit_code, 0);
    }
}
