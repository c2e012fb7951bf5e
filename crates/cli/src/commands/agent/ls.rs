//! `eyot agent ls`: lists the runs of agents.

use std::sync::Arc;

use eyot_agent::{AgentStore, EngineStore, RunFilter, RunRecord, RunStatus};
use serde::Serialize;

use super::handler::{AGENT, AgentTask};
use crate::args::AgentLsArgs;
use crate::context::Context;
use crate::durations::moment;
use crate::errors::Failure;
use crate::table::Table;

/// The number of characters of a task that are shown.
const SHOWN_CHARS: usize = 60;

pub async fn run(args: &AgentLsArgs, context: &Context) -> Result<u8, Failure> {
    context.refuse_server("the runs of agents are in this host's state folder")?;
    let engine = context.engine().await?;
    let store = EngineStore::new(Arc::clone(engine.store()));
    let filter =
        RunFilter { limit: Some(args.limit), agent_name: Some(AGENT.to_owned()), ..RunFilter::default() };
    let (runs, abandoned) = (store.runs(filter).await?, store.abandoned_runs().await?);
    let runs: Vec<ListedRun> = runs
        .into_iter()
        .map(|run| ListedRun { is_interrupted: abandoned.contains(&run.run_id), run })
        .collect();
    if context.output.json {
        context.output.value(&runs)?;
        return Ok(0);
    }
    let mut table = Table::new(["ID", "STARTED", "STATUS", "MODEL", "TASK"]);
    for run in &runs {
        table.row(row(run));
    }
    context.output.text(&table.render())?;
    Ok(0)
}

/// A run of the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedRun {
    #[serde(flatten)]
    run: RunRecord,
    /// Set if the process is gone: `--continue` resumes the run.
    is_interrupted: bool,
}

fn row(listed: &ListedRun) -> [String; 5] {
    let run = &listed.run;
    let task = AgentTask::of_payload(&run.payload).ok();
    let status = match run.status {
        RunStatus::Active if listed.is_interrupted => "interrupted",
        RunStatus::Active => "active",
        RunStatus::Completed => "completed",
        RunStatus::Errored => "errored",
    };
    let started = moment(i64::try_from(run.started_ms).unwrap_or(i64::MAX));
    let (model, text) = task.map_or_else(Default::default, |task| (task.model, task.task));
    let text: String = text.lines().next().unwrap_or_default().chars().take(SHOWN_CHARS).collect();
    [run.instance_id.clone(), started, status.to_owned(), model, text]
}
