//! Calls that are aborted or dropped, and their effects on the conversation.

use std::sync::Arc;
use std::time::Duration;

use eyot_agent::{AgentError, ModelEvent, PromptOptions, ScriptedTurn};
use eyot_tools::{ToolDef, ToolOutput};
use serde_json::json;
use tokio::sync::Notify;

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

#[tokio::test]
async fn a_call_that_waits_for_the_end_of_an_aborted_one_can_be_aborted() {
    let (begun, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, waits) = (Arc::clone(&begun), Arc::clone(&released));
    let schema = json!({"type": "object"});
    let slow = ToolDef::new("slow", "Hears of no cancel.", schema, move |_, _: serde_json::Value| {
        let (begins, waits) = (Arc::clone(&begins), Arc::clone(&waits));
        async move {
            begins.notify_one();
            waits.notified().await;
            Ok(ToolOutput::text("done"))
        }
    });
    let tools = vec![slow.unwrap().handling_cancel()];
    let agent = agent([ScriptedTurn::call("1", "slow", json!({}))]).await;
    let first = agent.session.prompt("go", PromptOptions { tools, ..PromptOptions::default() });
    tokio::select! {
        _ = first => unreachable!("the tool does not end"),
        () = begun.notified() => {}
    }
    let second = agent.session.prompt("too", PromptOptions::default());
    let abort = second.aborter();
    let both = async {
        tokio::join!(second, async {
            tokio::task::yield_now().await;
            abort("enough");
        })
    };
    let (ended, ()) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("it still waits");
    assert!(matches!(ended.unwrap_err(), AgentError::Aborted(reason) if reason == "enough"));
    released.notify_one();
}
