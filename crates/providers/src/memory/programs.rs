//! Programs of ours, in place of the interpreter's: they wait without a limit of their own, write
//! without end, and say what runs.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bashkit::{
    BashBuilder, Builtin, BuiltinContext, Command, CommandContext, CommandStatus, ExecResult, ExecutionPlan,
    SubCommand,
};
use tokio_util::sync::CancellationToken;

use super::end_mark::EndMark;
use super::files::MemoryFiles;
use super::input::JobInput;
use super::tasks::Tasks;
use super::truncate;

/// Makes a fresh interpreter for each command.
#[doc(alias = "BashFactory")]
pub type ShellFactory = Arc<dyn Fn() -> BashBuilder + Send + Sync>;

/// The command behind a script, which says that the script has ended.
pub(super) const END: &str = "__eyot_end";
/// The command behind that one, which writes the mark of the end.
pub(super) const MARK: &str = "__eyot_mark";
/// The command before a script, which hands on the standard input.
pub(super) const INPUT: &str = "__eyot_input";
/// The bytes that `yes` writes at once.
const YES_BYTES: usize = 4096;
/// Longer than any command lives.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The files, tasks and input that the programs of a command work on.
pub(super) struct ProgramParts<'a> {
    pub files: &'a MemoryFiles,
    pub tasks: &'a Arc<Tasks>,
    pub input: Option<&'a Arc<JobInput>>,
}

/// Gives an interpreter the programs that a command needs.
pub(super) fn install(
    builder: BashBuilder,
    parts: &ProgramParts<'_>,
    mark: &Arc<EndMark>,
    stop: &CancellationToken,
) -> BashBuilder {
    let builder = builder
        .command(END, End { mark: mark.clone(), input: parts.input.cloned() })
        .builtin(MARK, Box::new(WriteMark(mark.clone())))
        .builtin("sleep", Box::new(Sleep(parts.tasks.clone())))
        .builtin("truncate", Box::new(Truncate(parts.files.clone())))
        .command("tee", Tee)
        .command("yes", Yes)
        .builtin("setsid", Box::new(Setsid));
    match parts.input {
        Some(input) => builder.command(INPUT, InputProgram { input: input.clone(), stop: stop.clone() }),
        None => builder,
    }
}

/// The names of the programs that a script may call.
pub(super) struct KnownPrograms {
    factory: ShellFactory,
    names: OnceLock<BTreeSet<String>>,
}

impl KnownPrograms {
    pub(super) fn new(factory: ShellFactory) -> Self {
        Self { factory, names: OnceLock::new() }
    }

    /// Tells whether there is a program of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        let known = || {
            let names = (self.factory)().build().builtin_names().into_iter();
            names.chain(names_of_ours().map(str::to_owned)).collect()
        };
        self.names.get_or_init(known).contains(name)
    }
}

/// Lists the names of ours that a script may use.
fn names_of_ours() -> [&'static str; 4] {
    ["sleep", "yes", "truncate", "setsid"]
}

struct End {
    mark: Arc<EndMark>,
    input: Option<Arc<JobInput>>,
}

// A streaming command: the other kind would wait for the end of the input first.
#[async_trait]
impl Command for End {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let status = context.args.first().and_then(|status| status.parse().ok()).unwrap_or(0);
        self.mark.set_status(status);
        // An input that stays open delays no end.
        if let Some(input) = &self.input {
            input.close();
        }
        Ok(CommandStatus::success())
    }
}

struct WriteMark(Arc<EndMark>);

// It writes as the shell's own programs do, so that the mark comes behind what they wrote.
#[async_trait]
impl Builtin for WriteMark {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(ExecResult { stderr: self.0.text().into(), ..ExecResult::ok(self.0.text()) })
    }
}

struct InputProgram {
    input: Arc<JobInput>,
    stop: CancellationToken,
}

#[async_trait]
impl Command for InputProgram {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        loop {
            let bytes = tokio::select! {
                () = self.stop.cancelled() => None,
                bytes = self.input.next() => bytes,
            };
            let Some(bytes) = bytes else { return Ok(CommandStatus::success()) };
            if let Err(error) = context.stdout.write_all(&bytes).await {
                self.input.close();
                return Err(error);
            }
        }
    }
}

struct Sleep(Arc<Tasks>);

#[async_trait]
impl Builtin for Sleep {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let help = "Try 'sleep --help' for more information.";
        let mut total = Duration::ZERO;
        if context.args.is_empty() {
            return Ok(refused("sleep", &format!("missing operand\n{help}")));
        }
        for arg in context.args {
            match interval(arg) {
                Some(more) => total = total.saturating_add(more),
                None => return Ok(refused("sleep", &format!("invalid time interval ‘{arg}’\n{help}"))),
            }
        }
        let argv = std::iter::once("sleep".to_owned()).chain(context.args.iter().cloned()).collect();
        let _task = self.0.add(argv, 1);
        tokio::time::sleep(total.min(FOREVER)).await;
        Ok(ExecResult::ok(""))
    }
}

/// Reads the time of a sleep: seconds, or a number with `s`, `m`, `h` or `d`.
fn interval(text: &str) -> Option<Duration> {
    if matches!(text, "inf" | "infinity") {
        return Some(FOREVER);
    }
    let unit = match text.chars().last()? {
        'm' => 60.0,
        'h' => 3600.0,
        'd' => 24.0 * 3600.0,
        _ => 1.0,
    };
    let number: f64 = text.trim_end_matches(['s', 'm', 'h', 'd']).parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok()
}

fn refused(program: &str, reason: &str) -> ExecResult {
    ExecResult::err(format!("{program}: {reason}\n"), 1)
}

struct Yes;

#[async_trait]
impl Command for Yes {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let line =
            if context.args.is_empty() { "y\n".to_owned() } else { format!("{}\n", context.args.join(" ")) };
        let block = line.repeat((YES_BYTES / line.len()).max(1));
        loop {
            context.stdout.write_all(block.as_bytes()).await?;
            tokio::task::yield_now().await;
        }
    }
}

struct Truncate(MemoryFiles);

#[async_trait]
impl Builtin for Truncate {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(match truncate::run(&self.0, context.cwd, context.args) {
            Ok(()) => ExecResult::ok(""),
            Err(reason) => refused("truncate", &reason),
        })
    }
}

/// Runs a command in a session of its own: here nothing has one.
struct Setsid;

#[async_trait]
impl Builtin for Setsid {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(refused("setsid", "no command specified"))
    }

    async fn execution_plan(&self, context: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        let mut words = context.args.iter().skip_while(|word| word.starts_with('-')).cloned();
        let Some(name) = words.next() else { return Ok(None) };
        let (args, stdin) = (words.collect(), context.stdin.cloned());
        let command = SubCommand { name, args, stdin, assignments: Vec::new() };
        Ok(Some(ExecutionPlan::Batch { commands: vec![command] }))
    }
}

/// Copies its input to files and to its output as it comes.
struct Tee;

#[async_trait]
impl Command for Tee {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let is_added = context.args.iter().any(|arg| arg == "-a" || arg == "--append");
        let names =
            context.args.iter().filter(|arg| !matches!(arg.as_str(), "-a" | "--append" | "-i" | "--"));
        let mut status = 0;
        let mut files = Vec::new();
        for name in names {
            let path = context.cwd.join(name);
            let opened = if is_added {
                context.fs.append_file(&path, b"").await
            } else {
                context.fs.write_file(&path, b"").await
            };
            match opened {
                Ok(()) => files.push(path),
                Err(error) => {
                    status = 1;
                    let reason = error.to_string();
                    let reason = reason.strip_prefix("io error: ").unwrap_or(&reason);
                    context.stderr.write_all(format!("tee: {name}: {reason}\n").as_bytes()).await?;
                }
            }
        }
        while let Some(bytes) = context.stdin.read_chunk().await? {
            for file in &files {
                context.fs.append_file(file, &bytes).await?;
            }
            context.stdout.write_all(&bytes).await?;
        }
        Ok(CommandStatus::with_code(status))
    }
}
