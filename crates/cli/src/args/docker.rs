//! Words of Docker that Eyot has another word for: an error about one of them names ours.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds our word to an error about an argument, where Docker's was used. `called` is the command.
#[must_use]
pub fn with_our_word(mut error: Error, called: Option<&str>) -> Error {
    let word = match error.kind() {
        ErrorKind::UnknownArgument => ours_of_option(called, wrong(&error, ContextKind::InvalidArg)),
        ErrorKind::InvalidSubcommand => ours_of_command(wrong(&error, ContextKind::InvalidSubcommand)),
        ErrorKind::MissingRequiredArgument => ours_of_missing(called),
        _ => None,
    };
    if let Some(word) = word {
        error.remove(ContextKind::SuggestedSubcommand);
        let suggested = vec![StyledStr::from(word)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(suggested));
    }
    error
}

fn wrong(error: &Error, kind: ContextKind) -> &str {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.split('=').next().unwrap_or_default(),
        _ => "",
    }
}

/// Returns what to write instead of an option of Docker's.
fn ours_of_option(called: Option<&str>, option: &str) -> Option<&'static str> {
    Some(match (called, option) {
        (Some("run"), "-d" | "--detach") => {
            "`eyot create NAME`, then `eyot start NAME -- COMMAND` leaves a command running"
        }
        (_, "-d" | "--detach") => "`eyot start NAME -- COMMAND` leaves a command running",
        (Some("create"), "--rm") => "--ttl or --idle-timeout ends it; `eyot run` destroys its sandbox itself",
        (Some("create"), "-i" | "-t") => "`eyot sh NAME` opens a shell in a sandbox",
        (Some("sh"), "-i" | "-t") => "`eyot sh` is always interactive, and has a terminal where you have one",
        (Some("ls"), "-a" | "--all") => "`eyot ls` lists sleeping sandboxes too",
        (Some("sleep" | "stop"), "-t" | "--time" | "--timeout") => {
            "processes are killed at once; `eyot kill NAME PROCESS` sends one a signal before that"
        }
        (Some("update"), "--allow" | "--deny") => "`eyot net NAME` changes where it may connect to",
        (Some("update"), "-m" | "--memory" | "--cpus" | "--pids" | "--pids-limit" | "--disk") => {
            "limits are set when a sandbox is created: `eyot create NAME`"
        }
        (_, "--detach-keys" | "--privileged" | "--cap-add" | "--device" | "--gpus") => return None,
        (_, "-v") => "--verbose shows the causes of an error; --mount is an option of `run` and `create`",
        (_, "-V") => "`eyot version` prints the version",
        (_, "--entrypoint") => "the command is all that runs: write the program first",
        (_, "--memory-swap") => "--memory limits memory; a sandbox has no swap beyond it",
        (_, "--tmpfs") => "/tmp, /run and /dev/shm are writable in every sandbox",
        _ => return None,
    })
}

/// Returns what to write instead of a command of Docker's.
fn ours_of_command(command: &str) -> Option<&'static str> {
    Some(match command {
        "images" => "`eyot image ls` lists the images",
        "pull" => "`eyot image pull IMAGE` pulls an image",
        "load" | "import" => "`eyot image import FILE` imports images",
        "rmi" => "`eyot image rm IMAGE` removes an image",
        "build" | "buildx" => "`docker build`, then `eyot image import docker://IMAGE`",
        "container" => "the command alone: `eyot ls`, `eyot rm NAME`",
        "stats" => "`eyot top` shows the usage of sandboxes",
        "attach" => "`eyot sh NAME` opens a shell; `eyot logs -f NAME PROCESS` follows a process",
        "pause" => "`eyot sleep NAME` stops a sandbox and keeps its files",
        "unpause" => "`eyot wake NAME` makes it usable again",
        "restart" => "`eyot sleep NAME`, then `eyot wake NAME`",
        "destroy" | "delete" | "remove" => "`eyot rm NAME` destroys a sandbox",
        "network" => "`eyot net NAME` shows where a sandbox may connect to",
        "port" => "`eyot browse NAME PORT` opens a port of a sandbox",
        "volume" => "`eyot create --workspace ID` keeps the working directory's files",
        "info" => "`eyot doctor` shows what this host can do",
        _ => return None,
    })
}

/// Returns the command that was meant, where Docker's of the same name needs less.
fn ours_of_missing(called: Option<&str>) -> Option<&'static str> {
    Some(match called? {
        "ps" => "`eyot ls` lists the sandboxes; `eyot ps NAME` the processes of one",
        "start" => "`eyot wake NAME` wakes a sandbox; `eyot start NAME -- COMMAND` starts a process in it",
        "kill" => "`eyot sleep NAME` stops a sandbox; `eyot kill NAME PROCESS` one process of it",
        "logs" => {
            "`eyot ps NAME` lists the processes of a sandbox, and `eyot logs NAME PROCESS` prints one's output"
        }
        _ => return None,
    })
}
