//! The resources that every sandbox uses.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyot::{Enforcement, Sandbox, SandboxInfo, SandboxProvider, SandboxStatus, Usage};
use futures_util::future::join_all;
use serde::Serialize;

use super::{descending, json_row, mebibytes, percent, percent_cell, unknown};
use crate::args::TopSort;
use crate::commands::ls::status;
use crate::durations::{age, since};
use crate::errors::Failure;
use crate::provider::memory_limit_mib;
use crate::sandbox_names::SandboxNames;
use crate::table::Table;

/// The time in which a sandbox must report what it uses: one that hangs must not hold up the
/// others.
const PATIENCE: Duration = Duration::from_secs(2);

/// All sandboxes, and the last sample of each.
pub struct AllSandboxes {
    provider: Arc<dyn SandboxProvider>,
    known: HashMap<String, SampledSandbox>,
}

/// A sandbox with its last sample.
struct SampledSandbox {
    sandbox: Sandbox,
    last: Option<(Instant, u64)>,
}

/// A sandbox in one sample.
#[derive(Debug, Serialize)]
struct SandboxSample {
    name: String,
    id: String,
    status: SandboxStatus,
    cpu_percent: Option<f64>,
    memory_limit_bytes: Option<u64>,
    age_ms: u64,
    #[serde(flatten)]
    usage: Usage,
}

impl AllSandboxes {
    /// Starts without a sample.
    pub fn new(provider: Arc<dyn SandboxProvider>) -> Self {
        Self { provider, known: HashMap::new() }
    }

    /// Samples all sandboxes at once.
    pub async fn look(&mut self, sort: TopSort, names: &SandboxNames, json: bool) -> Result<String, Failure> {
        let all = self.provider.list().await?;
        // Who is gone is forgotten, and its connection closed.
        let mut known = std::mem::take(&mut self.known);
        let looks = all.into_iter().map(|info| {
            let known = known.remove(info.id.as_str());
            look_at(self.provider.as_ref(), info, names, known)
        });
        let mut rows = Vec::new();
        for (row, known) in join_all(looks).await {
            if let Some(known) = known {
                self.known.insert(row.id.clone(), known);
            }
            rows.push(row);
        }
        rows.sort_by(|one, other| order(sort, one, other).then_with(|| one.name.cmp(&other.name)));
        if json { rows.iter().map(json_row).collect() } else { Ok(table(&rows)) }
    }
}

async fn look_at(
    provider: &dyn SandboxProvider,
    info: SandboxInfo,
    names: &SandboxNames,
    known: Option<SampledSandbox>,
) -> (SandboxSample, Option<SampledSandbox>) {
    let mut row = SandboxSample {
        name: names.shown(&info),
        id: info.id.to_string(),
        status: info.status,
        cpu_percent: None,
        memory_limit_bytes: None,
        age_ms: since(info.created_ms),
        usage: Usage::default(),
    };
    if info.status != SandboxStatus::Running {
        return (row, None);
    }
    // One that ends meanwhile, or does not answer, has a row without figures.
    let Ok(Ok((mut known, usage))) = tokio::time::timeout(PATIENCE, measure(provider, &row.id, known)).await
    else {
        return (row, None);
    };
    let now = Instant::now();
    if let (Some((at, before)), Some(cpu_ms)) = (known.last, usage.cpu_ms) {
        row.cpu_percent = percent(before, cpu_ms, now - at);
    }
    known.last = usage.cpu_ms.map(|cpu_ms| (now, cpu_ms));
    row.memory_limit_bytes = memory_limit(&known.sandbox);
    row.usage = usage;
    (row, Some(known))
}

async fn measure(
    provider: &dyn SandboxProvider,
    id: &str,
    known: Option<SampledSandbox>,
) -> eyot::Result<(SampledSandbox, Usage)> {
    let known = match known {
        Some(known) => known,
        None => SampledSandbox { sandbox: Sandbox::open(provider, id).await?, last: None },
    };
    let usage = known.sandbox.usage().await?;
    Ok((known, usage))
}

/// Returns the memory limit, if it is enforced.
fn memory_limit(sandbox: &Sandbox) -> Option<u64> {
    let held = &sandbox.isolation().limits;
    let limit = memory_limit_mib(&sandbox.info().spec.limits, held);
    limit.filter(|_| held.memory != Enforcement::None).map(|mib| mib << 20)
}

fn order(sort: TopSort, one: &SandboxSample, other: &SandboxSample) -> std::cmp::Ordering {
    match sort {
        TopSort::Cpu => descending(one.cpu_percent, other.cpu_percent),
        TopSort::Memory => descending(one.usage.memory_bytes, other.usage.memory_bytes),
        TopSort::Name => one.name.cmp(&other.name),
        TopSort::Age => other.age_ms.cmp(&one.age_ms),
    }
}

fn table(rows: &[SandboxSample]) -> String {
    let mut table =
        Table::new(["NAME", "STATUS", "CPU%", "MEMORY", "PEAK", "LIMIT", "PIDS", "DISK", "AGE", "IDLE"]);
    for row in rows {
        let usage = &row.usage;
        table.row([
            row.name.clone(),
            status(row.status).to_owned(),
            percent_cell(row.cpu_percent),
            mebibytes(usage.memory_bytes),
            mebibytes(usage.memory_peak_bytes),
            mebibytes(row.memory_limit_bytes),
            usage.processes.map_or_else(unknown, |count| count.to_string()),
            mebibytes(usage.disk_bytes),
            age(row.age_ms),
            usage.idle_ms.map_or_else(unknown, age),
        ]);
    }
    table.render()
}
