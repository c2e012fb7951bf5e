//! Prompts: the loop of turns and tools.

use std::sync::Arc;

use eyot_agent::{
    AgentError, AgentEventKind, Budget, BudgetLimit, ContentBlock, HarnessOptions, ModelError,
    ModelErrorKind, ModelEvent, ModelTurn, PromptOptions, ScriptedModel, ScriptedTurn, StopReason,
    TokenUsage, init,
};
use serde_json::json;

use crate::support::{agent, agent_with, all, in_memory, names, tool_results};

#[tokio::test]
async fn a_model_works_until_it_calls_no_tool_any_more() {
    let agent = agent([
        ScriptedTurn::call("1", "bash", json!({"command": "echo hi > a.txt"})),
        ScriptedTurn::call("2", "read", json!({"path": "a.txt"})),
        ScriptedTurn::text("It says hi."),
    ])
    .await;
    let answer = agent.session.prompt("What does a.txt say?", PromptOptions::default()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.model.as_str()), ("It says hi.", "scripted"));
    assert_eq!((answer.usage.input, answer.usage.output, answer.usage.total_tokens), (30, 15, 45));
    let requests = agent.model.requests();
    assert_eq!(tool_results(&requests[2]), [("(no output)".into(), false), ("hi\n".into(), false)]);
}

#[tokio::test]
async fn the_events_of_a_prompt_are_those_of_the_reference_in_its_order() {
    let agent = agent([
        ScriptedTurn::blocks(vec![
            ContentBlock::Thinking { thinking: "hm".into(), thinking_signature: None, redacted: false },
            ContentBlock::text("Let me look."),
        ])
        .and_call("1", "bash", json!({"command": "true"}))
        .and_call("2", "bash", json!({"command": "true"})),
        ScriptedTurn::text("Done."),
    ])
    .await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let mut events = call.events();
    call.await.unwrap();
    let expected = [
        "operation_start",
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "text_delta",
        "tool_start",
        "tool_start",
        "tool_call",
        "tool_call",
        "turn",
        "text_delta",
        "turn",
        "operation",
        "idle",
    ];
    assert_eq!(names(&mut events), expected);
}

#[tokio::test]
async fn a_conversation_goes_on_with_what_was_said() {
    let agent = agent([ScriptedTurn::text("one"), ScriptedTurn::text("two")]).await;
    agent.session.prompt("first", PromptOptions::default()).await.unwrap();
    agent.session.prompt("second", PromptOptions::default()).await.unwrap();
    let said: Vec<String> = agent.model.requests()[1]
        .messages
        .iter()
        .map(|message| message.content()[0].as_text().unwrap().to_owned())
        .collect();
    assert_eq!(said, ["first", "one", "second"]);
}

#[tokio::test]
async fn a_model_s_failure_is_the_prompt_s_and_the_conversation_can_go_on() {
    let overloaded = ModelError::new(ModelErrorKind::Overloaded, "too much to do");
    let agent = agent([ScriptedTurn::Fail(overloaded.clone()), ScriptedTurn::text("back")]).await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let mut events = call.events();
    let error = call.await.unwrap_err();
    assert_eq!(error.to_string(), "prompt failed: too much to do");
    assert!(matches!(error, AgentError::Model { source, .. } if source == overloaded));
    assert_eq!(names(&mut events), ["operation_start", "turn", "operation", "idle"]);
    assert_eq!(agent.session.prompt("again", PromptOptions::default()).await.unwrap().text, "back");
}

#[tokio::test]
async fn an_answer_that_is_cut_is_asked_for_again_and_no_half_of_it_stays() {
    let half = vec![ModelEvent::TextDelta("hal".into())];
    let agent = agent([ScriptedTurn::Cut(half.clone()), ScriptedTurn::text("whole")]).await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let mut events = call.events();
    assert_eq!(call.await.unwrap().text, "whole");
    let expected = ["operation_start", "text_delta", "turn", "text_delta", "turn", "operation", "idle"];
    assert_eq!(names(&mut events), expected);
    assert_eq!(agent.model.requests()[1].messages.len(), 1);

    let agent = crate::support::agent(vec![ScriptedTurn::Cut(half); 3]).await;
    let error = agent.session.prompt("go", PromptOptions::default()).await.unwrap_err();
    assert!(matches!(error, AgentError::Model { source, .. } if source.kind == ModelErrorKind::Cut));
    assert_eq!(agent.model.requests().len(), 3);
}

#[tokio::test]
async fn a_refusal_is_an_error_with_what_the_model_said() {
    let refusal = ScriptedTurn::Say(ModelTurn {
        content: vec![ContentBlock::text("I won't.")],
        stop_reason: StopReason::Refusal,
        usage: TokenUsage::default(),
    });
    let agent = agent([refusal]).await;
    let error = agent.session.prompt("go", PromptOptions::default()).await.unwrap_err();
    assert!(matches!(error, AgentError::Refused(text) if text == "I won't."));
}

#[tokio::test]
async fn arguments_that_are_no_json_are_an_answer_that_the_model_can_act_on() {
    let agent = agent([
        ScriptedTurn::call("1", "bash", json!("{\"command\": \"ec")),
        ScriptedTurn::call("2", "bash", json!({"command": 7})),
        ScriptedTurn::text("ok"),
    ])
    .await;
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let results = tool_results(&agent.model.requests()[2]);
    assert!(results[0].0.contains("the arguments are not JSON") && results[0].1, "{results:?}");
    assert!(results[1].1, "{results:?}");
}

#[tokio::test]
async fn a_call_may_have_another_model_and_a_harness_none() {
    let harness = init(in_memory()).await.unwrap();
    let session = harness.session().await.unwrap();
    let error = session.prompt("go", PromptOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("there is no model"), "{error}");
    let model = ScriptedModel::new([ScriptedTurn::text("hi")]);
    let options = PromptOptions { model: Some(Arc::new(model)), ..PromptOptions::default() };
    assert_eq!(session.prompt("go", options).await.unwrap().text, "hi");
}

#[tokio::test]
async fn a_budget_ends_a_prompt_with_a_reason_of_its_own() {
    let endless = || ScriptedTurn::call("1", "bash", json!({"command": "true"}));
    let budget = Budget { max_turns: Some(2), ..Budget::default() };
    let agent = agent_with([endless(), endless(), endless()], HarnessOptions { budget, ..in_memory() }).await;
    let error = agent.session.prompt("go", PromptOptions::default()).await.unwrap_err();
    assert!(matches!(error, AgentError::Budget(BudgetLimit::Turns(2))), "{error}");
    assert_eq!(agent.model.requests().len(), 2);
}

#[tokio::test]
async fn what_a_refusal_took_counts() {
    let budget = Budget { max_tokens: Some(50), ..Budget::default() };
    let refusal = ScriptedTurn::Say(ModelTurn {
        content: vec![ContentBlock::text("no")],
        stop_reason: StopReason::Refusal,
        usage: TokenUsage { input: 50, ..TokenUsage::default() },
    });
    let agent = agent_with([refusal], HarnessOptions { budget, ..in_memory() }).await;
    let prompt = |text: &str| agent.session.prompt(text, PromptOptions::default());
    assert!(matches!(prompt("one").await.unwrap_err(), AgentError::Refused(_)));
    let error = prompt("two").await.unwrap_err();
    assert!(matches!(error, AgentError::Budget(BudgetLimit::Tokens(50))), "{error}");
}

#[tokio::test]
async fn what_a_turn_that_failed_took_counts() {
    let budget = Budget { max_tokens: Some(50), ..Budget::default() };
    let took = TokenUsage { input: 50, ..TokenUsage::default() };
    let failure = ModelError::new(ModelErrorKind::Unavailable, "broken").with_usage(took);
    let agent = agent_with([ScriptedTurn::Fail(failure)], HarnessOptions { budget, ..in_memory() }).await;
    let mut call = agent.session.prompt("one", PromptOptions::default());
    let mut events = call.events();
    assert!(matches!((&mut call).await.unwrap_err(), AgentError::Model { .. }));
    let told = all(&mut events).iter().find_map(|event| match &event.kind {
        AgentEventKind::Turn { usage, .. } => *usage,
        _ => None,
    });
    assert_eq!(told.map(|usage| usage.total_tokens), Some(50));
    let error = agent.session.prompt("two", PromptOptions::default()).await.unwrap_err();
    assert!(matches!(error, AgentError::Budget(BudgetLimit::Tokens(50))), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_time_ends_a_model_that_does_not_answer() {
    let budget = Budget { max_duration_ms: Some(60_000), ..Budget::default() };
    let options = HarnessOptions { budget, ..HarnessOptions::default() };
    let agent = agent_with([ScriptedTurn::Stall(Vec::new())], options).await;
    let error = agent.session.prompt("go", PromptOptions::default()).await.unwrap_err();
    assert!(matches!(error, AgentError::Budget(BudgetLimit::DurationMs(60_000))), "{error}");
}
