//! Structured results.

use eyot_agent::{AgentError, PromptOptions, ScriptedTurn};
use serde_json::{Value, json};

use crate::support::{agent, last_text, tool_results};

fn asking(schema: Value) -> PromptOptions {
    PromptOptions { result: Some(schema), ..PromptOptions::default() }
}

fn number() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

#[tokio::test]
async fn a_result_is_checked_and_the_model_may_try_again() {
    let agent = agent([
        ScriptedTurn::call("1", "finish", json!({"n": "three"})),
        ScriptedTurn::call("2", "finish", json!({"n": 3})),
    ])
    .await;
    let answer = agent.session.prompt("Count.", asking(number())).await.unwrap();
    assert_eq!(answer.data, Some(json!({"n": 3})));
    let requests = agent.model.requests();
    assert!(
        requests[0].messages[0].content()[0]
            .as_text()
            .unwrap()
            .starts_with("Count.\n\nWhen the task is complete")
    );
    let tools: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools[tools.len() - 2..], ["finish", "give_up"]);
    assert!(tool_results(&requests[1])[0].1);
}

#[tokio::test]
async fn a_model_that_ends_without_a_result_is_reminded() {
    let agent =
        agent([ScriptedTurn::text("Three."), ScriptedTurn::call("1", "finish", json!({"n": 3}))]).await;
    let answer = agent.session.prompt("Count.", asking(number())).await.unwrap();
    assert_eq!(answer.data, Some(json!({"n": 3})));
    assert!(
        last_text(&agent.model.requests()[1]).starts_with("You ended your turn without calling `finish`")
    );
}

#[tokio::test]
async fn a_model_that_never_gives_a_result_is_ended() {
    let agent = agent(std::iter::repeat_n(ScriptedTurn::text("Hm."), 40)).await;
    let error = agent.session.prompt("Count.", asking(number())).await.unwrap_err();
    assert_eq!(agent.model.requests().len(), 33);
    assert!(matches!(error, AgentError::GaveUp { text, .. } if text == "Hm."));
}

#[tokio::test]
async fn giving_up_is_an_error_with_the_model_s_reason() {
    let agent = agent([ScriptedTurn::call("1", "give_up", json!({"reason": "no numbers"}))]).await;
    let error = agent.session.prompt("Count.", asking(number())).await.unwrap_err();
    assert_eq!(error.to_string(), "The agent gave up: no numbers");
}

#[tokio::test]
async fn a_result_beside_other_calls_does_not_end_the_turn_early() {
    let agent = agent([
        ScriptedTurn::call("1", "finish", json!({"n": 3})).and_call("2", "bash", json!({"command": "true"})),
        ScriptedTurn::text("ok"),
    ])
    .await;
    let answer = agent.session.prompt("Count.", asking(number())).await.unwrap();
    assert_eq!((answer.data, answer.text.as_str()), (Some(json!({"n": 3})), "ok"));
}

#[tokio::test]
async fn what_is_no_schema_is_refused_before_anything_is_said() {
    let agent = agent([]).await;
    let error = agent.session.prompt("Count.", asking(json!({"type": "nothing"}))).await.unwrap_err();
    assert!(error.to_string().contains("it is not a valid JSON Schema"), "{error}");
    assert!(agent.session.conversation().entries().is_empty());
}
