//! The reason why a command could not be run, in the words of its caller.

use super::reaper::{ReaperRecord, STEP_BENEATH, STEP_CWD, STEP_EXEC, STEP_FORK, STEP_USER};
use crate::program::failure::failure;
use crate::protocol::{CommandSpec, Exec, Failure};

/// The longest argument or variable that the kernel takes: `MAX_ARG_STRLEN` less its null byte.
const LONGEST_ARGUMENT_BYTES: usize = 131_071;

/// The failure that a record of a failed step means.
pub fn refusal(exec: &Exec, record: &ReaperRecord) -> Failure {
    let errno = record.value;
    match record.step {
        STEP_CWD => cwd_refusal(&exec.cwd.path, errno),
        STEP_BENEATH => cwd_refusal(exec.cwd.beneath.as_deref().unwrap_or_default(), errno),
        STEP_EXEC => exec_refusal(&exec.command, errno),
        STEP_FORK => other("start a command", errno),
        STEP_USER => other("become the command's user", errno),
        _ => other("set up a command", errno),
    }
}

fn cwd_refusal(path: &str, errno: i32) -> Failure {
    let (kind, reason) = match errno {
        libc::ENOENT => ("not_found", "not found"),
        libc::ENOTDIR => ("not_directory", "is not a directory"),
        libc::EXDEV | libc::ELOOP => ("permission", "leads out of the directory that it is held beneath"),
        libc::EACCES | libc::EPERM => ("permission", "permission denied"),
        libc::ENAMETOOLONG => ("invalid", "is too long"),
        _ => return other(&format!("enter working directory `{path}`"), errno),
    };
    failure(kind, format!("working directory `{path}` {reason}"))
}

fn exec_refusal(command: &CommandSpec, errno: i32) -> Failure {
    if matches!(command, CommandSpec::Shell(_)) && errno == libc::ENOENT {
        return failure("unsupported", "this sandbox has neither bash nor sh");
    }
    let (kind, reason) = match errno {
        libc::ENOENT | libc::ENOTDIR => ("not_found", "command not found".to_owned()),
        libc::EACCES | libc::EPERM | libc::EISDIR => ("permission", "permission denied".to_owned()),
        libc::ENOEXEC => ("invalid", "not a program that can be run here".to_owned()),
        libc::ENAMETOOLONG => ("invalid", "the name is too long".to_owned()),
        libc::E2BIG => ("too_large", too_large()),
        libc::EAGAIN => ("quota", "no more processes may run here".to_owned()),
        libc::ETXTBSY => ("conflict", "the file is open for writing".to_owned()),
        _ => return other("start the program", errno),
    };
    failure(kind, reason)
}

fn too_large() -> String {
    format!(
        "the command is too large; the kernel takes {LONGEST_ARGUMENT_BYTES} bytes per argument or variable, and \
         about 2 MiB in all"
    )
}

fn other(what: &str, errno: i32) -> Failure {
    let kind = match errno {
        libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE => "quota",
        libc::EACCES | libc::EPERM => "permission",
        _ => "internal",
    };
    failure(kind, format!("{what}: {}", std::io::Error::from_raw_os_error(errno)))
}
