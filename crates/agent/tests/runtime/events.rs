//! Events: listeners get all events in order, and can't disturb the agent.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eyot_agent::{AgentEvent, PromptOptions, ScriptedTurn, ShellOptions, observe, register_secret};
use serde_json::json;

use crate::support::{agent, agent_with, all, in_memory};
use eyot_agent::HarnessOptions;

#[tokio::test]
async fn events_are_numbered_without_a_gap_and_say_where_they_happened() {
    let options = HarnessOptions { name: Some("h".into()), ..in_memory() };
    let agent = agent_with([ScriptedTurn::text("ok")], options).await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let mut events = call.events();
    call.await.unwrap();
    let events = all(&mut events);
    let numbers: Vec<u64> = events.iter().map(|event| event.event_index).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let operation = events[0].operation_id.clone().unwrap();
    assert!(operation.starts_with("op_"));
    for event in events {
        assert_eq!(event.harness.as_deref(), Some("h"));
        assert_eq!(event.session.as_deref(), Some("default"));
        assert_eq!(event.operation_id.as_ref(), Some(&operation));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_panics_or_is_slow_goes_on_hearing_and_harms_no_other() {
    let options = |name: &str| HarnessOptions { name: Some(name.into()), ..in_memory() };
    let ((sender, heard), (panicking, heard_in_panic)) =
        (mpsc::channel::<String>(), mpsc::channel::<String>());
    let (sender, panicking) = (Mutex::new(sender), Mutex::new(panicking));
    let of_test = |event: &AgentEvent| event.harness.as_deref() == Some("observed");
    let _panics = observe(move |event| {
        if of_test(event) {
            panicking
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .send(event.kind.name().to_owned())
                .unwrap();
            panic!("a subscriber panics on purpose");
        }
    })
    .unwrap();
    let _slow = observe(move |event| {
        if of_test(event) {
            std::thread::sleep(Duration::from_millis(50));
        }
    })
    .unwrap();
    let hears = observe(move |event| {
        if of_test(event) {
            sender.lock().unwrap().send(event.kind.name().to_owned()).unwrap();
        }
    })
    .unwrap();
    let agent = agent_with([ScriptedTurn::text("ok")], options("observed")).await;
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let expected = ["operation_start", "text_delta", "turn", "operation", "idle"];
    for heard in [heard, heard_in_panic] {
        let names: Vec<String> =
            expected.iter().map(|_| heard.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
        assert_eq!(names, expected);
    }
    assert_eq!(hears.missed(), 0);
}

#[tokio::test]
async fn the_values_of_variables_and_registered_secrets_are_in_no_event() {
    register_secret("sk-canary-81f4");
    let agent = agent([
        ScriptedTurn::call("1", "bash", json!({"command": "echo sk-canary-81f4 > out; cat out"})),
        ScriptedTurn::text("it is sk-canary-81f4"),
    ])
    .await;
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut heard = agent.harness.events();
    let env = [("TOKEN".to_owned(), "value-of-a-variable".to_owned())].into();
    agent.session.shell("true", ShellOptions { env, ..ShellOptions::default() }).await.unwrap();
    agent.session.prompt("say sk-canary-81f4", PromptOptions::default()).await.unwrap();
    while let Ok(event) = heard.try_recv() {
        events.lock().unwrap().push(serde_json::to_string(&*event).unwrap());
    }
    let events = events.lock().unwrap();
    assert!(events.iter().any(|event| event.contains("<redacted>")));
    for event in events.iter() {
        assert!(!event.contains("sk-canary-81f4") && !event.contains("value-of-a-variable"), "{event}");
    }
    let conversation = format!("{:?}", agent.session.conversation());
    assert!(!conversation.contains("value-of-a-variable"));
}
