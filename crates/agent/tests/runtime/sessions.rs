//! Sessions: their names, their conversations, and commands of the caller.

use std::sync::Arc;
use std::time::Duration;

use eyot_agent::{
    AgentStore, ChatMessage, Conversation, HarnessOptions, MemoryStore, PromptOptions, ScriptedTurn,
    ShellOptions, TaskOptions,
};
use serde_json::json;

use crate::support::{agent, agent_with, in_memory, tool_results};

#[tokio::test]
async fn sessions_of_one_harness_are_made_found_and_deleted_by_name() {
    let agent = agent([ScriptedTurn::text("hi"), ScriptedTurn::text("new")]).await;
    let error = agent.harness.existing_session("s").await.err().unwrap();
    assert_eq!(error.to_string(), "session `s` does not exist in harness `default`");
    let session = agent.harness.new_session("s").await.unwrap();
    session.prompt("go", PromptOptions::default()).await.unwrap();
    assert_eq!(agent.harness.new_session("s").await.err().unwrap().kind(), eyot::ErrorKind::AlreadyExists);
    assert_eq!(agent.harness.existing_session("s").await.unwrap().conversation().entries().len(), 2);
    agent.harness.delete_session("s").await.unwrap();
    agent.harness.delete_session("s").await.unwrap();
    let error = session.prompt("go", PromptOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "session `s` has been deleted");
    let again = agent.harness.session_named("s").await.unwrap();
    again.prompt("go", PromptOptions::default()).await.unwrap();
    assert_eq!(agent.model.requests()[1].messages.len(), 1);
    for name in ["", "task:x"] {
        assert_eq!(agent.harness.session_named(name).await.err().unwrap().kind(), eyot::ErrorKind::Invalid);
    }
}

#[tokio::test]
async fn a_conversation_in_a_store_goes_on_in_another_harness() {
    let store: Arc<dyn AgentStore> = Arc::new(MemoryStore::default());
    let options =
        || HarnessOptions { instance_id: Some("i".into()), store: Some(Arc::clone(&store)), ..in_memory() };
    let first = agent_with([ScriptedTurn::text("one")], options()).await;
    first.session.prompt("first", PromptOptions::default()).await.unwrap();
    let second = agent_with([ScriptedTurn::text("two")], options()).await;
    second.session.prompt("second", PromptOptions::default()).await.unwrap();
    assert_eq!(second.model.requests()[0].messages.len(), 3);
}

#[tokio::test]
async fn a_tool_call_that_was_going_on_when_its_process_ended_is_said_to_be_interrupted() {
    let store: Arc<dyn AgentStore> = Arc::new(MemoryStore::default());
    let options =
        || HarnessOptions { instance_id: Some("i".into()), store: Some(Arc::clone(&store)), ..in_memory() };
    let turn = ScriptedTurn::call("1", "bash", json!({"command": "echo done"})).and_call(
        "2",
        "bash",
        json!({"command": "sleep 60"}),
    );
    let first = agent_with([turn], options()).await;
    let call = first.session.prompt("go", PromptOptions::default());
    let mut events = call.events();
    // The first process is lost here: its session never finishes anything.
    let lost = tokio::spawn(call);
    while events.next().await.is_some_and(|event| event.kind.name() != "tool_call") {}
    // An event is told before it is written.
    let key = "agent-session:[\"i\",\"default\",\"default\"]";
    let written = async {
        while store.conversation(key).await.unwrap().is_none_or(|entries| entries.len() < 3) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), written).await.expect("the answer is not written");
    let second = agent_with([ScriptedTurn::text("ok")], options()).await;
    second.session.prompt("go on", PromptOptions::default()).await.unwrap();
    let results = tool_results(&second.model.requests()[0]);
    assert_eq!(results[0], ("done".into(), false));
    assert!(results[1].1 && results[1].0.contains("was interrupted"), "{results:?}");
    lost.abort();
}

#[tokio::test]
async fn a_command_of_the_caller_is_shown_to_the_model_with_the_next_prompt() {
    let agent = agent([ScriptedTurn::text("ok")]).await;
    let options = ShellOptions { cwd: Some("/tmp".into()), ..ShellOptions::default() };
    let result = agent.session.shell("pwd; echo oops >&2; exit 3", options).await.unwrap();
    assert_eq!((result.stdout.as_str(), result.stderr.as_str(), result.exit_code), ("/tmp\n", "oops\n", 3));
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let request = agent.model.requests().remove(0);
    let ChatMessage::User(asked) = &request.messages[0] else { panic!("{request:?}") };
    let expected = "Run this shell command:\n\n```bash\npwd; echo oops >&2; exit 3\n```";
    assert_eq!(asked.content[0].as_text(), Some(expected));
    assert_eq!(tool_results(&request)[0].0, "/tmp\n\noops\n\nCommand exited with code 3");
}

#[tokio::test]
async fn deleting_a_session_deletes_the_conversations_of_its_tasks() {
    let store = Arc::new(MemoryStore::default());
    let options = HarnessOptions { store: Some(store.clone()), instance_id: Some("i".into()), ..in_memory() };
    let agent = agent_with([ScriptedTurn::text("done")], options).await;
    agent.session.task("do it", TaskOptions::default()).await.unwrap();
    let conversation: Conversation = agent.session.conversation();
    let eyot_agent::ConversationEntry::Task(task) = &conversation.entries()[0] else {
        panic!("{conversation:?}")
    };
    assert!(store.conversation(&task.key).await.unwrap().is_some());
    agent.session.delete().await.unwrap();
    assert!(store.conversation(&task.key).await.unwrap().is_none());
}
