//! One run of a program: its arguments, files, input and output.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bashkit::{
    Builtin, BuiltinContext, Command, CommandContext, CommandStatus, DirEntry, ExecResult, ExecutionPlan,
    FileSystem, Metadata, SubCommand,
};

use super::argument_limits;
use super::children::{Children, CommandSlot};
pub(super) use super::ending::Ending;
use super::options::Words;
use super::pace::Pace;
use super::streams::{ProgramInput, ProgramOutput};
use super::umask::{VARIABLE, mask_of};
use crate::memory::files::{HeldFiles, MemoryFiles};
use crate::memory::names::bytes_of;
use crate::memory::node::{FileNode, NodeKind};
use crate::memory::odd_names::decoded;
use crate::memory::place::Place;
pub(super) use crate::memory::reasons::reason;
use crate::memory::walk::{Last, find_from};

/// The number of bytes between two pauses for other tasks.
pub(super) const BYTES_AT_ONCE: usize = 64 << 10;

/// A program that prints as it goes.
#[async_trait]
pub(super) trait ShellProgram: Send + Sync {
    /// Runs it, and returns its status.
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending>;

    /// The name by which a script has called it.
    fn called<'a>(&self, run: &'a ProgramRun<'_>) -> &'a str {
        run.name
    }

    /// The status of a run whose arguments are wrong.
    fn usage_status(&self) -> i32 {
        1
    }

    /// The arguments that it takes, as `--help` shows them.
    fn usage(&self) -> &'static str {
        "[OPTION]... [FILE]..."
    }
}

/// The things that a program works on while it runs.
pub(super) struct ProgramRun<'a> {
    pub name: &'a str,
    pub args: &'a [String],
    pub env: &'a HashMap<String, String>,
    pub cwd: &'a Path,
    files: &'a MemoryFiles,
    pub(super) children: &'a Children,
    pub(super) fs: Arc<dyn FileSystem>,
    pub(super) stdin: ProgramInput,
    pub(super) stdout: ProgramOutput,
    pub(super) stderr: ProgramOutput,
    pace: Pace,
}

impl ProgramRun<'_> {
    pub(super) fn words(&self) -> Words {
        Words::new(self.args)
    }

    /// The files that it works on.
    pub(super) fn files(&self) -> &MemoryFiles {
        self.files
    }

    /// Writes to the standard output.
    pub(super) async fn print(&self, bytes: impl AsRef<[u8]>) -> Result<(), Ending> {
        Ok(self.stdout.write_all(bytes.as_ref()).await?)
    }

    /// Writes a line to the standard error, behind the program's name.
    pub(super) async fn complain(&self, reason: impl AsRef<str>) -> Result<(), Ending> {
        Ok(self.stderr.write_all(format!("{}: {}\n", self.name, reason.as_ref()).as_bytes()).await?)
    }

    /// Writes to the standard error, as it is.
    pub(super) async fn write_error(&self, bytes: impl AsRef<[u8]>) -> Result<(), Ending> {
        Ok(self.stderr.write_all(bytes.as_ref()).await?)
    }

    /// The mode of a new file or directory: what the shell's mask leaves of it.
    pub(super) fn masked(&self, mode: u32) -> u32 {
        mode & !self.mask()
    }

    /// The shell's mask.
    pub(super) fn mask(&self) -> u32 {
        mask_of(self.env.get(VARIABLE))
    }

    /// Lets others go on, and ends here if the command has ended.
    pub(super) async fn breathe(&self) {
        self.pace.pause().await;
    }

    /// Reads the next bytes of the standard input; `None` is its end.
    pub(super) async fn read_input(&self) -> Result<Option<Vec<u8>>, Ending> {
        Ok(self.stdin.read_chunk().await?)
    }

    /// Looks at what the shell itself has at a name: `/proc`, a substituted process.
    pub(super) async fn look_beyond(&self, name: &str) -> Option<Metadata> {
        self.fs.stat(&self.cwd.join(name)).await.ok()
    }

    /// Lists a directory that the shell itself has.
    pub(super) async fn list_beyond(&self, name: &str) -> Option<Vec<DirEntry>> {
        self.fs.read_dir(&self.cwd.join(name)).await.ok()
    }

    /// The path of a name on the command line.
    pub(super) fn path(&self, name: &str) -> Vec<u8> {
        decoded(&bytes_of(self.cwd.join(name).as_os_str())).into_owned()
    }

    /// Holds the files for one look or one change. Nothing may be awaited meanwhile.
    pub(super) fn hold(&self) -> HeldFiles<'_> {
        self.files.lock()
    }

    /// Finds what a name leads to. An empty name leads nowhere.
    pub(super) fn find(&self, held: &HeldFiles<'_>, name: &str, last: Last) -> eyot::Result<Place> {
        self.find_bytes(held, name.as_bytes(), last)
    }

    /// Finds a name that may not be UTF-8.
    pub(super) fn find_bytes(&self, held: &HeldFiles<'_>, name: &[u8], last: Last) -> eyot::Result<Place> {
        find_from(&held.tree, held.root, self.cwd, name, last)
    }

    /// Finds a node that is there, and copies what is known of it.
    pub(super) fn look(&self, name: &str, last: Last) -> eyot::Result<FileNode> {
        let held = self.hold();
        let id = self.find(&held, name, last)?.found()?;
        Ok(held.tree.node(id).clone())
    }

    /// The kind of what a name leads to.
    pub(super) fn kind(&self, name: &str, last: Last) -> eyot::Result<NodeKind> {
        let held = self.hold();
        let id = self.find(&held, name, last)?.found()?;
        Ok(held.tree.node(id).kind())
    }

    /// Writes a file. The mask takes bits from the mode of a new one.
    pub(super) fn write(&self, name: &str, bytes: Vec<u8>) -> eyot::Result<()> {
        let mut held = self.hold();
        let place = self.find(&held, name, Last::Follow)?;
        let Some(id) = place.node else {
            return held.add(&place, FileNode::file(bytes, self.masked(0o666))).map(drop);
        };
        held.overwrite(&place, id, bytes.into())
    }
}

/// The answer to `--help` and `--version`, which scripts ask for to tell GNU's programs from others.
fn help(run: &ProgramRun<'_>, usage: &str) -> Option<String> {
    match run.args {
        [only] if only == "--help" => Some(format!("Usage: {} {usage}\n", run.name)),
        [only] if only == "--version" => {
            Some(format!("{} (Eyot, in memory; works as that of GNU coreutils 9.7)\n", run.name))
        }
        _ => None,
    }
}

/// The error of a program that runs in an interpreter without a command.
const NO_COMMAND: &str = "there is no command\n";

/// A program as the interpreter calls it.
#[derive(Clone)]
pub(super) struct InstalledProgram {
    pub name: &'static str,
    pub program: &'static dyn ShellProgram,
    pub command: CommandSlot,
}

impl InstalledProgram {
    async fn run(&self, run: &ProgramRun<'_>) -> bashkit::Result<i32> {
        if !argument_limits::fit(run.args) {
            let name = self.program.called(run);
            run.stderr.write_all(format!("bash: {name}: Argument list too long\n").as_bytes()).await?;
            return Ok(argument_limits::STATUS);
        }
        if let Some(text) = help(run, self.program.usage()) {
            run.stdout.write_all(text.as_bytes()).await?;
            return Ok(0);
        }
        match self.program.run(run).await {
            Ok(status) => Ok(status),
            Err(Ending::Shell(error)) => Err(error),
            Err(Ending::Refused { reason, status, has_hint }) => {
                let mut text = format!("{}: {reason}\n", run.name);
                if has_hint {
                    text += &format!("Try '{} --help' for more information.\n", run.name);
                }
                run.stderr.write_all(text.as_bytes()).await?;
                Ok(status.unwrap_or_else(|| self.program.usage_status()))
            }
        }
    }
}

/// A program with whole input and kept output.
#[async_trait]
impl Builtin for InstalledProgram {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let Some(children) = self.command.children() else { return Ok(ExecResult::err(NO_COMMAND, 1)) };
        let (stdout, stderr) = (ProgramOutput::kept(), ProgramOutput::kept());
        let run = ProgramRun {
            name: self.name,
            args: context.args,
            env: context.env,
            cwd: context.cwd,
            files: &children.shells().files,
            children: &children,
            fs: context.fs,
            stdin: ProgramInput::whole(context.stdin.map_or(&[][..], |input| input.as_bytes())),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            pace: Pace::new(),
        };
        let status = self.run(&run).await?;
        Ok(ExecResult {
            stdout: stdout.take().into(),
            stderr: stderr.take().into(),
            exit_code: status,
            ..ExecResult::default()
        })
    }
}

/// A program that is live.
#[async_trait]
impl Command for InstalledProgram {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let Some(children) = self.command.children() else { return Ok(CommandStatus::with_code(1)) };
        let run = ProgramRun {
            name: self.name,
            args: context.args,
            env: context.env,
            cwd: context.cwd,
            files: &children.shells().files,
            children: &children,
            fs: context.fs,
            stdin: ProgramInput::Live(context.stdin),
            stdout: ProgramOutput::Live(context.stdout),
            stderr: ProgramOutput::Live(context.stderr),
            pace: Pace::new(),
        };
        self.run(&run).await.map(CommandStatus::with_code)
    }
}

/// The front of a program whose output is live, though it may leave its input to others: it gets what has
/// come when it begins.
pub(super) struct LiveOutput(pub &'static str);

#[async_trait]
impl Builtin for LiveOutput {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(ExecResult::ok(""))
    }

    async fn execution_plan(&self, context: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        let (args, stdin) = (context.args.to_vec(), context.stdin.cloned());
        let command = SubCommand { name: self.0.to_owned(), args, stdin, assignments: Vec::new() };
        Ok(Some(ExecutionPlan::Batch { commands: vec![command] }))
    }
}
