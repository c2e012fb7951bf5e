//! The interpreter's programs whose errors are put into the words of the real ones: each runs in a
//! child that has the interpreter's own program of this name.

use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand};

use super::children::{ChildEnd, ChildInput};
use super::rewording::Rewording;
use super::run::{Ending, ProgramRun, ShellProgram};
use crate::memory::odd_names::encoded;

/// The programs.
pub(super) const NAMES: &[&str] = &["find", "rg"];
/// The program that runs them.
pub(super) const HIDDEN: &str = "__eyot_reworded";
const HAS_INPUT: &str = "input";
const NO_INPUT: &str = "none";

/// One of the programs, as a script calls it. It tells a command that has no input from one whose input
/// is empty.
pub(super) struct Entrance(pub &'static str);

#[async_trait]
impl Builtin for Entrance {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(ExecResult::err(format!("{}: it can't be started here\n", self.0), 2))
    }

    async fn execution_plan(&self, context: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        let input = if context.stdin.is_some() { HAS_INPUT } else { NO_INPUT };
        let head = [self.0, input].into_iter().map(str::to_owned);
        let command = SubCommand {
            name: HIDDEN.to_owned(),
            args: head.chain(context.args.iter().cloned()).collect(),
            stdin: context.stdin.cloned(),
            assignments: Vec::new(),
        };
        Ok(Some(ExecutionPlan::Batch { commands: vec![command] }))
    }
}

/// Runs one of the programs.
pub(super) struct RewordedProgram;

#[async_trait]
impl ShellProgram for RewordedProgram {
    fn called<'a>(&self, run: &'a ProgramRun<'_>) -> &'a str {
        run.args.first().map_or(run.name, String::as_str)
    }

    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let unknown = || Ending::refused("it is not for scripts");
        let [name, input, args @ ..] = run.args else { return Err(unknown()) };
        let known = NAMES.iter().find(|known| *known == name).ok_or_else(unknown)?;
        let mut argv = [std::slice::from_ref(name), args].concat();
        let reads = name == "rg" && drop_input_operand(&mut argv);
        let input = if input == HAS_INPUT || reads {
            ChildInput::Bytes(run.read_all_input().await?)
        } else {
            ChildInput::Empty
        };
        let is_find = name == "find";
        if is_find {
            encode_names(&mut argv);
        }
        let mut child = run.child(argv, input);
        child.encodes_names = is_find;
        child.without = Some(known);
        child.rewording = Some(Rewording::new(known));
        match run.run_child(child).await? {
            ChildEnd::Exited(status) => Ok(status),
            ChildEnd::TimedOut => Ok(1),
        }
    }
}

/// Encodes names and patterns like the file names that the child sees. Commands after `-exec` stay unchanged.
fn encode_names(argv: &mut [String]) {
    let is_action = |arg: &str| matches!(arg, "-exec" | "-execdir" | "-ok" | "-okdir");
    for arg in argv.iter_mut().take_while(|arg| !is_action(arg)) {
        *arg = encoded(arg.as_bytes());
    }
}

/// Drops a `-` at the end of a command line, which stands for the standard input. Tells whether there
/// was one.
fn drop_input_operand(argv: &mut Vec<String>) -> bool {
    let is_operand = match argv.as_slice() {
        [.., option, last] => last == "-" && !matches!(option.as_str(), "-f" | "--file" | "-e" | "--regexp"),
        _ => false,
    };
    // The first operand is a pattern.
    let is_input = is_operand && argv.len() > 2;
    if is_input {
        argv.pop();
    }
    is_input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_at_the_end_is_the_input_unless_an_option_takes_it() {
        let drops = |line: &str| drop_input_operand(&mut line.split(' ').map(str::to_owned).collect());
        assert!(drops("rg -n b -"));
        assert!(!drops("rg -f -"));
        assert!(!drops("rg -"));
    }
}
