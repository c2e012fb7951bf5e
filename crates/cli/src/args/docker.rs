//! Words of Docker that Eyot has another word for: an error about one of them names ours.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, Error, Subcommand};
use eyot::internal::nearest;

use super::{Cli, CliCommand};

/// Adds our word to an error about an argument: for Docker's, and for a misspelt command. `words` are
/// the arguments.
#[must_use]
pub fn with_our_word(mut error: Error, words: &[String]) -> Error {
    let called = words.iter().map(String::as_str).find(|word| CliCommand::has_subcommand(word));
    match error.kind() {
        ErrorKind::UnknownArgument => suggest_option(&mut error, called, words),
        ErrorKind::InvalidSubcommand => {
            let command = wrong(&error, ContextKind::InvalidSubcommand).to_owned();
            let place = |wanted: &str| words.iter().position(|word| word == wanted);
            // In `volume ls` the first word is wrong, in `keys rm` the second.
            let group = called.filter(|called| place(called) < place(&command));
            let ours = match group {
                Some(group) => ours_in_group(group, &command),
                None => ours_of_command(&command),
            };
            if let Some(word) = ours {
                suggest(&mut error, word.to_owned());
            } else if let Some(called) = group {
                if error.get(ContextKind::SuggestedSubcommand).is_none() {
                    suggest(&mut error, format!("`eyot {called} --help` lists its commands"));
                }
            } else {
                suggest_near_commands(&mut error, &command);
            }
        }
        ErrorKind::ArgumentConflict if called == Some("agent") => {
            let word = "a task is one word for the shell: quote it; `eyot agent ls` lists the runs, and `eyot pool rm ID` \
                        removes an agent's sandbox";
            suggest(&mut error, word.to_owned());
        }
        ErrorKind::ValueValidation if called == Some("create") => {
            let value = wrong(&error, ContextKind::InvalidValue).to_owned();
            let is_name = wrong(&error, ContextKind::InvalidArg) == "[NAME]";
            if is_name && value.contains([':', '/']) {
                suggest(&mut error, format!("an image is named by an option: eyot create --image {value}"));
            }
        }
        ErrorKind::MissingRequiredArgument => {
            if let Some(word) = ours_of_missing(called) {
                suggest(&mut error, word.to_owned());
            }
        }
        // Both commands and a sandbox may follow it.
        ErrorKind::ArgumentConflict if called == Some("snapshot") => {
            let after = words.iter().skip_while(|word| *word != "snapshot").skip(1);
            let mut after = after.filter(|word| !word.starts_with('-'));
            let word = match (after.next().map(String::as_str), after.next()) {
                (Some("create" | "take" | "save" | "new"), Some(sandbox)) => {
                    format!("the sandbox's name alone takes one: `eyot snapshot {sandbox}`")
                }
                _ => "--name names the snapshot: `eyot snapshot SANDBOX --name NAME`".to_owned(),
            };
            suggest(&mut error, word);
        }
        _ => {}
    }
    error
}

fn suggest(error: &mut Error, word: String) {
    error.remove(ContextKind::SuggestedSubcommand);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(word)]));
}

/// Suggests the commands that are nearest to a misspelt one. The parser's own measure finds none for
/// a short one with two letters swapped, and too many for others.
fn suggest_near_commands(error: &mut Error, command: &str) {
    let nearest = nearest(command, &CliCommand::names());
    if !nearest.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(nearest));
    }
}

/// Suggests our word for an option, else the option that is nearest to a misspelt one, else the
/// list of options. The parser's own suggestions have few letters in common with it, or pass it to
/// a program.
fn suggest_option(error: &mut Error, called: Option<&str>, words: &[String]) {
    let option = wrong(error, ContextKind::InvalidArg).to_owned();
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Suggested);
    let mut program = Cli::command();
    program.build();
    let command = called_command(&program, words);
    // The parser's own line is made up of what was typed and of what it took the option for.
    error.insert(ContextKind::Usage, ContextValue::StyledStr(command.clone().render_usage()));
    if let Some((option, value)) = negative(words) {
        suggest(error, format!("`{option}` takes no negative value: `{value}` was read as an option"));
    } else if let Some(word) = ours_of_option(called, &option) {
        suggest(error, word.to_owned());
    } else if let Some(nearest) = nearest_option(command, &option) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(nearest));
    } else if called.is_some() {
        let name = command.get_bin_name().unwrap_or("eyot");
        suggest(error, format!("`{name} --help` lists its options"));
    }
}

/// Finds an option that a negative number follows, as in `-m -5`.
fn negative(words: &[String]) -> Option<(&str, &str)> {
    let is_option = |word: &str| word.starts_with('-');
    let is_number = |word: &str| {
        let digits = word.strip_prefix('-').map(|rest| rest.trim_start_matches('.'));
        digits.is_some_and(|digits| digits.starts_with(|first: char| first.is_ascii_digit()))
    };
    let pair = words.windows(2).find(|pair| is_option(&pair[0]) && is_number(&pair[1]))?;
    Some((&pair[0], &pair[1]))
}

/// Finds the command, or the command of a command, that the arguments name.
fn called_command<'a>(program: &'a Command, words: &[String]) -> &'a Command {
    words.iter().fold(program, |command, word| command.find_subcommand(word).unwrap_or(command))
}

fn nearest_option(command: &Command, option: &str) -> Option<String> {
    let typed = option.strip_prefix("--")?;
    let shown = || command.get_arguments().filter(|option| !option.is_hide_set());
    let aliases = shown().filter_map(Arg::get_all_aliases).flatten();
    let options: Vec<&str> = shown().filter_map(Arg::get_long).chain(aliases).collect();
    nearest(typed, &options).first().map(|near| format!("--{near}"))
}

fn wrong(error: &Error, kind: ContextKind) -> &str {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.split('=').next().unwrap_or_default(),
        _ => "",
    }
}

/// Returns what to write instead of an option of Docker's.
fn ours_of_option(called: Option<&str>, option: &str) -> Option<&'static str> {
    called.and_then(|called| ours_of_option_of(called, option)).or_else(|| ours_of_any_option(option))
}

/// Returns what to write instead of an option of Docker's command of this name.
fn ours_of_option_of(called: &str, option: &str) -> Option<&'static str> {
    Some(match (called, option) {
        ("run", "-d" | "--detach") => {
            "`eyot create NAME`, then `eyot start NAME -- COMMAND` leaves a command running"
        }
        ("create", "--rm") => "--ttl or --idle-timeout ends it; `eyot run` destroys its sandbox itself",
        ("create", "-i" | "-t") => "`eyot sh NAME` opens a shell in a sandbox",
        ("sh", "-i" | "-t") => "`eyot sh` is always interactive, and has a terminal where you have one",
        ("sh" | "shell", "-c") => "`eyot exec NAME -- sh -c LINE` runs a shell line",
        ("ls", "-a" | "--all") => "`eyot ls` lists sleeping sandboxes too",
        ("sleep" | "stop", "-t" | "--time" | "--timeout") => {
            "processes are killed at once; `eyot kill NAME PROCESS` sends one a signal before that"
        }
        ("update", "--image") => "the image is set when a sandbox is created: `eyot create NAME`",
        ("update", "--allow" | "--deny") => "`eyot net NAME` changes where it may connect to",
        ("update", "-m" | "--memory" | "--cpus" | "--pids" | "--pids-limit" | "--disk") => {
            "limits are set when a sandbox is created: `eyot create NAME`"
        }
        ("fork", word) if !word.starts_with('-') => "--name names the fork: `eyot fork SANDBOX --name NAME`",
        ("ps", "-a" | "--all") => "`eyot ls` lists all sandboxes; `eyot ps NAME` the processes of one",
        ("cp", "-a" | "-r" | "-R" | "--archive" | "--recursive") => {
            "folders are copied whole, with their modes: leave it out"
        }
        ("rm", "-v" | "--volumes") => {
            "the files go with the sandbox; those of --workspace stay, unless --destroy-workspace was said"
        }
        ("inspect", "-f") => "--json prints it for programs",
        ("serve", "-p" | "-H" | "--port" | "--host" | "--bind" | "--addr" | "--address") => {
            "--listen names the address: 8080, 0.0.0.0:8080 or unix:/PATH"
        }
        ("mcp", "-p" | "-H" | "--port" | "--host" | "--bind" | "--addr" | "--address" | "--listen") => {
            "--http names the address: --http 8080"
        }
        ("browse" | "preview" | "dial", "-p" | "--port") => {
            "the port is the second word: `eyot browse NAME PORT`"
        }
        ("events", "-n" | "--tail") => {
            "`eyot events | tail -n 20` prints the last ones; --from begins with an event's number"
        }
        ("events", "--since" | "--until") => "--from begins with an event's number; each line has its time",
        ("top", "--no-stream") => "a list is printed once where it is piped: `eyot top | cat`",
        ("image", "-a" | "--all") => "`eyot image ls` lists all images",
        ("ls", "-f" | "--filter") => "--label K=V lists those with a label",
        _ => return None,
    })
}

/// Returns what to write instead of an option that several commands of Docker's have.
fn ours_of_any_option(option: &str) -> Option<&'static str> {
    Some(match option {
        "-d" | "--detach" => "`eyot start NAME -- COMMAND` leaves a command running",
        "--format" | "-o" | "--output" => "--json prints it for programs",
        "--no-trunc" => "nothing is cut: leave it out",
        "--privileged" | "--cap-add" => {
            "a sandbox never has rights on the host; where root or docker makes the sandbox, \
             --image debian:13 --user root is root of it alone, which is enough for apt and the like"
        }
        "--cap-drop" => "`security.drop_capabilities` in a --spec file drops a capability",
        "--security-opt" => "seccomp, Landlock and namespaces are always on; --require says which must hold",
        "--ulimit" => "--memory, --cpus and --pids limit a sandbox; `ulimit` in a shell limits a command",
        "--dns" | "--dns-search" | "--dns-option" => {
            "names are resolved as this host does; --add-host adds one with docker"
        }
        "--expose" | "--link" => "`eyot browse NAME PORT` opens a port of a sandbox",
        "--pid" | "--ipc" | "--uts" | "--userns" | "--cgroupns" => {
            "every sandbox has namespaces of its own: leave it out"
        }
        "--device" | "--gpus" => "a sandbox has no devices of the host",
        "--restart" => {
            "nothing is started again by itself; a pool's services are: `eyot pool create --service`"
        }
        "--init" => "every sandbox has an init that reaps processes: leave it out",
        "--hostname" => "the host name is the sandbox's name: --name",
        "--platform" => "a sandbox runs on this machine's processor: leave it out",
        "--detach-keys" => "`exit` leaves a shell; what `eyot start` began runs on without a terminal",
        "--volumes-from" => "--mount shows a folder of the host; --workspace keeps files between sandboxes",
        "-P" | "--publish-all" => "`eyot browse NAME PORT` opens a port of a sandbox",
        "-v" => "--verbose shows the causes of an error; --mount is an option of `run` and `create`",
        "-V" => "`eyot version` prints the version",
        "--entrypoint" => "the command is all that runs: write the program first",
        "--memory-swap" => "--memory limits memory; a sandbox has no swap beyond it",
        "--tmpfs" => "/tmp, /run and /dev/shm are writable in every sandbox",
        "--shm-size" => "/run and /dev/shm together hold half of what --memory allows",
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
        "prune" | "system" | "gc" => {
            "`eyot image prune` removes images that no sandbox uses; `eyot rm --all` destroys all sandboxes"
        }
        "stats" => "`eyot top` shows the usage of sandboxes",
        "attach" => "`eyot sh NAME` opens a shell; `eyot logs -f NAME PROCESS` follows a process",
        "pause" => "`eyot sleep NAME` stops a sandbox and keeps its files",
        "unpause" => "`eyot wake NAME` makes it usable again",
        "restart" => "`eyot sleep NAME`, then `eyot wake NAME`",
        "destroy" | "delete" | "remove" => "`eyot rm NAME` destroys a sandbox",
        "network" => "`eyot net NAME` shows where a sandbox may connect to",
        "port" | "publish" | "expose" => "`eyot browse NAME PORT` opens a port of a sandbox",
        "volume" => {
            "`eyot create --workspace ID` keeps the working directory's files; `eyot workspace ls` lists them"
        }
        "sandbox" | "sandboxes" | "sbx" => "the command alone: `eyot create NAME`, `eyot ls`, `eyot rm NAME`",
        "template" => "`eyot image pull IMAGE`, then `eyot create NAME --image IMAGE`",
        "connect" => "`eyot sh NAME` opens a shell in a sandbox",
        "spawn" => "`eyot create NAME` creates a sandbox",
        "new" => "`eyot create NAME` creates a sandbox",
        "rename" => "a sandbox keeps its name; `eyot fork OLD --name NEW` makes another one with its files",
        "save" | "export" => {
            "`eyot commit NAME REFERENCE` makes an image; `eyot snapshot NAME` keeps the files of a sandbox; `eyot exec NAME -- tar c PATH > FILE` saves files of a sandbox; `eyot backup FILE` all there is"
        }
        "login" | "auth" => {
            "a server's key is in the variable EYOT_API_KEY; `docker login` is for registries"
        }
        "tag" | "push" => "`docker push`, then `eyot image pull IMAGE`",
        "compose" => "`eyot create NAME` creates one sandbox; there is no file for several",
        "checkpoint" | "snapshots" => "`eyot snapshot NAME` keeps the files of a sandbox",
        "branch" | "clone" | "copy" => "`eyot fork NAME` makes a sandbox with the files of another",
        "restore-snapshot" | "revert" | "undo" => "`eyot rollback NAME SNAPSHOT` goes back to a snapshot",
        "upload" | "download" | "put" | "get" => {
            "`eyot cp ./DIR NAME:DIR` copies files in, `eyot cp NAME:DIR ./DIR` out"
        }
        "info" => "`eyot doctor` shows what this host can do",
        _ => return None,
    })
}

/// Returns what to write instead of a command in a group, such as `eyot keys`.
fn ours_in_group(group: &str, command: &str) -> Option<&'static str> {
    Some(match (group, command) {
        ("keys", "rm" | "remove" | "delete") => "`eyot keys revoke NAME` revokes a key",
        ("keys", "add" | "new") => "`eyot keys create NAME` creates a key",
        ("image", "remove" | "delete" | "rmi") => "`eyot image rm IMAGE` removes an image",
        ("image", "load" | "add") => "`eyot image import FILE` imports images",
        ("image", "inspect" | "show" | "history") => {
            "`eyot image ls --json` prints what is known of the images"
        }
        ("image", "tag") => {
            "an image has the name that it is imported with: `eyot image import FILE --name NAME`"
        }
        ("image", "push") => "images stay on this host; `docker push` publishes one",
        ("image", "build") => "`docker build`, then `eyot image import docker://IMAGE`",
        ("pool", "remove" | "delete" | "destroy") => "`eyot pool rm POOL` destroys a pool's sandboxes",
        ("workspace", "remove" | "delete") => "`eyot workspace rm ID` removes a workspace",
        ("workspace", "create" | "new" | "add") => {
            "`eyot create NAME --workspace ID` makes one with its sandbox"
        }
        _ => return None,
    })
}

/// Returns the command that was meant, where Docker's of the same name needs less.
fn ours_of_missing(called: Option<&str>) -> Option<&'static str> {
    Some(match called? {
        "ps" => "`eyot ls` lists the sandboxes; `eyot ps NAME` the processes of one",
        "start" => "`eyot wake NAME` wakes a sandbox; `eyot start NAME -- COMMAND` starts a process in it",
        "kill" => "`eyot sleep NAME` stops a sandbox; `eyot kill NAME PROCESS` one process of it",
        "snapshot" => "`eyot snapshot ls` lists the snapshots, `eyot snapshot rm SNAPSHOT` removes one",
        "wait" => "`eyot wait NAME PROCESS` waits for a process; `eyot ps NAME` lists them, such as p1",
        "exec" => "`eyot exec NAME -- COMMAND` runs a command; `eyot sh NAME` opens a shell",
        "run" => "`eyot run -it bash` opens a shell in a throw-away sandbox",
        "completions" => "`eyot completions bash`; the others are elvish, fish, powershell and zsh",
        "logs" => {
            "`eyot ps NAME` lists the processes of a sandbox, and `eyot logs NAME PROCESS` prints one's output"
        }
        _ => return None,
    })
}
