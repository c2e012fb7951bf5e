//! The commands that a script leaves in the background: tells whether they hold the script's outputs open.

use bashkit::analysis::is_command_wrapper;
use bashkit::parser::{Command, CompoundCommand, Redirect, RedirectKind, SimpleCommand, WordPart};
use serde_json::Value;

use super::{read_tree, visit};

/// Programs that may leave something behind which a reading of the script does not show.
const MAY_LEAVE: [&str; 13] = [
    ".", "bash", "coproc", "env", "eval", "nohup", "parallel", "setsid", "sh", "source", "timeout", "trap",
    "xargs",
];

/// The standard output and the standard error: do they lead where the script's lead?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outputs {
    stdout: bool,
    stderr: bool,
}

impl Outputs {
    const OPEN: Self = Self { stdout: true, stderr: true };
    const CLOSED: Self = Self { stdout: false, stderr: false };
}

/// Tells whether all commands that a script leaves in the background have sent both outputs elsewhere. If that is not sure, it
/// says that they have not.
pub(in crate::memory) fn lets_go_of_outputs(script: &str) -> bool {
    let Some(tree) = read_tree(script) else { return false };
    let (mut has_any, mut is_sure) = (false, true);
    visit(&tree, &mut |part| {
        is_sure &= part.get("Coproc").is_none()
            && !part.get("Simple").is_some_and(may_leave)
            && !copies_output(part);
        for command in left_in(part) {
            has_any = true;
            is_sure &= command.is_some_and(|command| lets_go(&command, Outputs::OPEN));
        }
    });
    has_any && is_sure
}

/// Tells whether a simple command may leave something behind.
fn may_leave(command: &Value) -> bool {
    let has_args = command["args"].as_array().is_some_and(|args| !args.is_empty());
    let has_name = command["name"]["parts"].as_array().is_some_and(|parts| !parts.is_empty());
    match command["name"]["parts"][0]["Literal"].as_str() {
        Some("exec") => has_args,
        Some(name) => name.contains('/') || MAY_LEAVE.contains(&name) || is_command_wrapper(name),
        None => has_name,
    }
}

/// Tells whether a redirection makes a third descriptor of an output, by which a command may write to it later.
fn copies_output(redirect: &Value) -> bool {
    let is_third = redirect["fd"].as_i64().is_some_and(|fd| fd > 2) || redirect["fd_var"].is_string();
    redirect["kind"] == "DupOutput" && is_third
}

/// Returns the commands that a list starts in the background. `None` stands for one that can't be read.
fn left_in(list: &Value) -> Vec<Option<Command>> {
    let (Some(first), Some(rest)) = (list.get("first"), list.get("rest").and_then(Value::as_array)) else {
        return Vec::new();
    };
    let items = std::iter::once(first).chain(rest.iter().map(|item| &item[1]));
    let behind = rest.iter().map(|item| item[0] == "Background");
    let left = items.zip(behind).filter(|(_, is_left)| *is_left);
    left.map(|(command, _)| serde_json::from_value(command.clone()).ok()).collect()
}

fn lets_go(command: &Command, outputs: Outputs) -> bool {
    match command {
        Command::Simple(simple) => redirected(outputs, &simple.redirects) == Outputs::CLOSED,
        Command::Compound(compound, redirects) => {
            let outputs = redirected(outputs, redirects);
            let begun = match compound {
                CompoundCommand::Subshell(commands) | CompoundCommand::BraceGroup(commands) => {
                    commands.first().and_then(first_exec)
                }
                _ => None,
            };
            begun.map_or(outputs, |exec| redirected(outputs, &exec.redirects)) == Outputs::CLOSED
        }
        Command::Pipeline(pipeline) => {
            let Some((last, others)) = pipeline.commands.split_last() else { return false };
            // Their standard output is the pipe.
            let piped = Outputs { stdout: false, ..outputs };
            lets_go(last, outputs) && others.iter().all(|command| lets_go(command, piped))
        }
        Command::List(list) => {
            lets_go(&list.first, outputs) && list.rest.iter().all(|(_, command)| lets_go(command, outputs))
        }
        Command::Function(_) => true,
    }
}

/// Returns the `exec` that a group begins with.
fn first_exec(command: &Command) -> Option<&SimpleCommand> {
    match command {
        Command::Simple(simple) => {
            let is_exec = matches!(simple.name.parts.as_slice(), [WordPart::Literal(name)] if name == "exec");
            (is_exec && simple.args.is_empty()).then_some(simple)
        }
        Command::List(list) => first_exec(&list.first),
        _ => None,
    }
}

fn redirected(mut outputs: Outputs, redirects: &[Redirect]) -> Outputs {
    for redirect in redirects {
        let target = match redirect.target.parts.as_slice() {
            [WordPart::Literal(target)] => Some(target.as_str()),
            _ => None,
        };
        let to_program = |part: &WordPart| matches!(part, WordPart::ProcessSubstitution { .. });
        let is_open = match (redirect.kind, target) {
            (
                RedirectKind::Output
                | RedirectKind::Clobber
                | RedirectKind::Append
                | RedirectKind::OutputBoth,
                _,
            ) => redirect.target.parts.iter().any(to_program) || target.is_some_and(is_own_output),
            (RedirectKind::DupOutput, Some("1")) => outputs.stdout,
            (RedirectKind::DupOutput, Some("2")) => outputs.stderr,
            (RedirectKind::DupOutput, Some("-")) => false,
            (RedirectKind::DupOutput, _) => true,
            _ => continue,
        };
        match redirect.fd {
            _ if redirect.kind == RedirectKind::OutputBoth => {
                outputs = Outputs { stdout: is_open, stderr: is_open };
            }
            Some(2) => outputs.stderr = is_open,
            None | Some(1) => outputs.stdout = is_open,
            Some(_) => {}
        }
    }
    outputs
}

/// Tells whether a file is one of the outputs again, by a name such as `/dev/stderr`.
fn is_own_output(file: &str) -> bool {
    file.starts_with("/dev/std") || file.starts_with("/dev/fd/") || file.starts_with("/proc/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_writes_elsewhere_has_let_go() {
        for script in [
            "(exec >/dev/null 2>&1; touch there; sleep 9) & until [ -e there ]; do :; done",
            "sleep 9 >log 2>&1 & echo a",
            "sleep 9 &>log &",
            "{ sleep 9; } >>log 2>>errors & f() { sleep 1; }",
            "for i in 1 2; do sleep 9 >/dev/null 2>&- & done",
            "a 2>x | b >y 2>&1 &",
        ] {
            assert!(lets_go_of_outputs(script), "{script}");
        }
    }

    #[test]
    fn whatever_may_write_has_not() {
        for script in [
            "echo a",
            "sleep 9 & echo a",
            "sleep 9 >log & echo a",
            "sleep 9 2>&1 >log &",
            "sleep 9 >log 2>&1 & sleep 8 &",
            "(echo a; exec >log 2>&1; sleep 9) &",
            "a | b >log 2>&1 &",
            "sleep 9 >/dev/stdout 2>&1 &",
            "sleep 9 > >(cat) 2>&1 &",
            "sleep 9 >log 2>&1 & bash -c 'sleep 9 &'",
            "sleep 9 >log 2>&1 & $x",
            "sleep 9 >log 2>&1 & ./x",
            "sleep 9 >log 2>&1 & coproc cat",
            "exec 3>&1; (sleep 2; echo x >&3) >/dev/null 2>&1 & echo a",
            "(exec >/dev/null 2>&1; exec >&3; sleep 2) 3>&1 &",
            "trap 'sleep 9 &' EXIT; sleep 9 >log 2>&1 &",
            "sleep 9 >log 2>&1 & if",
        ] {
            assert!(!lets_go_of_outputs(script), "{script}");
        }
    }
}
