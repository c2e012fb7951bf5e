//! Starts commands: a small reaper process per command, and below it the command itself.

mod command_line;
mod environment;
mod identity;
mod launch;
mod reaper;
mod refusal;
mod setuid_filter;
mod stacks;

use std::cell::OnceCell;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub use command_line::text_of;
pub use identity::find_identity;
pub use launch::LaunchedCommand;
pub use reaper::{RECORD_ENDED, RECORD_ENDED_WHOLE, RECORD_FAILED, RECORD_STARTED, ReaperRecord};
pub use refusal::refusal;

use super::failure::{failure, internal};
use super::reap::ChildExit;
use super::sys;
use crate::accounts::ROOT;
use crate::protocol::{Exec, Failure, GuestConfig, Identity};
use command_line::CommandLine;
use environment::Environment;
use launch::{OomScoreWriter, Reaper, Recipe};
use stacks::Stacks;

/// The number of stacks that are kept for the next commands.
const MOST_SPARE_STACKS: usize = 16;
/// The number of reapers that wait for the next commands, each for a moment.
const MOST_FREE_REAPERS: usize = 2;
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
/// The most records that one read takes.
pub const RECORDS_AT_ONCE: usize = 64;

/// Starts commands.
pub struct Spawner {
    status_reader: OwnedFd,
    status_writer: OwnedFd,
    null: File,
    open_files: [u64; 2],
    shell: &'static str,
    oom_score_writer: OnceCell<OomScoreWriter>,
    spare_stacks: Vec<Stacks>,
    /// Reapers that wait for a command, or have ended and are not waited for yet.
    free_reapers: Vec<Reaper>,
}

/// A command's standard streams.
pub struct Streams {
    /// The input; `None` reads end of file.
    pub stdin: Option<OwnedFd>,
    /// The output.
    pub stdout: OwnedFd,
    /// The error output; `None` with a terminal, which is all three.
    pub stderr: Option<OwnedFd>,
}

impl Spawner {
    /// `open_files` is the limit that commands get.
    pub fn new(open_files: [u64; 2]) -> io::Result<Self> {
        let (status_reader, status_writer) = sys::pipe()?;
        sys::set_nonblocking(status_reader.as_fd())?;
        let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
        Ok(Self {
            status_reader,
            status_writer,
            null: File::options().read(true).write(true).open("/dev/null")?,
            open_files,
            shell,
            oom_score_writer: OnceCell::new(),
            spare_stacks: Vec::new(),
            free_reapers: Vec::new(),
        })
    }

    /// Readable when [`Spawner::records`] has something.
    pub fn status_fd(&self) -> BorrowedFd<'_> {
        self.status_reader.as_fd()
    }

    /// Returns the reports of the reapers since the last time, at most [`RECORDS_AT_ONCE`].
    pub fn records(&self) -> Vec<ReaperRecord> {
        let mut bytes = [0_u8; RECORDS_AT_ONCE * size_of::<ReaperRecord>()];
        let count = sys::read(self.status_reader.as_fd(), &mut bytes).unwrap_or(0);
        let (records, _) = bytes[..count].as_chunks::<{ size_of::<ReaperRecord>() }>();
        records.iter().map(ReaperRecord::from_bytes).collect()
    }

    /// Starts a command as this user. What goes wrong after this point comes as a record.
    /// `report_start`: so does the start.
    pub fn start(
        &mut self,
        command: u32,
        exec: &Exec,
        config: &GuestConfig,
        identity: &Identity,
        streams: Streams,
        report_start: bool,
    ) -> Result<LaunchedCommand, Failure> {
        let recipe = self.recipe(command, exec, config, identity, streams)?;
        let (spare, free) = (&mut self.spare_stacks, &mut self.free_reapers);
        let started = LaunchedCommand::start(recipe, free, || take_stacks(spare), report_start);
        started.map_err(|error| internal("start a command", &error))
    }

    /// Starts a command once more whose reaper was killed while it waited for one.
    pub fn start_again(&mut self, launched: &mut LaunchedCommand, reaped: &ChildExit) -> bool {
        launched.start_again(reaped, || take_stacks(&mut self.spare_stacks))
    }

    /// Frees a command's memory, now that its reaper has ended.
    pub fn release(&mut self, launched: LaunchedCommand, reaped: &ChildExit) {
        if let Some(stacks) = launched.release(reaped) {
            self.keep_stacks(stacks);
        }
    }

    /// Frees the memory of a command of which nothing is left. Its reaper waits for the next one,
    /// or ends: if it `must_end`, or others wait.
    ///
    /// # Errors
    /// The command itself, if its reaper is not free.
    pub fn free_reaper(&mut self, launched: LaunchedCommand, must_end: bool) -> Result<(), LaunchedCommand> {
        let reaper = launched.into_reaper()?;
        if must_end || self.free_reapers.len() >= MOST_FREE_REAPERS {
            reaper.dismiss();
        }
        self.free_reapers.push(reaper);
        Ok(())
    }

    /// Frees the memory of a reaper that waited for a command, now that it has ended.
    pub fn release_free(&mut self, reaped: &ChildExit) {
        if let Some(index) = self.free_reapers.iter().position(|reaper| reaper.pid() == reaped.pid()) {
            let stacks = self.free_reapers.remove(index).release(reaped);
            self.keep_stacks(stacks);
        }
    }

    fn keep_stacks(&mut self, stacks: Stacks) {
        if self.spare_stacks.len() < MOST_SPARE_STACKS {
            self.spare_stacks.push(stacks);
        }
    }

    /// Makes the kernel kill a command's processes first when memory is short. The command can't do
    /// that itself in a namespace whose files in /proc belong to a root from outside.
    pub fn raise_oom_score_of(&self, pid: i32) {
        if self.oom_score_writer() != OomScoreWriter::Child {
            // This is a courtesy to the guest. A command that has ended, or belongs to another user
            // by now, goes without.
            drop(std::fs::write(format!("/proc/{pid}/oom_score_adj"), "500"));
        }
    }

    /// Not dumpable, the guest's own files in /proc, and those of a child that still shares its
    /// memory, belong to root: to the host's where the guest is a program that it may run but not
    /// read. Looked at when the first command starts: before, the guest was more than it is. The
    /// guest does not try it as root: the way back would cost it capabilities.
    fn oom_score_writer(&self) -> OomScoreWriter {
        let open = || File::options().write(true).open(OOM_SCORE);
        let is_roots = || std::fs::metadata(OOM_SCORE).is_ok_and(|file| file.uid() == ROOT);
        *self.oom_score_writer.get_or_init(|| match open() {
            Ok(_) => OomScoreWriter::Child,
            Err(_) if is_roots() => OomScoreWriter::Root,
            Err(_) => OomScoreWriter::Nobody,
        })
    }

    fn recipe(
        &self,
        command: u32,
        exec: &Exec,
        config: &GuestConfig,
        identity: &Identity,
        streams: Streams,
    ) -> Result<Recipe, Failure> {
        let env = Environment::new(&config.env, identity, self.shell, exec)?;
        let CommandLine { candidates, arguments, script_arguments } =
            CommandLine::new(&exec.command, env.get("PATH"))?;
        let (cwd, beneath) = working_directory(exec)?;
        let become_user = config.switch_user.then_some((identity.uid, identity.gid, identity.capabilities));
        let out = streams.stdout.as_raw_fd();
        let terminal = exec.terminal.is_some();
        let stdin = streams.stdin.as_ref().map_or(self.null.as_raw_fd(), AsRawFd::as_raw_fd);
        let stderr = streams.stderr.as_ref().map_or(out, AsRawFd::as_raw_fd);
        let fds = [if terminal { out } else { stdin }, out, stderr];
        // A terminal ends for its reader when the last process closes it, so nobody here may hold it.
        let (handed_over, outputs) = if terminal {
            (Some(streams.stdout), Vec::new())
        } else {
            (streams.stdin, [Some(streams.stdout), streams.stderr].into_iter().flatten().collect())
        };
        Ok(Recipe {
            command,
            status_fd: self.status_writer.as_raw_fd(),
            fds,
            handed_over,
            outputs,
            terminal,
            become_user,
            oom_score_writer: self.oom_score_writer(),
            cwd,
            beneath,
            open_files: self.open_files,
            max_processes: config.max_processes,
            forbid_setuid: config.forbid_setuid,
            candidates,
            arguments,
            script_arguments,
            env: env.to_strings(),
        })
    }
}

fn take_stacks(spare: &mut Vec<Stacks>) -> io::Result<Stacks> {
    spare.pop().map_or_else(Stacks::new, Ok)
}

fn working_directory(exec: &Exec) -> Result<(CString, Option<CString>), Failure> {
    let path = exec.cwd.path.as_str();
    let c_string = |text: &str| {
        CString::new(text).map_err(|_| failure("invalid", "the working directory contains a null byte"))
    };
    let Some(beneath) = exec.cwd.beneath.as_deref() else {
        return Ok((c_string(path)?, None));
    };
    let below = path
        .strip_prefix(beneath.trim_end_matches('/'))
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let Some(rest) = below else {
        let message = format!("working directory `{path}` is not below `{beneath}`");
        return Err(failure("permission", message));
    };
    let relative = rest.trim_start_matches('/');
    Ok((c_string(if relative.is_empty() { "." } else { relative })?, Some(c_string(beneath)?)))
}
