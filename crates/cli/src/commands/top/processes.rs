//! The processes of one sandbox.

use std::collections::HashMap;
use std::time::Instant;

use eyot::{LiveProcess, Sandbox};
use serde::Serialize;

use super::{descending, json_row, mebibytes, percent, percent_cell, unknown};
use crate::args::TopSort;
use crate::errors::Failure;
use crate::table::Table;

/// A sandbox, and the last sample of its processes.
pub struct SandboxProcesses {
    sandbox: Sandbox,
    last: Option<(Instant, HashMap<u32, u64>)>,
}

/// A process in one sample.
#[derive(Debug, Serialize)]
struct ProcessSample {
    cpu_percent: Option<f64>,
    #[serde(flatten)]
    process: LiveProcess,
}

impl SandboxProcesses {
    /// Starts without a sample.
    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, last: None }
    }

    /// Samples the sandbox's processes.
    pub async fn look(&mut self, sort: TopSort, json: bool) -> Result<String, Failure> {
        let found = self.sandbox.live_processes().await?;
        let now = Instant::now();
        let times =
            found.processes.iter().filter_map(|process| Some((process.pid, process.cpu_ms?))).collect();
        let last = self.last.replace((now, times));
        let row = |process: LiveProcess| {
            let cpu_percent = last.as_ref().and_then(|(at, times)| {
                // What was not there is new: all that it used was used since.
                let before = times.get(&process.pid).copied().unwrap_or_default();
                percent(before, process.cpu_ms?, now - *at)
            });
            ProcessSample { cpu_percent, process }
        };
        let mut rows: Vec<ProcessSample> = found.processes.into_iter().map(row).collect();
        rows.sort_by(|one, other| order(sort, one, other).then(one.process.pid.cmp(&other.process.pid)));
        if json {
            return rows.iter().map(json_row).collect();
        }
        let more = if found.truncated { "… and more\n" } else { "" };
        Ok(format!("{}{more}", table(&rows)))
    }
}

/// The cell of a processor time.
fn seconds(cpu_ms: Option<u64>) -> String {
    cpu_ms.map_or_else(unknown, |cpu_ms| format!("{:.2}s", cpu_ms as f64 / 1000.0))
}

fn order(sort: TopSort, one: &ProcessSample, other: &ProcessSample) -> std::cmp::Ordering {
    match sort {
        TopSort::Cpu => descending(one.cpu_percent, other.cpu_percent),
        TopSort::Memory => other.process.memory_bytes.cmp(&one.process.memory_bytes),
        TopSort::Age => other.process.cpu_ms.cmp(&one.process.cpu_ms),
        TopSort::Name => std::cmp::Ordering::Equal,
    }
}

fn table(rows: &[ProcessSample]) -> String {
    let mut table = Table::new(["PID", "USER", "STATE", "CPU%", "TIME", "MEMORY", "COMMAND"]);
    for ProcessSample { cpu_percent, process } in rows {
        table.row([
            process.pid.to_string(),
            process.user.clone(),
            process.state.to_string(),
            percent_cell(*cpu_percent),
            seconds(process.cpu_ms),
            mebibytes(process.memory_bytes),
            process.command.clone(),
        ]);
    }
    table.render()
}
