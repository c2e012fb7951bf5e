//! The scenarios.

mod aborts;
mod compaction;
mod failures;
mod full_windows;
mod mcp;
mod prompts;
mod results;
mod sessions;
mod skills;
mod tasks;
mod tools;
mod vendors;
mod whole_runs;

use eyot_agent::standin::StandInTurn;
use serde_json::{Value, json};

use crate::scenario::Scenario;
pub use prompts::PIXEL;

/// Returns all scenarios.
pub fn all() -> Vec<Scenario> {
    let all = [
        prompts::scenarios(),
        tools::scenarios(),
        results::scenarios(),
        skills::scenarios(),
        compaction::scenarios(),
        full_windows::scenarios(),
        mcp::scenarios(),
        failures::scenarios(),
        aborts::scenarios(),
        tasks::scenarios(),
        sessions::scenarios(),
        vendors::scenarios(),
        whole_runs::scenarios(),
    ];
    all.into_iter().flatten().collect()
}

/// An answer that is a text.
fn text(text: &str) -> StandInTurn {
    StandInTurn::text(text)
}

/// An answer that is a tool call.
fn call(id: &str, tool: &str, arguments: Value) -> StandInTurn {
    StandInTurn::call(id, tool, arguments)
}

/// One prompt.
fn go() -> Value {
    json!([{"do": "prompt", "text": "go"}])
}

/// Two prompts.
fn twice() -> Value {
    json!([{"do": "prompt", "text": "go"}, {"do": "prompt", "text": "again"}])
}
