//! Tools of a prompt: they run concurrently, their answers keep the order, and a failing tool does not end the run.

use std::sync::Arc;

use eyot_agent::{ChatMessage, HarnessOptions, PromptOptions, ScriptedTurn};
use eyot_tools::{ToolContext, ToolDef, ToolOutput, toolset};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

use crate::support::{agent, agent_with, in_memory, tool_results};

fn schema() -> Value {
    json!({"type": "object", "properties": {}})
}

fn tool(name: &str) -> ToolDef {
    ToolDef::new(name, "A tool.", schema(), async |_, _| Ok(ToolOutput::text("done"))).expect("a tool")
}

fn with_tools(tools: Vec<ToolDef>) -> PromptOptions {
    PromptOptions { tools, ..PromptOptions::default() }
}

#[tokio::test]
async fn calls_of_one_turn_run_at_the_same_time_and_their_answers_keep_the_order() {
    let barrier = Arc::new(Barrier::new(2));
    let (first, second) = (Arc::clone(&barrier), barrier);
    let quick_ended = Arc::new(Notify::new());
    let quick_ends = Arc::clone(&quick_ended);
    let slow = ToolDef::new("slow", "Ends last.", schema(), move |_, _| {
        let (barrier, quick_ended) = (Arc::clone(&first), Arc::clone(&quick_ended));
        async move {
            barrier.wait().await;
            quick_ended.notified().await;
            Ok(ToolOutput::text("slow"))
        }
    });
    let quick = ToolDef::new("quick", "Ends first.", schema(), move |_, _| {
        let (barrier, quick_ends) = (Arc::clone(&second), Arc::clone(&quick_ends));
        async move {
            barrier.wait().await;
            quick_ends.notify_one();
            Ok(ToolOutput::text("quick"))
        }
    });
    let both = ScriptedTurn::call("1", "slow", json!({})).and_call("2", "quick", json!({}));
    let agent = agent([both, ScriptedTurn::text("ok")]).await;
    agent.session.prompt("go", with_tools(vec![slow.unwrap(), quick.unwrap()])).await.unwrap();
    let results = tool_results(&agent.model.requests()[1]);
    assert_eq!(results, [("slow".into(), false), ("quick".into(), false)]);
}

/// Small servers of models call each call `call_0`.
#[tokio::test]
async fn calls_of_one_turn_that_have_the_same_id_get_an_answer_each() {
    let echo = ToolDef::new("echo", "Gives its argument back.", schema(), async |_, arguments: Value| {
        Ok(ToolOutput::text(arguments["text"].as_str().unwrap_or_default()))
    });
    let call = |turn: ScriptedTurn, text: &str| turn.and_call("call_0", "echo", json!({"text": text}));
    let turn = call(ScriptedTurn::blocks(Vec::new()), "one");
    let turn = call(call(turn, "two").and_call("call_0_2", "echo", json!({"text": "three"})), "four");
    let agent = agent([turn, ScriptedTurn::text("ok")]).await;
    agent.session.prompt("go", with_tools(vec![echo.unwrap()])).await.unwrap();
    let request = &agent.model.requests()[1];
    let answers = tool_results(request);
    assert_eq!(answers, ["one", "two", "three", "four"].map(|text| (text.to_owned(), false)));
    let ids: Vec<&str> = request
        .messages
        .iter()
        .filter_map(|message| match message {
            ChatMessage::ToolResult(result) => Some(result.tool_call_id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["call_0", "call_0_2", "call_0_2_2", "call_0_3"]);
}

#[tokio::test]
async fn a_tool_that_fails_panics_or_is_unknown_is_an_answer() {
    let fails = ToolDef::new("fails", "Fails.", schema(), async |_, _| {
        Err(eyot::Error::new(eyot::ErrorKind::Unavailable, "the printer is on fire"))
    });
    let panics = ToolDef::new("panics", "Panics.", schema(), async |_, _| panic!("oh no"));
    let turn = ScriptedTurn::call("1", "fails", json!({})).and_call("2", "panics", json!({})).and_call(
        "3",
        "nothing",
        json!({}),
    );
    let agent = agent([turn, ScriptedTurn::text("ok")]).await;
    let answer = agent.session.prompt("go", with_tools(vec![fails.unwrap(), panics.unwrap()])).await.unwrap();
    assert_eq!(answer.text, "ok");
    let results = tool_results(&agent.model.requests()[1]);
    for (result, part) in results.iter().zip(["on fire", "oh no", "there is no tool `nothing`"]) {
        assert!(result.1 && result.0.contains(part), "{result:?}");
    }
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_ended_and_the_model_hears_of_it() {
    let options = HarnessOptions { tool_timeout_ms: Some(50), ..in_memory() };
    let endless =
        ToolDef::new("endless", "Ends when it is cancelled.", schema(), async |context: ToolContext, _| {
            context.cancel.cancelled().await;
            Ok(ToolOutput::text("half"))
        });
    let tools = with_tools(vec![endless.unwrap().handling_cancel()]);
    let turn = ScriptedTurn::call("1", "endless", json!({}));
    let agent = agent_with([turn, ScriptedTurn::text("ok")], options).await;
    agent.session.prompt("go", tools).await.unwrap();
    let (text, is_error) = tool_results(&agent.model.requests()[1]).remove(0);
    assert!(is_error && text.contains("was stopped after 50 ms") && text.contains("half"), "{text}");
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_before_the_model_is_asked() {
    let agent = agent([]).await;
    for name in ["bash", "task", "finish"] {
        let error = agent.session.prompt("go", with_tools(vec![tool(name)])).await.unwrap_err();
        let expected = format!(
            "Custom tool \"{name}\" conflicts with a built-in tool. Built-in tools: read, write, edit, bash, grep, glob, task"
        );
        assert_eq!(error.to_string(), expected);
    }
    let error = agent.session.prompt("go", with_tools(vec![tool("mine"), tool("mine")])).await.unwrap_err();
    assert_eq!(error.to_string(), "Duplicate custom tool name \"mine\". Tool names must be unique.");
    assert!(agent.model.requests().is_empty());
    assert!(agent.session.conversation().entries().is_empty());
}

#[tokio::test]
async fn the_tools_are_those_of_the_sandbox_then_task_then_the_caller_s() {
    let options = HarnessOptions { tools: vec![tool("of-harness")], ..in_memory() };
    let agent = agent_with([ScriptedTurn::text("ok"), ScriptedTurn::text("ok")], options).await;
    agent.session.prompt("go", with_tools(vec![tool("of-call")])).await.unwrap();
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let names = |request: usize| -> Vec<String> {
        agent.model.requests()[request].tools.iter().map(|tool| tool.name.clone()).collect()
    };
    let usual = ["read", "write", "edit", "bash", "grep", "glob", "task", "of-harness"];
    assert_eq!(names(0)[..8], usual);
    assert_eq!(names(0)[8], "of-call");
    assert_eq!(names(1), usual);
}

#[tokio::test]
async fn without_a_sandbox_there_is_only_task() {
    let agent = agent_with([ScriptedTurn::text("ok")], HarnessOptions::default()).await;
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let request = agent.model.requests().remove(0);
    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["task"]);
    assert!(agent.session.sandbox().await.is_err());
}

#[tokio::test]
async fn an_agent_may_have_any_toolset() {
    let options = HarnessOptions { toolset: Some(toolset("pool").unwrap()), ..in_memory() };
    let turn = ScriptedTurn::call("1", "shell", json!({"command": "echo hi"}));
    let agent = agent_with([turn, ScriptedTurn::text("ok")], options).await;
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let (text, _) = tool_results(&agent.model.requests()[1]).remove(0);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&answer["stdout"], &answer["exit_code"]), (&json!("hi\n"), &json!(0)));
}
