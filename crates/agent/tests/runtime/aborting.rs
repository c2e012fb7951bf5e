//! Calls that are aborted or dropped, and their effects on the conversation.

use eyot_agent::{AgentError, ModelEvent, PromptOptions, ScriptedTurn};
use serde_json::json;

use crate::support::{agent, names, tool_results};

fn stalled() -> ScriptedTurn {
    ScriptedTurn::Stall(vec![ModelEvent::TextDelta("half".into())])
}

#[tokio::test]
async fn an_aborted_turn_ends_with_the_caller_s_reason_and_nothing_of_it_stays() {
    let agent = agent([stalled(), ScriptedTurn::text("back")]).await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let (mut events, abort) = (call.events(), call.aborter());
    let watch = async {
        while events.next().await.is_some_and(|event| event.kind.name() != "text_delta") {}
        abort("enough");
    };
    let (ended, ()) = tokio::join!(call, watch);
    assert!(matches!(ended.unwrap_err(), AgentError::Aborted(reason) if reason == "enough"));
    assert_eq!(names(&mut events), ["turn", "operation", "idle"]);
    assert_eq!(agent.session.prompt("again", PromptOptions::default()).await.unwrap().text, "back");
    assert_eq!(agent.model.requests()[1].messages.len(), 2);
}

#[tokio::test]
async fn an_aborted_tool_has_an_answer_so_that_the_conversation_can_go_on() {
    let turn = ScriptedTurn::call("1", "bash", json!({"command": "echo half; sleep 60"}));
    let agent = agent([turn, ScriptedTurn::text("back")]).await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let (mut events, abort) = (call.events(), call.aborter());
    let watch = async {
        while events.next().await.is_some_and(|event| event.kind.name() != "tool_start") {}
        abort("enough");
    };
    let (ended, ()) = tokio::join!(call, watch);
    assert!(matches!(ended.unwrap_err(), AgentError::Aborted(_)));
    agent.session.prompt("again", PromptOptions::default()).await.unwrap();
    let results = tool_results(&agent.model.requests()[1]);
    assert!(results[0].1 && results[0].0.contains("aborted"), "{results:?}");
}

#[tokio::test]
async fn a_call_that_is_dropped_frees_its_session() {
    let agent = agent([stalled(), ScriptedTurn::text("back")]).await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let mut events = call.events();
    {
        let mut call = std::pin::pin!(call);
        tokio::select! {
            _ = &mut call => unreachable!("the model says nothing more"),
            event = events.next() => assert!(event.is_some()),
        }
    }
    // Its end is waited for.
    let again = agent.session.prompt("again", PromptOptions::default()).await;
    assert_eq!(again.unwrap().text, "back");
}

#[tokio::test]
async fn a_call_that_was_aborted_before_it_began_asks_nobody() {
    let agent = agent([]).await;
    let call = agent.session.prompt("go", PromptOptions::default());
    call.abort("never mind");
    assert!(matches!(call.await.unwrap_err(), AgentError::Aborted(_)));
    assert!(agent.model.requests().is_empty());
}

#[tokio::test]
async fn a_session_does_one_thing_at_a_time() {
    let agent = agent([stalled()]).await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let (mut events, abort) = (call.events(), call.aborter());
    let second = async {
        events.next().await.unwrap();
        let error = agent.session.prompt("too", PromptOptions::default()).await.unwrap_err();
        abort("done");
        error
    };
    let (_, error) = tokio::join!(call, second);
    assert_eq!(error.to_string(), "session `default` is already running prompt");
}
