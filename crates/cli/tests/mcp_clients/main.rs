//! `eyot mcp` with real clients from npm: the official TypeScript SDK, and the MCP inspector's
//! command line. Without npm or the network the tests show as ignored, with the reason; any other
//! failure to install them is a failure.

#[path = "../../../agent/tests/npm/mod.rs"]
mod npm;
mod server;

use std::process::{Command, Output};

use libtest_mimic::{Arguments, Failed, Trial};

use npm::{Missing, NpmPackages, trial};
use server::{Home, Http, TOKEN};

/// The program that drives the TypeScript SDK.
const SDK: &str = "sdk.mjs";

/// The cases of `sdk.mjs` that are the same over stdio and HTTP.
const SDK_CASES: &[&str] = &[
    "lists_the_tools_and_calls_each",
    "tells_of_progress",
    "a_cancelled_call_kills_the_command",
    "what_goes_wrong_is_a_result_and_an_unknown_tool_an_error",
    "two_sessions_do_not_see_each_other",
    "calls_run_side_by_side",
    "a_call_that_runs_does_not_keep_the_session",
];

fn main() {
    let arguments = Arguments::from_args();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/clients");
    let clients = NpmPackages::install(&arguments, "mcp-clients", sources, &[SDK]);
    libtest_mimic::run(&arguments, trials(&clients)).exit();
}

fn trials(clients: &Result<NpmPackages, Missing>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for case in SDK_CASES {
        trials.push(trial(&format!("sdk_stdio_{case}"), clients, |clients| sdk_stdio(clients, case)));
        trials.push(trial(&format!("sdk_http_{case}"), clients, |clients| sdk_http(clients, case, TOKEN)));
    }
    trials.push(trial("sdk_http_a_wrong_token_is_refused", clients, |clients| {
        sdk_http(clients, "a_wrong_token_is_refused", "not-the-token-of-the-tests")
    }));
    trials.push(trial("inspector_finds_nothing_wrong_with_the_tools", clients, inspect_tools));
    trials.push(trial("inspector_calls_by_stdio", clients, inspector_by_stdio));
    trials.push(trial("inspector_calls_by_http", clients, inspector_by_http));
    trials
}

/// The MCP inspector without its user interface.
fn inspector(clients: &NpmPackages) -> Command {
    let mut command = clients.command("node_modules/.bin/mcp-inspector");
    command.arg("--cli");
    command
}

fn sdk_stdio(clients: &NpmPackages, case: &str) -> Result<(), Failed> {
    let home = Home::new()?;
    let mut command = clients.command(SDK);
    succeeded(&home.around(command.args([case, "stdio", server::EYOT])).output()?)?;
    home.until_empty()
}

fn sdk_http(clients: &NpmPackages, case: &str, token: &str) -> Result<(), Failed> {
    let home = Home::new()?;
    let server = Http::start(&home)?;
    let mut command = clients.command(SDK);
    succeeded(&home.around(command.args([case, "http", &server.url, token])).output()?)?;
    // The sessions are deleted: nothing waits for the server's end.
    home.until_empty()?;
    server.stop()
}

fn inspect_tools(clients: &NpmPackages) -> Result<(), Failed> {
    let home = Home::new()?;
    let mut command = inspector(clients);
    command.args([server::EYOT, "mcp", "--method", "tools/list", "--strict"]);
    let output = home.around(&mut command).output()?;
    let tools = json(&output)?;
    let count = tools["tools"].as_array().map_or(0, Vec::len);
    ensure(count == 8, format!("{count} tools"))
}

fn inspector_by_stdio(clients: &NpmPackages) -> Result<(), Failed> {
    let home = Home::new()?;
    let mut command = inspector(clients);
    command.args([server::EYOT, "mcp"]).args(shell_call());
    let answer = json(&home.around(&mut command).output()?)?;
    ensure(answer["structuredContent"]["stdout"] == "6 x 7 = 42\n", answer.to_string())?;
    home.until_empty()
}

fn inspector_by_http(clients: &NpmPackages) -> Result<(), Failed> {
    let home = Home::new()?;
    let server = Http::start(&home)?;
    let mut command = inspector(clients);
    command.arg(&server.url).args(shell_call()).args(["--header", &format!("Authorization: Bearer {TOKEN}")]);
    let answer = json(&home.around(&mut command).output()?)?;
    ensure(answer["structuredContent"]["stdout"] == "6 x 7 = 42\n", answer.to_string())?;
    // It may leave without a word; the server's end destroys what is left of it.
    server.stop()?;
    home.until_empty()
}

fn shell_call() -> [&'static str; 6] {
    ["--method", "tools/call", "--tool-name", "shell", "--tool-arg", "command=echo 6 x 7 = $((6*7))"]
}

fn succeeded(output: &Output) -> Result<(), Failed> {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure(output.status.success(), format!("{}\n{out}\n{err}", output.status))
}

fn json(output: &Output) -> Result<serde_json::Value, Failed> {
    succeeded(output)?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).map_err(|error| format!("{error}: {text}").into())
}

/// Returns an error with the message unless the condition holds.
fn ensure(condition: bool, message: impl Into<String>) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message.into().into()) }
}

/// Returns the command of a program by its path, with only the environment that programs need.
fn program(path: &std::path::Path) -> Command {
    let mut command = Command::new(path);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}
