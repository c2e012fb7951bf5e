//! `sleep` and `yes`, which end with their command alone, and `setsid`.

use std::time::Duration;

use async_trait::async_trait;
use bashkit::{
    Builtin, BuiltinContext, Command, CommandContext, CommandStatus, ExecResult, ExecutionPlan, SubCommand,
};

use super::children::CommandSlot;

/// The bytes that `yes` writes at once.
const YES_BYTES: usize = 4096;
/// Longer than any command lives.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// `sleep`, which is listed as a task of its command.
pub(super) struct Sleep(pub CommandSlot);

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
        let children = self.0.children();
        let shells = children.as_ref().map(|children| children.shells());
        let _task = shells.and_then(|shells| shells.tasks.add_part(argv, shells.command));
        tokio::time::sleep(total.min(FOREVER)).await;
        Ok(ExecResult::ok(""))
    }
}

/// Reads a time: seconds, or a number with `s`, `m`, `h` or `d`.
pub(super) fn interval(text: &str) -> Option<Duration> {
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

pub(super) struct Yes;

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

/// Runs a command in a session of its own: here nothing has one.
pub(super) struct Setsid;

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
