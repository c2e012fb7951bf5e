//! Scenarios that Flue's runtime (npm, 0.8.1) and ours play. Both must send the same requests, publish the same events in the same
//! order, and give the same outcomes. Intended differences are named where a scenario has them, and docs/agents.md lists them with
//! their reasons.
//!
//! With `EYOT_FLUE_TRANSCRIPTS=FOLDER`, what is compared is written there. Without npm or the network, the tests show as ignored, with the reason.

mod comparison;
mod mcp_server;
#[path = "../npm/mod.rs"]
mod npm;
mod ours;
mod pointers;
mod runs;
mod scenario;
mod theirs;
mod transcript;

use std::path::Path;

use eyot_agent::ModelApi;
use eyot_agent::standin::{StandIn, StandInTurn};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};

use npm::{NpmPackages, trial};
use scenario::Scenario;
use transcript::{mask_summary, transcript, without_repetitions, without_skills};

fn main() {
    let arguments = Arguments::from_args();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flue");
    let flue = NpmPackages::install(&arguments, "flue", sources, &[theirs::PROGRAM]);
    let trials = runs::all().into_iter().map(|scenario| {
        let name = scenario.name;
        trial(name, &flue, move |flue| check(flue, &scenario))
    });
    let listed = Trial::test("every_intended_difference_is_in_the_docs", find_rows);
    libtest_mimic::run(&arguments, trials.chain([listed]).collect()).exit();
}

/// Checks that the tables in docs/agents.md have the rows of all scenarios.
fn find_rows() -> Result<(), Failed> {
    let docs = include_str!("../../../../docs/agents.md");
    let is_missing = |row: &&str| !docs.contains(&format!("\n| {row} | "));
    let missing: Vec<&str> = runs::all().iter().flat_map(|run| run.rows.clone()).filter(is_missing).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("docs/agents.md has no rows {missing:?}").into()) }
}

/// Plays a scenario in both runtimes, and compares what they did.
fn check(flue: &NpmPackages, scenario: &Scenario) -> Result<(), Failed> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut scenario = scenario.clone();
    if scenario.setup["mcp"].is_string() {
        scenario.setup["mcpUrl"] = json!(mcp_server::serve(&runtime)?);
    }
    let scenario = &scenario;
    let model = runtime.block_on(stand_in(scenario, scenario.turns.clone()))?;
    let mut their = transcript(&model, theirs::play(flue, scenario, &model)?, scenario.is_parallel);
    let turns = scenario.our_turns.as_ref().unwrap_or(&scenario.turns).clone();
    let model = runtime.block_on(stand_in(scenario, turns))?;
    let played = runtime.block_on(ours::play(scenario, &model))?;
    let mut our = transcript(&model, played, scenario.is_parallel);
    if scenario.our_turns.is_some() {
        without_repetitions(&mut our);
    }
    without_skills(&mut our);
    for transcript in [&mut their, &mut our] {
        scenario.summaries.iter().for_each(|request| mask_summary(transcript, request));
    }
    write(scenario, "theirs", &their)?;
    write(scenario, "ours", &our)?;
    comparison::compare(their, our, &scenario.differences)
}

/// Writes a transcript into the folder in `EYOT_FLUE_TRANSCRIPTS`, if it names one.
fn write(scenario: &Scenario, whose: &str, transcript: &Value) -> Result<(), Failed> {
    if let Some(folder) = std::env::var_os("EYOT_FLUE_TRANSCRIPTS") {
        let file = Path::new(&folder).join(format!("{}.{whose}.json", scenario.name));
        std::fs::write(file, serde_json::to_string_pretty(transcript)?)?;
    }
    Ok(())
}

async fn stand_in(scenario: &Scenario, turns: Vec<StandInTurn>) -> std::io::Result<StandIn> {
    match scenario.api {
        ModelApi::AnthropicMessages => StandIn::anthropic(turns).await,
        _ => StandIn::openai(turns).await,
    }
}
