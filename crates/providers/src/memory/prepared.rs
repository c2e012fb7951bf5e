//! Interpreters that are made in advance, because making one takes longer than a short command. One whose command left no trace
//! in it serves again.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bashkit::{Bash, ShellState};
use tokio::runtime::{Builder, Runtime};

use super::interpreters::{Interpreters, MAX_LIVE_BYTES, NO_TIMEOUT, USER, blank, limits};
use super::programs::{self, CommandSlot};
use super::shell_factory::ShellFactory;
use super::shell_files::ShellFiles;
use super::traceless::is_as_given;

/// The most interpreters of each kind, new and used, that wait for a command.
const MAX_WAITING: usize = 4;
/// The variable of the host's name.
const HOST_NAME: &str = "HOSTNAME";
/// The host's name in an interpreter that has no command yet.
const NO_HOST: &str = "localhost";

/// The prepared interpreters of a provider.
pub(super) struct PreparedShells {
    factory: ShellFactory,
    /// Set if interpreters of the factory may serve more than one command.
    serve_again: bool,
    waiting: Mutex<ShellPool>,
}

#[derive(Default)]
struct ShellPool {
    shells: Vec<PreparedShell>,
    /// Interpreters that have served. They get only commands that leave no trace.
    used: Vec<PreparedShell>,
    runtimes: Vec<Runtime>,
}

/// An interpreter without a command. It cannot see any sandbox.
pub(super) struct PreparedShell {
    pub bash: Bash,
    parts: ShellParts,
}

/// The parts of an interpreter that are set for each command.
pub(super) struct ShellParts {
    /// The state that a script would start with, without a command.
    blank: ShellState,
    /// The state that its command starts with.
    given: ShellState,
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
    /// Prepares interpreters that serve one command each.
    pub(super) fn new(factory: ShellFactory) -> Self {
        Self { factory, serve_again: false, waiting: Mutex::default() }
    }

    /// Prepares interpreters that serve again if their commands leave no trace. The factory must add nothing that keeps a state
    /// in the interpreter.
    pub(super) fn serving_again(factory: ShellFactory) -> Self {
        Self { serve_again: true, ..Self::new(factory) }
    }

    fn lock(&self) -> MutexGuard<'_, ShellPool> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a waiting interpreter, or makes one.
    pub(super) fn take(&self) -> PreparedShell {
        let waiting = self.lock().shells.pop();
        waiting.unwrap_or_else(|| PreparedShell::new(&self.factory))
    }

    /// Takes an interpreter for a command that leaves no trace.
    pub(super) fn take_for_traceless(&self) -> PreparedShell {
        let used = self.lock().used.pop();
        used.unwrap_or_else(|| self.take())
    }

    /// Keeps an interpreter whose command has ended by itself and left no trace. Drops it if there is one.
    pub(super) fn take_back(&self, bash: Bash, parts: ShellParts) {
        let shell = if self.serve_again { parts.again(bash) } else { None };
        let mut waiting = self.lock();
        if waiting.used.len() < MAX_WAITING {
            waiting.used.extend(shell);
        }
    }

    /// Keeps the runtime of a command that has ended by itself, if nothing runs in it any more.
    pub(super) fn take_runtime_back(&self, runtime: Runtime) {
        if runtime.metrics().num_alive_tasks() == 0 {
            self.keep_runtime(runtime);
        }
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
        // A line that could show a history gets a new interpreter.
        let builder = builder.limits(limits(MAX_LIVE_BYTES, NO_TIMEOUT).max_history_entries(0));
        let bash = programs::install(builder, &command, None).build();
        let given = bash.shell_state();
        Self { bash, parts: ShellParts { blank: given.clone(), given, files, command } }
    }

    /// Sets the interpreter up for a command, and returns it with its parts.
    pub(super) fn give<'a>(
        mut self,
        shells: Interpreters,
        cwd: &Path,
        env: impl Iterator<Item = (&'a String, &'a String)>,
    ) -> (Bash, ShellParts) {
        let state = &mut self.parts.given;
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
        self.parts.files.show(shells.view());
        self.parts.command.fill(programs::children_of(shells));
        (self.bash, self.parts)
    }
}

impl ShellParts {
    /// Returns the interpreter without its command. `None`: the command left a trace, or somebody wanted its end.
    fn again(mut self, mut bash: Bash) -> Option<PreparedShell> {
        self.files.hide();
        self.command.empty();
        if bash.cancellation_token().load(Ordering::Relaxed) || !is_as_given(&self.given, &bash.shell_state())
        {
            return None;
        }
        self.given = self.blank.clone();
        bash.restore_shell_state(&self.given);
        Some(PreparedShell { bash, parts: self })
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
            let (mut given, _) = prepared.take().give(shells(&factory), cwd, env.iter());
            let state = |bash: &Bash| serde_json::to_value(bash.shell_state()).unwrap();
            assert_eq!(state(&given), state(&made), "{names:?}");
            let printed = given.exec("cat /etc/hostname; basename \"$PWD\"").await.unwrap();
            assert_eq!(printed.stdout, "box\ntmp\n");
        }
    }

    #[tokio::test]
    async fn a_runtime_in_which_something_runs_is_not_kept() {
        let prepared = PreparedShells::new(Arc::new(Bash::builder));
        let (busy, idle) = (runtime().unwrap(), runtime().unwrap());
        busy.spawn(std::future::pending::<()>());
        tokio::task::spawn_blocking(move || {
            prepared.take_runtime_back(busy);
            assert!(prepared.lock().runtimes.is_empty());
            prepared.take_runtime_back(idle);
            assert_eq!(prepared.lock().runtimes.len(), 1);
        })
        .await
        .unwrap();
    }

    /// Lines that leave no trace, most of which fail in some way.
    const TRACELESS: &str = "echo a | cat | false; [ a -eq 1 ]; test 1 -eq; cat <missing; echo >/; cat missing; ! grep; echo $HOME; \
        \nprintf %d x; ls -Z; echo x >/tmp/f 2>&1; cat <<E; wc <<<word; rm nothing; sort --nothing\n$USER\nE\necho {a,b} *";

    /// A script that shows what it can of its interpreter, apart from the names of the programs that were run (`hash`).
    const TELLING: &str = "set; declare -p; declare -F; alias; trap; jobs; dirs; shopt; set -o; umask; ulimit -a; history; fc -l; \
        pwd; echo $? $! $$ $_ $- $# $LINENO $SHLVL $BASHPID $PPID ${PIPESTATUS[*]} ${BASH_SOURCE[*]} ${FUNCNAME[*]}; \
        echo >&3; read -u 4 x; ls /dev/fd; cat /tmp/f; x() { echo $LINENO; }; x; nosuch; getopts a x; echo $x $OPTIND";

    /// Runs a line in an interpreter that then serves again.
    async fn serve(prepared: &PreparedShells, factory: &ShellFactory, line: &str) {
        let env = BTreeMap::from([("SECRET".to_owned(), "of the first".to_owned())]);
        let shell = prepared.take_for_traceless();
        let (mut bash, parts) = shell.give(shells(factory), Path::new("/tmp"), env.iter());
        bash.exec(line).await.unwrap();
        prepared.take_back(bash, parts);
    }

    #[tokio::test]
    async fn a_used_interpreter_tells_nothing_that_a_new_one_does_not() {
        let factory: ShellFactory = Arc::new(Bash::builder);
        let prepared = PreparedShells::serving_again(factory.clone());
        for _ in 0..3 {
            serve(&prepared, &factory, TRACELESS).await;
        }
        let used = prepared.lock().used.pop().unwrap();
        let mut told = Vec::new();
        for shell in [used, PreparedShell::new(&factory)] {
            let env = BTreeMap::new();
            let (mut bash, _) = shell.give(shells(&factory), Path::new("/home"), env.iter());
            let printed = bash.exec(TELLING).await.unwrap();
            told.push([printed.stdout.to_string(), printed.stderr.to_string()]);
        }
        let [new, used] = [told.pop().unwrap(), told.pop().unwrap()];
        assert!(used[0].contains("HOSTNAME=") && used[1].contains("nosuch"), "{used:?}");
        assert_eq!(used, new);
    }

    #[tokio::test]
    async fn an_interpreter_that_has_served_sees_nothing_and_does_nothing() {
        let factory: ShellFactory = Arc::new(Bash::builder);
        let prepared = PreparedShells::serving_again(factory.clone());
        serve(&prepared, &factory, "echo x >/tmp/x").await;
        let mut shell = prepared.lock().used.pop().unwrap();
        let state = |state: &ShellState| serde_json::to_value(state).unwrap();
        assert_eq!(state(&shell.bash.shell_state()), state(&PreparedShell::new(&factory).parts.blank));
        let tried = shell.bash.exec("ls /; cat /tmp/x; head /tmp/x").await.unwrap();
        assert_eq!(tried.stdout, "");
    }

    #[tokio::test]
    async fn an_interpreter_with_a_trace_does_not_serve_again() {
        let factory: ShellFactory = Arc::new(Bash::builder);
        let prepared = PreparedShells::serving_again(factory.clone());
        serve(&prepared, &factory, "x=1").await;
        let (bash, parts) = prepared.take().give(shells(&factory), Path::new("/tmp"), BTreeMap::new().iter());
        bash.cancellation_token().store(true, Ordering::Relaxed);
        prepared.take_back(bash, parts);
        assert!(prepared.lock().used.is_empty());
        let with_extras = PreparedShells::new(factory.clone());
        serve(&with_extras, &factory, "echo").await;
        assert!(with_extras.lock().used.is_empty());
    }

    #[tokio::test]
    async fn only_a_traceless_command_gets_a_used_interpreter() {
        let factory: ShellFactory = Arc::new(Bash::builder);
        let prepared = PreparedShells::serving_again(factory.clone());
        serve(&prepared, &factory, "echo").await;
        drop(prepared.take());
        assert_eq!(prepared.lock().used.len(), 1);
        drop(prepared.take_for_traceless());
        assert_eq!(prepared.lock().used.len(), 0);
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
