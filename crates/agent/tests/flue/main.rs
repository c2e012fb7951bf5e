//! A scripted run through Flue's runtime (npm, 0.8.1) and through ours. Both must send the same requests and publish the same
//! events in the same order. Intended differences are removed below, and docs/agents.md gives the reasons.
//!
//! Without npm or the network, the test shows as ignored, with the reason.

#[path = "../npm/mod.rs"]
mod npm;

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;

use eyot::{SandboxPath, SandboxSpec};
use eyot_agent::standin::{StandIn, StandInTurn};
use eyot_agent::{
    AgentSandbox, HarnessOptions, ModelApi, PromptOptions, ProviderRegistration, Session, ShellOptions,
    Subagent, TaskOptions, init, register_provider, resolve_model,
};
use eyot_providers::memory::MemoryProvider;
use libtest_mimic::{Arguments, Failed};
use serde_json::{Value, json};

use npm::{NpmPackages, trial};

/// The program that plays the steps in Flue.
const PROGRAM: &str = "flue.mjs";

fn main() {
    let arguments = Arguments::from_args();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flue");
    let flue = NpmPackages::install(&arguments, "flue", sources, &[PROGRAM]);
    let name = "a_run_asks_the_model_the_same_and_tells_of_the_same_as_flue_s";
    libtest_mimic::run(&arguments, vec![trial(name, &flue, compare)]).exit();
}

/// The steps of the run.
fn steps() -> Value {
    json!([
        {"prompt": "go"},
        {"shell": "echo from the caller", "env": {"TOKEN": "secret"}},
        {"prompt": "count", "result": true},
        {"task": "alone"},
        {"prompt": "fail"},
    ])
}

/// The turns of the model.
fn script() -> Vec<StandInTurn> {
    let call = StandInTurn::call;
    vec![
        StandInTurn::text("Let me look at it.")
            .and_call("c1", "bash", json!({"command": "echo hi > a.txt"}))
            .and_call("c2", "nothing", json!({})),
        call("c3", "write", json!({"path": "dir/b.txt", "content": "one\ntwo\n"})),
        call("c4", "edit", json!({"path": "dir/b.txt", "oldText": "one", "newText": "1"})),
        call("c5", "read", json!({"path": "dir/b.txt"})).and_call("c6", "glob", json!({"pattern": "*.txt"})),
        call("c7", "bash", json!({"command": "echo out; echo err >&2; exit 3"})),
        call("c8", "task", json!({"prompt": "help", "agent": "helper"})),
        call("h1", "bash", json!({"command": "cat a.txt"})),
        StandInTurn::text("It says hi."),
        StandInTurn::text("That was all."),
        call("c9", "finish", json!({"n": "many"})),
        call("c10", "finish", json!({"n": 3})),
        StandInTurn::text("I am alone."),
        StandInTurn::failure(400, "invalid_request_error", "no"),
    ]
}

/// The calls whose answers are worded differently.
const OTHER_WORDS: [&str; 2] = ["c2", "c9"];

fn compare(flue: &NpmPackages) -> Result<(), Failed> {
    let runtime = tokio::runtime::Runtime::new()?;
    let theirs = runtime.block_on(StandIn::openai(script()))?;
    let their_events = play(flue, &theirs)?;
    let ours = runtime.block_on(StandIn::openai(script()))?;
    let our_events = runtime.block_on(run(&ours))?;
    let (their_requests, our_requests) = (requests(&theirs), requests(&ours));
    for (number, (their, our)) in their_requests.iter().zip(&our_requests).enumerate() {
        same(&format!("request {number}"), their, our)?;
    }
    same("the number of requests", &json!(their_requests.len()), &json!(our_requests.len()))?;
    same("the events", &shown(&their_events), &shown(&our_events))
}

fn same(what: &str, their: &Value, our: &Value) -> Result<(), Failed> {
    if their == our {
        return Ok(());
    }
    let text = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    Err(format!("{what}\nFlue:\n{}\nours:\n{}", text(their), text(our)).into())
}

/// Plays the steps in Flue, and returns its events.
fn play(flue: &NpmPackages, stand_in: &StandIn) -> Result<Vec<Value>, Failed> {
    let mut command = flue.command(PROGRAM);
    command.arg(stand_in.url()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut input = child.stdin.take().ok_or("no standard input")?;
    input.write_all(steps().to_string().as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&out).map_err(|error| format!("{error}: {out}\n{err}").into())
}

/// Plays the steps in our runtime, and returns its events.
async fn run(stand_in: &StandIn) -> Result<Vec<Value>, Failed> {
    let mut vendor = ProviderRegistration::new(ModelApi::OpenaiCompletions, stand_in.url());
    vendor.api_key = Some("sk-standin".into());
    register_provider("standin", vendor);
    let model = resolve_model("standin/m")?;
    let helper = Subagent {
        name: "helper".to_owned(),
        instructions: Some("Help.".to_owned()),
        model: Some(Arc::clone(&model)),
        ..Subagent::default()
    };
    let spec = SandboxSpec { workdir: Some(SandboxPath::parse("/home/user")?), ..SandboxSpec::default() };
    let harness = init(HarnessOptions {
        model: Some(model),
        instructions: Some("Be brief.".to_owned()),
        sandbox: AgentSandbox::Provider(Arc::new(MemoryProvider::default()), Box::new(spec)),
        subagents: vec![helper],
        ..HarnessOptions::default()
    })
    .await?;
    let mut heard = harness.events();
    let session = harness.session().await?;
    for step in steps().as_array().into_iter().flatten() {
        take(&session, step).await?;
    }
    let mut events = Vec::new();
    while let Ok(event) = heard.try_recv() {
        events.push(serde_json::to_value(&*event)?);
    }
    Ok(events)
}

async fn take(session: &Session, step: &Value) -> Result<(), Failed> {
    let text = |name: &str| step[name].as_str();
    if let Some(command) = text("shell") {
        let env = serde_json::from_value(step["env"].clone())?;
        session.shell(command, ShellOptions { env, ..ShellOptions::default() }).await?;
    } else if let Some(task) = text("task") {
        session.task(task, TaskOptions::default()).await?;
    } else if let Some(prompt) = text("prompt") {
        let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
        let result = step["result"].as_bool().map(|_| schema);
        let done = session.prompt(prompt, PromptOptions { result, ..PromptOptions::default() }).await;
        // The last one fails, as it should.
        if prompt != "fail" {
            done?;
        }
    }
    Ok(())
}

/// The messages of each request, and the names of its tools.
fn requests(stand_in: &StandIn) -> Vec<Value> {
    let requests = stand_in.requests().into_iter().map(|request| {
        let mut messages = request.body["messages"].clone();
        messages.as_array_mut().into_iter().flatten().for_each(take_out_what_differs);
        let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<Value> = tools.iter().map(|tool| tool["function"]["name"].clone()).collect();
        json!({"messages": messages, "tools": names})
    });
    requests.collect()
}

/// Removes intended differences from a message: the texts of errors, ids that are new each time, and whether a user's text is
/// a string or a single part, which is the same to a model.
fn take_out_what_differs(message: &mut Value) {
    if message["role"] == "user" && message["content"].is_string() {
        message["content"] = json!([{"type": "text", "text": message["content"].take()}]);
    }
    let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
    if OTHER_WORDS.contains(&id.as_str()) {
        message["content"] = json!("(what went wrong)");
    }
    if is_uuid(&id) {
        message["tool_call_id"] = json!("(a new id)");
    }
    for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
        if call["id"].as_str().is_some_and(is_uuid) {
            call["id"] = json!("(a new id)");
        }
        // The order of fields in an object is not guaranteed.
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        call["function"]["arguments"] = serde_json::from_str(arguments).unwrap_or_default();
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().filter(|byte| *byte == b'-').count() == 4
}

/// Returns the comparable parts of the events. The answers of one turn arrive in any order, and our runtime holds back the end
/// of a piece of text where a secret may begin.
fn shown(events: &[Value]) -> Value {
    const KINDS: [&str; 17] = [
        "run_start",
        "text_delta",
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "tool_start",
        "tool_call",
        "turn",
        "task_start",
        "task",
        "compaction_start",
        "compaction",
        "operation_start",
        "operation",
        "log",
        "idle",
        "run_end",
    ];
    const FIELDS: [&str; 7] =
        ["type", "toolName", "isError", "operationKind", "stopReason", "text", "prompt"];
    let told = events.iter().filter(|event| KINDS.contains(&event["type"].as_str().unwrap_or_default()));
    let mut shown: Vec<Value> = told
        .map(|event| {
            let fields = FIELDS.iter().filter(|field| !event[**field].is_null());
            let mut fields: serde_json::Map<String, Value> =
                fields.map(|field| ((*field).to_owned(), event[*field].clone())).collect();
            let id = event["toolCallId"].as_str().unwrap_or_default();
            fields.insert("call".to_owned(), json!(if is_uuid(id) { "(a new id)" } else { id }));
            fields.insert(
                "inTask".to_owned(),
                json!(
                    !event["parentSession"].is_null()
                        && event["type"] != "task"
                        && event["type"] != "task_start"
                ),
            );
            Value::Object(fields)
        })
        .collect();
    shown.dedup_by(|piece, before| {
        let goes_on = piece["type"] == "text_delta" && before["type"] == "text_delta";
        if goes_on {
            let text =
                [&before["text"], &piece["text"]].map(|text| text.as_str().unwrap_or_default()).concat();
            before["text"] = json!(text);
        }
        goes_on
    });
    let is_answer = |event: &Value| event["type"] == "tool_call";
    shown.chunk_by_mut(|one, next| is_answer(one) && is_answer(next)).for_each(|answers| {
        answers.sort_by_key(|answer| answer["call"].to_string());
    });
    Value::Array(shown)
}
