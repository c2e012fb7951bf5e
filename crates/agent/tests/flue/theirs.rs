//! Flue's runtime plays a scenario.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use eyot_agent::ModelApi;
use eyot_agent::standin::StandIn;
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::npm::NpmPackages;
use crate::scenario::Scenario;

/// The program that plays scenarios.
pub const PROGRAM: &str = "flue.mjs";

/// Processes of the program that wait for a scenario. To start one takes longer than to play one.
static IDLE: Mutex<Vec<FlueProcess>> = Mutex::new(Vec::new());

/// A process of the program. It ends with this one, because its input does.
struct FlueProcess {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _child: Child,
}

/// Plays a scenario, and returns its events and the outcome of each step.
pub fn play(flue: &NpmPackages, scenario: &Scenario, stand_in: &StandIn) -> Result<Value, Failed> {
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut process = idle.map_or_else(|| FlueProcess::start(flue), Ok)?;
    let (provider, model) = match scenario.api {
        ModelApi::AnthropicMessages => ("anthropic", "claude-haiku-4-5"),
        ModelApi::OpenaiResponses => ("openai", "gpt-5"),
        _ => ("standin", "m"),
    };
    let mut setup = scenario.setup.clone();
    setup["vendor"] = json!(scenario.api);
    setup["provider"] = json!(provider);
    setup["model"] = json!(model);
    setup["url"] = json!(stand_in.url());
    let played = process.ask(&json!({"setup": setup, "steps": scenario.steps}))?;
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(process);
    match played["broken"].as_str() {
        None => Ok(played),
        Some(error) => Err(format!("Flue can't play it: {error}").into()),
    }
}

impl FlueProcess {
    fn start(flue: &NpmPackages) -> Result<Self, Failed> {
        let mut command = flue.command(PROGRAM);
        // Flue tells the model the day of its machine's time zone.
        command.env("TZ", "UTC");
        // Flue writes what goes wrong in a scenario there, too.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (input, output) = (input.ok_or("no standard input")?, output.ok_or("no standard output")?);
        Ok(Self { input, output: BufReader::new(output), _child: child })
    }

    fn ask(&mut self, scenario: &Value) -> Result<Value, Failed> {
        writeln!(self.input, "{scenario}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(|error| format!("Flue's program: {error}: {line}").into())
    }
}
