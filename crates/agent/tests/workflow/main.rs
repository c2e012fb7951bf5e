//! A workflow of eight steps with two native sandboxes: one builds a site, and the other serves it. Stand-ins for the vendors'
//! HTTP APIs play the model, with everything that goes wrong in practice: overload, rate limits, an answer that is cut off,
//! arguments that are not JSON, and an answer that is too long.

use std::path::Path;
use std::time::Duration;

use eyot_agent::standin::{StandIn, StandInTurn};
use eyot_agent::{
    AgentSandbox, ChatMessage, HarnessOptions, ModelApi, PromptOptions, ProviderRegistration, Session,
    StopReason, init, register_provider, resolve_model,
};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_native::{NativeOptions, NativeProvider};
use eyot_tools::toolset;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn main() {
    let apis = [
        ("anthropic_messages", ModelApi::AnthropicMessages),
        ("openai_chat_completions", ModelApi::OpenaiCompletions),
        ("openai_responses", ModelApi::OpenaiResponses),
    ];
    let missing = ["cc", "python3"].into_iter().find(|program| !Path::new("/usr/bin").join(program).exists());
    let trials = apis.map(|(name, api)| {
        let trial = Trial::test(
            format!("an_agent_builds_in_one_sandbox_and_serves_from_another::{name}"),
            move || {
                let runtime = tokio::runtime::Runtime::new()?;
                runtime.block_on(workflow(name, api))
            },
        );
        match missing {
            None => trial,
            Some(program) => trial.with_kind(format!("there is no {program} here")).with_ignored_flag(true),
        }
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}

const BUILD: &str = "mkdir -p app/src app/dist && cd app && \
    printf '%s\\n' '#include <stdio.h>' 'int main(void) { puts(\"<h1>built</h1>\"); return 0; }' > src/page.c && \
    cc -o dist/page src/page.c && ./dist/page > dist/index.html";
const MAIN: &str = "cd static && exec python3 -m http.server 8000 --bind 127.0.0.1";
const SERVE: &str = "cd /home/user/app && sh main.sh > log 2>&1 & \
    until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done";

/// Returns the turns of the model. A failing turn comes before the turn that replaces it.
fn script() -> Vec<StandInTurn> {
    let call = StandInTurn::call;
    let transfer = json!({
        "from_sandbox": "frontend", "from_path": "/home/user/app/dist",
        "to_sandbox": "backend", "to_path": "/home/user/app/static", "recursive": true,
    });
    vec![
        StandInTurn::overloaded(),
        StandInTurn::text("Two computers, side by side.")
            .and_call("c1", "sandbox_create", json!({"sandbox": "frontend"}))
            .and_call("c2", "sandbox_create", json!({"sandbox": "backend"})),
        StandInTurn::rate_limited(Duration::ZERO),
        call("c3", "shell", json!({"sandbox": "frontend", "command": BUILD, "timeout_ms": 120_000}))
            .and_call("c4", "shell", json!({"sandbox": "backend", "command": "mkdir app"})),
        StandInTurn::text("Now I write the program that").cut(),
        StandInTurn::empty().and_raw_call("c5", "write_file", "{\"sandbox\": \"backend\", \"path\": "),
        call(
            "c6",
            "write_file",
            json!({"sandbox": "backend", "path": "/home/user/app/main.sh", "content": MAIN}),
        ),
        call("c7", "transfer", transfer),
        call("c8", "shell", json!({"sandbox": "backend", "command": SERVE})),
        call("c9", "browse", json!({"sandbox": "backend", "port": 8000})),
        StandInTurn::text("It is served, and that is all that I have room to say")
            .stopped_by(StopReason::Length),
        StandInTurn::text("That I won't do.").stopped_by(StopReason::Refusal),
    ]
}

async fn workflow(name: &str, api: ModelApi) -> Result<(), Failed> {
    let stand_in = match api {
        ModelApi::AnthropicMessages => StandIn::anthropic(script()).await?,
        _ => StandIn::openai(script()).await?,
    };
    let mut vendor = ProviderRegistration::new(api, stand_in.url());
    vendor.api_key = Some("sk-of-the-workflow".into());
    register_provider(name, vendor);
    let folder = tempfile::tempdir()?;
    let options = NativeOptions { state: folder.path().join("state"), ..NativeOptions::default() };
    let pool = SandboxPool::open(NativeProvider::new(options)?, PoolOptions::default())?;
    let harness = init(HarnessOptions {
        model: Some(resolve_model(&format!("{name}/model"))?),
        sandbox: AgentSandbox::Pool(pool.clone()),
        toolset: Some(toolset("pool")?),
        ..HarnessOptions::default()
    })
    .await?;
    let session = harness.session().await?;
    let checked = check(&session, &stand_in).await;
    drop(harness);
    pool.close().await?;
    checked
}

async fn check(session: &Session, stand_in: &StandIn) -> Result<(), Failed> {
    let call = session.prompt("Build the frontend and serve it from the backend.", PromptOptions::default());
    let mut events = call.events();
    let answer = call.await?;
    ensure(answer.text.starts_with("It is served"), &answer.text)?;
    let results = results(session);
    let failed: Vec<&(String, bool, String)> = results.iter().filter(|(_, is_error, _)| *is_error).collect();
    ensure(failed.len() == 1 && failed[0].0.starts_with("c5"), format!("{failed:?}"))?;
    let url: Value = serde_json::from_str(&results.last().ok_or("no results")?.2)?;
    let page = get(url["url"].as_str().ok_or("no URL")?).await?;
    ensure(page.ends_with("<h1>built</h1>\n"), &page)?;
    // All turns before the refusal were requested, and the cut one is in the events.
    ensure(stand_in.turns_left() == 1, stand_in.turns_left())?;
    let mut turns = (0, 0);
    while let Some(event) = events.try_next() {
        if let eyot_agent::AgentEventKind::Turn { is_error, .. } = event.kind {
            turns = if is_error { (turns.0, turns.1 + 1) } else { (turns.0 + 1, turns.1) };
        }
    }
    ensure(turns == (8, 1), format!("{turns:?}"))?;
    let refused = session.prompt("Now do harm.", PromptOptions::default()).await;
    let refused = refused.err().ok_or("it did not refuse")?;
    ensure(refused.name() == "RefusalError", refused)
}

/// The answers of the tools: the call, whether it failed, and its text.
fn results(session: &Session) -> Vec<(String, bool, String)> {
    let messages = session.conversation().messages();
    let results = messages.into_iter().filter_map(|message| match message {
        ChatMessage::ToolResult(result) => {
            let text = result.content[0].as_text().unwrap_or_default().to_owned();
            Some((result.tool_call_id, result.is_error, text))
        }
        _ => None,
    });
    results.collect()
}

async fn get(url: &str) -> Result<String, Failed> {
    let address = url.strip_prefix("http://").ok_or("no URL")?.trim_end_matches('/');
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn ensure(holds: bool, what: impl std::fmt::Display) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(what.to_string().into()) }
}
