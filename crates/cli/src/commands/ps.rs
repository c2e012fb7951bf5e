//! `eyot ps`: lists the started processes.

use eyot::{ExitStatus, ProcessInfo, ProcessStatus};

use crate::args::PsArgs;
use crate::context::Context;
use crate::durations::{age, moment, since};
use crate::errors::Failure;
use crate::table::Table;

pub async fn run(args: &PsArgs, context: &Context) -> Result<u8, Failure> {
    let processes = context.sandbox(&args.name).await?.processes().await?;
    match (context.output.json, context.output.quiet) {
        (true, _) => context.output.value(&processes)?,
        (false, true) => {
            let ids: String = processes.iter().map(|process| format!("{}\n", process.id)).collect();
            context.output.text(&ids)?;
        }
        (false, false) => context.output.text(&table(&processes))?,
    }
    Ok(0)
}

fn table(processes: &[ProcessInfo]) -> String {
    let mut table = Table::new(["ID", "PID", "STATUS", "STARTED", "AGE", "COMMAND"]);
    for process in processes {
        table.row([
            process.id.to_string(),
            process.pid.to_string(),
            status(process),
            moment(process.started_ms),
            age(since(process.started_ms)),
            process.command.clone(),
        ]);
    }
    table.render()
}

fn status(process: &ProcessInfo) -> String {
    match process.status {
        ProcessStatus::Running => "running".to_owned(),
        ProcessStatus::Ended(_) if process.timed_out => "timed out".to_owned(),
        ProcessStatus::Ended(ExitStatus::Exited(code)) => format!("exited {code}"),
        ProcessStatus::Ended(ExitStatus::Signaled(signal)) => format!("signal {signal}"),
        ProcessStatus::Ended(ExitStatus::OutOfMemory) => "out of memory".to_owned(),
    }
}
