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
    ];
    all.into_iter().flatten().collect()
}
