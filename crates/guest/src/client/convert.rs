//! The contract's types as the wire has them, and back.

use eyot::{
    Command, ConfinedPath, DirEntry, Error, ErrorKind, ExecRequest, ExitStatus, FileStat, FileType,
    GlobResult, GrepMatch, GrepResult, LiveProcess, LiveProcesses, LogQuery, LogRange, LogStream, ProcessId,
    ProcessInfo, ProcessStatus, PtySize, Usage, WriteMode, WriteOptions,
};

use crate::protocol::{
    CHANNEL_STDERR, CHANNEL_STDOUT, CommandSpec, Exec, Failure, FileEntry, FileKind, GlobMatches,
    GrepMatches, LiveProcessList, LiveRecord, Location, LogRequest, ProcessRecord, Reply, StatRecord, Status,
    Terminal, UsageRecord, WriteParameters,
};

/// Returns the error that a guest's failure stands for. A guest that lies may give no reason, but a
/// reader still needs a sentence.
pub(super) fn failure_error(failure: Failure) -> Error {
    let kind = ErrorKind::from_name(&failure.kind).unwrap_or(ErrorKind::Internal);
    if failure.message.trim().is_empty() {
        Error::new(kind, "the sandbox's guest gave no reason")
    } else {
        Error::new(kind, failure.message)
    }
}

/// A reply that the call's shape should not have let through.
pub(super) fn unexpected(reply: &Reply) -> Error {
    Error::new(ErrorKind::Internal, format!("a reply of the wrong kind was let through: {reply:?}"))
}

pub(super) fn location(place: &ConfinedPath) -> Location {
    let beneath = place.beneath.as_ref().map(|directory| directory.as_str().to_owned());
    Location { path: place.path.as_str().to_owned(), beneath }
}

pub(super) fn exec(request: ExecRequest) -> Exec {
    let ExecRequest { command, cwd, env, user, stdin, pty } = request;
    let command = match command {
        Command::Shell(line) => CommandSpec::Shell(line),
        Command::Argv(argv) => CommandSpec::Argv(argv),
    };
    let env = env.into_iter().collect();
    Exec { command, cwd: location(&cwd), env, user, stdin, terminal: pty.map(terminal) }
}

pub(super) fn terminal(size: PtySize) -> Terminal {
    Terminal { rows: size.rows, cols: size.cols }
}

pub(super) fn exit_status(status: Status) -> ExitStatus {
    match status {
        Status::Exited(code) => ExitStatus::Exited(code),
        Status::Signaled(signal) => ExitStatus::Signaled(signal),
        Status::OutOfMemory => ExitStatus::OutOfMemory,
    }
}

pub(super) fn process_info(record: ProcessRecord) -> ProcessInfo {
    let ProcessRecord { id, pid, command, status, started_ms, ended_ms, timed_out } = record;
    let status = status.map_or(ProcessStatus::Running, |status| ProcessStatus::Ended(exit_status(status)));
    let timed_out = timed_out.unwrap_or_default();
    ProcessInfo { id: ProcessId(id), pid, command, status, started_ms, ended_ms, timed_out }
}

pub(super) fn log_request(process: ProcessId, query: LogQuery) -> LogRequest {
    let stream = query.stream.map(|stream| match stream {
        LogStream::Stdout => CHANNEL_STDOUT,
        LogStream::Stderr => CHANNEL_STDERR,
    });
    let LogQuery { offset, tail_bytes, tail_lines, follow, .. } = query;
    LogRequest { process: process.0, stream, offset, tail: tail_bytes, follow, tail_lines }
}

pub(super) fn log_range(range: crate::protocol::LogRange) -> LogRange {
    let crate::protocol::LogRange { start, end, total_bytes, dropped_bytes } = range;
    LogRange { start, end, total_bytes, dropped_bytes }
}

pub(super) fn live_processes(found: LiveProcessList) -> LiveProcesses {
    let process = |record: LiveRecord| LiveProcess {
        pid: record.pid,
        parent_pid: record.parent_pid,
        user: record.user,
        state: char::from(record.state),
        cpu_ms: Some(record.cpu_ms),
        memory_bytes: Some(record.memory_bytes),
        command: record.command,
    };
    LiveProcesses {
        processes: found.processes.into_iter().map(process).collect(),
        truncated: found.truncated,
    }
}

pub(super) fn write_how(options: WriteOptions) -> WriteParameters {
    let mode = match options.mode {
        WriteMode::Replace => 0,
        WriteMode::Append => 1,
        WriteMode::CreateNew => 2,
    };
    WriteParameters { mode, permissions: options.permissions, max_bytes: options.max_file_bytes }
}

pub(super) fn file_stat(record: StatRecord) -> FileStat {
    FileStat {
        is_file: record.kind == FileKind::File,
        is_directory: record.kind == FileKind::Directory,
        is_symbolic_link: Some(record.symlink),
        size: Some(record.size),
        modified_ms: Some(record.modified_ms),
        mode: Some(record.mode),
    }
}

pub(super) fn dir_entry(entry: FileEntry) -> DirEntry {
    let file_type = Some(match entry.kind {
        FileKind::File => FileType::File,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Other => FileType::Other,
    });
    let (name, name_bytes) = text_and_bytes(entry.name);
    DirEntry { name, name_bytes, file_type, size: Some(entry.size) }
}

/// A name or a path as text, and its bytes where they are none.
pub(super) fn text_and_bytes(bytes: Vec<u8>) -> (String, Option<Vec<u8>>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(error.into_bytes())),
    }
}

pub(super) fn glob_result(found: GlobMatches) -> GlobResult {
    GlobResult { paths: found.paths, truncated: found.truncated }
}

pub(super) fn grep_result(found: GrepMatches) -> GrepResult {
    let matches = found.matches.into_iter().map(|line| GrepMatch {
        path: line.path,
        line_number: line.line_number,
        line: line.line,
        line_truncated: line.line_truncated,
    });
    GrepResult { matches: matches.collect(), truncated: found.truncated }
}

pub(super) fn usage(record: UsageRecord) -> Usage {
    Usage {
        processes: Some(record.processes),
        memory_bytes: record.group_memory_bytes.or(Some(record.memory_bytes)),
        memory_peak_bytes: record.group_memory_peak_bytes,
        cpu_ms: Some(record.cpu_ms),
        disk_bytes: None,
        uptime_ms: Some(record.uptime_ms),
        idle_ms: Some(record.idle_ms),
    }
}
