//! The scenarios.

mod compaction;
mod failures;
mod prompts;
mod results;
mod sessions;
mod skills;
mod tasks;
mod tools;
mod vendors;
mod whole_runs;

use crate::scenario::Scenario;

/// Returns all scenarios.
pub fn all() -> Vec<Scenario> {
    let all = [
        prompts::scenarios(),
        tools::scenarios(),
        results::scenarios(),
        skills::scenarios(),
        compaction::scenarios(),
        failures::scenarios(),
        tasks::scenarios(),
        sessions::scenarios(),
        vendors::scenarios(),
        whole_runs::scenarios(),
    ];
    all.into_iter().flatten().collect()
}
