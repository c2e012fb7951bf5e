//! Tests of the stand-ins with the vendors' own clients from npm, and of the models with the vendors' own servers.
//!
//! Without npm or the network, the tests of clients show as ignored, with the reason. So do the tests of servers without a key
//! in `EYOT_TEST_ANTHROPIC_KEY` or `EYOT_TEST_OPENAI_KEY`.

#[path = "../npm/mod.rs"]
mod npm;
mod real;

use std::time::Duration;

use eyot_agent::standin::{StandIn, StandInTurn};
use eyot_agent::{StopReason, TokenUsage};
use libtest_mimic::{Arguments, Failed};
use serde_json::{Value, json};

use npm::{NpmPackages, trial};

/// The program that asks for an answer.
const CLIENT: &str = "client.mjs";

const APIS: [&str; 3] = ["messages", "completions", "responses"];

/// A test case for one API.
type ClientCase = fn(&NpmPackages, &str) -> Result<(), Failed>;

const CASES: [(&str, ClientCase); 6] = [
    ("reads_text_and_calls", reads_text_and_calls),
    ("reads_a_turn_that_was_cut_short", reads_a_turn_that_was_cut_short),
    ("reads_a_refusal", reads_a_refusal),
    ("knows_a_failure_by_its_status", knows_a_failure_by_its_status),
    ("waits_and_asks_again", waits_and_asks_again),
    ("fails_where_the_stream_is_cut", fails_where_the_stream_is_cut),
];

fn main() {
    let arguments = Arguments::from_args();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vendors");
    let clients = NpmPackages::install(&arguments, "vendors-clients", sources, &[CLIENT]);
    let mut trials = real::trials();
    for api in APIS {
        for (name, case) in CASES {
            trials.push(trial(&format!("client_{api}_{name}"), &clients, move |clients| case(clients, api)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Returns the outcome of a client that asks a stand-in with these turns, with at most `tries` tries.
fn ask(clients: &NpmPackages, api: &str, tries: u32, turns: Vec<StandInTurn>) -> Result<Value, Failed> {
    let runtime = tokio::runtime::Runtime::new()?;
    let stand_in = runtime.block_on(async {
        if api == "messages" { StandIn::anthropic(turns).await } else { StandIn::openai(turns).await }
    })?;
    let output = clients.command(CLIENT).args([api, stand_in.url(), &tries.to_string()]).output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&out).map_err(|error| format!("{error}: {out}\n{err}").into())
}

fn reads_text_and_calls(clients: &NpmPackages, api: &str) -> Result<(), Failed> {
    let usage = TokenUsage { input: 20, output: 7, cache_read: 100, ..TokenUsage::default() };
    let turn = StandInTurn::empty()
        .and_thinking("first this, then that", "sig-1")
        .and_text("I read both.")
        .and_call("call_1", "read", json!({"path": "a.txt"}))
        .and_call("call_2", "read", json!({"path": "b.txt"}))
        .with_usage(usage);
    let read = ask(clients, api, 1, vec![turn])?;
    let answer = &read["answer"];
    same(&json!(read["deltas"].as_u64() > Some(5)), &json!(true))?;
    match api {
        "messages" => {
            same(&answer["content"][0]["signature"], &json!("sig-1"))?;
            same(&answer["content"][0]["thinking"], &json!("first this, then that"))?;
            same(&answer["content"][1]["text"], &json!("I read both."))?;
            same(&answer["content"][3]["input"], &json!({"path": "b.txt"}))?;
            same(&answer["stop_reason"], &json!("tool_use"))?;
            same(&answer["usage"]["output_tokens"], &json!(7))?;
            same(&answer["usage"]["cache_read_input_tokens"], &json!(100))
        }
        "completions" => {
            let message = &answer["choices"][0]["message"];
            same(&message["content"], &json!("I read both."))?;
            same(&message["tool_calls"][1]["function"]["arguments"], &json!("{\"path\":\"b.txt\"}"))?;
            same(&answer["choices"][0]["finish_reason"], &json!("tool_calls"))?;
            same(&answer["usage"]["prompt_tokens"], &json!(120))
        }
        _ => {
            same(&answer["output"][0]["encrypted_content"], &json!("sig-1"))?;
            same(&answer["output_text"], &json!("I read both."))?;
            same(&answer["output"][3]["arguments"], &json!("{\"path\":\"b.txt\"}"))?;
            same(&answer["status"], &json!("completed"))?;
            same(&answer["usage"]["input_tokens"], &json!(120))
        }
    }
}

fn reads_a_turn_that_was_cut_short(clients: &NpmPackages, api: &str) -> Result<(), Failed> {
    let turn = StandInTurn::text("so far").stopped_by(StopReason::Length);
    let read = ask(clients, api, 1, vec![turn])?;
    match api {
        "messages" => same(&read["answer"]["stop_reason"], &json!("max_tokens")),
        "completions" => same(&read["answer"]["choices"][0]["finish_reason"], &json!("length")),
        _ => same(&read["answer"]["incomplete_details"]["reason"], &json!("max_output_tokens")),
    }
}

fn reads_a_refusal(clients: &NpmPackages, api: &str) -> Result<(), Failed> {
    let turn = StandInTurn::text("I can't do that.").stopped_by(StopReason::Refusal);
    let read = ask(clients, api, 1, vec![turn])?;
    match api {
        "messages" => same(&read["answer"]["stop_reason"], &json!("refusal")),
        "completions" => same(&read["answer"]["choices"][0]["finish_reason"], &json!("content_filter")),
        _ => same(&read["answer"]["output"][0]["content"][0]["refusal"], &json!("I can't do that.")),
    }
}

fn knows_a_failure_by_its_status(clients: &NpmPackages, api: &str) -> Result<(), Failed> {
    let read = ask(clients, api, 1, vec![StandInTurn::overloaded()])?;
    same(&read["error"]["status"], &json!(529))?;
    same(&read["error"]["type"], &json!("overloaded_error"))
}

fn waits_and_asks_again(clients: &NpmPackages, api: &str) -> Result<(), Failed> {
    let turns = vec![
        StandInTurn::rate_limited(Duration::from_millis(50)),
        StandInTurn::server_error(),
        StandInTurn::text("at last"),
    ];
    let read = ask(clients, api, 3, turns)?;
    same(&json!(read["answer"].is_object()), &json!(true))
}

fn fails_where_the_stream_is_cut(clients: &NpmPackages, api: &str) -> Result<(), Failed> {
    let read = ask(clients, api, 1, vec![StandInTurn::text("a text that is long enough").cut()])?;
    same(&json!(read["error"].is_object()), &json!(true))
}

fn same(left: &Value, right: &Value) -> Result<(), Failed> {
    if left == right { Ok(()) } else { Err(format!("{left} is not {right}").into()) }
}
