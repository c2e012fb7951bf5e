//! Conversations that become too long.

use std::sync::Arc;

use eyot_agent::{
    AgentError, AgentEventKind, Budget, BudgetLimit, CompactionOptions, CompactionReason, ContentBlock,
    HarnessOptions, Model, ModelError, ModelErrorKind, ModelInfo, ModelTurn, PromptOptions, ScriptedModel,
    ScriptedTurn, StopReason, TokenUsage, init,
};

use crate::support::{all, in_memory, names};

/// Creates a model with this context window.
fn model(context_window: u64, turns: impl IntoIterator<Item = ScriptedTurn>) -> ScriptedModel {
    let scripted = ScriptedModel::new(turns);
    let info = ModelInfo { context_window, ..scripted.info().clone() };
    scripted.with_info(info)
}

/// Creates a turn after which the conversation has this many tokens.
fn counted(text: &str, tokens: u64) -> ScriptedTurn {
    ScriptedTurn::Say(ModelTurn {
        content: vec![ContentBlock::text(text)],
        stop_reason: StopReason::Stop,
        usage: TokenUsage { input: tokens, ..TokenUsage::default() },
    })
}

async fn session(model: &ScriptedModel, keep_tokens: u64) -> eyot_agent::Session {
    budgeted_session(model, keep_tokens, Budget::default()).await
}

async fn budgeted_session(model: &ScriptedModel, keep_tokens: u64, budget: Budget) -> eyot_agent::Session {
    let compaction =
        CompactionOptions { keep_recent_tokens: Some(keep_tokens), ..CompactionOptions::default() };
    let options = HarnessOptions { model: Some(Arc::new(model.clone())), compaction, budget, ..in_memory() };
    init(options).await.expect("a harness").session().await.expect("a session")
}

#[tokio::test]
async fn a_conversation_that_is_nearly_too_long_becomes_a_summary_and_its_newest_messages() {
    let turns = [
        counted("first answer", 100),
        counted("second answer, which is long enough to be kept", 99_000),
        ScriptedTurn::text("SUMMARY"),
        counted("third", 200),
    ];
    let model = model(100_000, turns);
    let session = session(&model, 13).await;
    session.prompt("one", PromptOptions::default()).await.unwrap();
    let call = session.prompt("two", PromptOptions::default());
    let mut events = call.events();
    call.await.unwrap();
    let expected = [
        "operation_start",
        "text_delta",
        "turn",
        "log",
        "compaction_start",
        "turn",
        "compaction",
        "operation",
        "idle",
    ];
    assert_eq!(names(&mut events), expected);
    session.prompt("three", PromptOptions::default()).await.unwrap();
    let texts: Vec<String> = model.requests()[3]
        .messages
        .iter()
        .map(|message| message.content()[0].as_text().unwrap().to_owned())
        .collect();
    assert!(texts[0].starts_with("[Context Summary]\n\nSUMMARY"), "{texts:?}");
    assert_eq!(texts[1..], ["two", "second answer, which is long enough to be kept", "three"]);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_made_shorter_and_asked_again() {
    let overflow = ModelError::new(ModelErrorKind::ContextOverflow, "too long");
    let turns = [
        counted("first answer", 100),
        ScriptedTurn::Fail(overflow.clone()),
        ScriptedTurn::text("SUMMARY"),
        ScriptedTurn::text("there"),
    ];
    let model = model(0, turns);
    let session = session(&model, 5).await;
    session.prompt("one", PromptOptions::default()).await.unwrap();
    let call = session.prompt("a second question, long enough", PromptOptions::default());
    let mut events = call.events();
    assert_eq!(call.await.unwrap().text, "there");
    let reasons: Vec<CompactionReason> = all(&mut events)
        .iter()
        .filter_map(|event| match &event.kind {
            AgentEventKind::CompactionStart { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [CompactionReason::Overflow]);
    assert_eq!(model.requests()[3].messages.len(), 2);

    let model = self::model(0, [ScriptedTurn::Fail(overflow.clone()), ScriptedTurn::Fail(overflow)]);
    let session = self::session(&model, 5).await;
    let error = session.prompt("one", PromptOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "prompt failed: too long");
}

#[tokio::test]
async fn a_summary_that_is_cut_refused_or_empty_replaces_nothing() {
    let unusable =
        [("half a summ", StopReason::Length), ("I can't", StopReason::Refusal), (" ", StopReason::Stop)];
    for (text, stop_reason) in unusable {
        let usage = TokenUsage { input: 50, ..TokenUsage::default() };
        let summary =
            ScriptedTurn::Say(ModelTurn { content: vec![ContentBlock::text(text)], stop_reason, usage });
        let model = model(0, [ScriptedTurn::text("a long first answer, longer than is kept"), summary]);
        let budget = Budget { max_tokens: Some(50), ..Budget::default() };
        let session = budgeted_session(&model, 5, budget).await;
        session.prompt("one", PromptOptions::default()).await.unwrap();
        let before = session.conversation().messages();
        let error = session.compact().await.unwrap_err();
        assert!(error.to_string().contains("summary"), "{error}");
        assert_eq!(session.conversation().messages(), before);
        // The tokens of the failed summary count for the budget.
        let error = session.prompt("two", PromptOptions::default()).await.unwrap_err();
        assert!(matches!(error, AgentError::Budget(BudgetLimit::Tokens(50))), "{error}");
    }
}

/// A turn that is too long to be kept gets a summary beside that of what came before it.
#[tokio::test]
async fn both_summaries_of_a_split_turn_are_told_and_counted_though_one_fails() {
    let long = || ScriptedTurn::text(&"a long answer, longer than is kept. ".repeat(8));
    let failure = ScriptedTurn::Fail(ModelError::new(ModelErrorKind::Invalid, "no summary today"));
    let model = model(0, [long(), long(), failure, counted("a summary", 50)]);
    let budget = Budget { max_tokens: Some(60), ..Budget::default() };
    let session = budgeted_session(&model, 20, budget).await;
    for question in ["one", "two"] {
        session.prompt(question, PromptOptions::default()).await.unwrap();
    }
    let call = session.compact();
    let mut events = call.events();
    let error = call.await.unwrap_err();
    assert!(error.to_string().contains("no summary today"), "{error}");
    assert_eq!(model.requests().len(), 4);
    let turns = names(&mut events).iter().filter(|name| **name == "turn").count();
    assert_eq!(turns, 2);
    let error = session.prompt("three", PromptOptions::default()).await.unwrap_err();
    assert!(matches!(error, AgentError::Budget(BudgetLimit::Tokens(60))), "{error}");
}

#[tokio::test]
async fn a_caller_may_have_it_made_shorter_and_a_short_one_stays() {
    let model = model(
        0,
        [ScriptedTurn::text("a long first answer, longer than is kept"), ScriptedTurn::text("SUMMARY")],
    );
    let session = session(&model, 5).await;
    session.compact().await.unwrap();
    assert!(session.conversation().entries().is_empty());
    session.prompt("one", PromptOptions::default()).await.unwrap();
    session.compact().await.unwrap();
    let messages = session.conversation().messages();
    assert!(messages[0].content()[0].as_text().unwrap().starts_with("[Context Summary]"), "{messages:?}");
    assert_eq!(messages.len(), 2);
}
