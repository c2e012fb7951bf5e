//! Scenarios that Flue's runtime (npm, 0.8.1) and ours play. Both must send the same requests, publish the same events in the same
//! order, and give the same outcomes. Intended differences are named where a scenario has them, and docs/agents.md lists them with
//! their reasons.
//!
//! Without npm or the network, the tests show as ignored, with the reason.

mod comparison;
#[path = "../npm/mod.rs"]
mod npm;
mod ours;
mod runs;
mod scenario;
mod transcript;

use std::io::Write;
use std::process::Stdio;

use eyot_agent::ModelApi;
use eyot_agent::standin::{StandIn, StandInTurn};
use libtest_mimic::{Arguments, Failed};
use serde_json::{Value, json};

use npm::{NpmPackages, trial};
use scenario::Scenario;
use transcript::{mask_summary, transcript, without_own_limits, without_repetitions, without_skills};

/// The program that plays scenarios in Flue.
const PROGRAM: &str = "flue.mjs";

fn main() {
    let arguments = Arguments::from_args();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flue");
    let flue = NpmPackages::install(&arguments, "flue", sources, &[PROGRAM]);
    let trials = runs::all().into_iter().map(|scenario| {
        let name = scenario.name;
        trial(name, &flue, move |flue| check(flue, &scenario))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// Plays a scenario in both runtimes, and compares what they did.
fn check(flue: &NpmPackages, scenario: &Scenario) -> Result<(), Failed> {
    let runtime = tokio::runtime::Runtime::new()?;
    let theirs = runtime.block_on(stand_in(scenario, scenario.turns.clone()))?;
    let mut their = transcript(&theirs, play(flue, scenario, &theirs)?);
    let ours = runtime.block_on(stand_in(scenario, scenario.our_turns.as_ref().unwrap_or(&scenario.turns).clone()))?;
    let mut our = transcript(&ours, runtime.block_on(ours::play(scenario, &ours))?);
    if scenario.our_turns.is_some() {
        without_repetitions(&mut our);
    }
    without_own_limits(&their, &mut our);
    without_skills(&mut our);
    for transcript in [&mut their, &mut our] {
        scenario.summaries.iter().for_each(|request| mask_summary(transcript, request));
    }
    if let Some(folder) = std::env::var_os("EYOT_FLUE_TRANSCRIPTS") {
        let folder = std::path::Path::new(&folder);
        std::fs::write(folder.join(format!("{}.theirs.json", scenario.name)), serde_json::to_string_pretty(&their)?)?;
        std::fs::write(folder.join(format!("{}.ours.json", scenario.name)), serde_json::to_string_pretty(&our)?)?;
    }
    comparison::compare(their, our, &scenario.differences)
}

async fn stand_in(scenario: &Scenario, turns: Vec<StandInTurn>) -> std::io::Result<StandIn> {
    match scenario.api {
        ModelApi::AnthropicMessages => StandIn::anthropic(turns).await,
        _ => StandIn::openai(turns).await,
    }
}

/// Plays a scenario in Flue, and returns its events and the outcome of each step.
fn play(flue: &NpmPackages, scenario: &Scenario, stand_in: &StandIn) -> Result<Value, Failed> {
    let mut command = flue.command(PROGRAM);
    command.arg(stand_in.url()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut input = child.stdin.take().ok_or("no standard input")?;
    let mut setup = scenario.setup.clone();
    setup["vendor"] = json!(scenario.api);
    let (provider, model) = match scenario.api {
        ModelApi::AnthropicMessages => ("anthropic", "claude-haiku-4-5"),
        ModelApi::OpenaiResponses => ("openai", "gpt-5"),
        _ => ("standin", "m"),
    };
    setup["provider"] = json!(provider);
    setup["model"] = json!(model);
    input.write_all(json!({"setup": setup, "steps": scenario.steps}).to_string().as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&out).map_err(|error| format!("{error}: {out}\n{err}").into())
}
