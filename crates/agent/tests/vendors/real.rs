//! Tests of the models with the vendors' own servers, if there is a key.

use eyot_agent::{
    ApiKey, AssistantMessage, ChatMessage, ContentBlock, ModelEvent, ModelProviderSettings, ModelRequest,
    ModelTurn, StopReason, ThinkingLevel, ToolDeclaration, ToolResultMessage, configure_provider,
    resolve_model,
};
use futures_util::StreamExt;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

/// The models, and the variables with their keys.
const MODELS: [(&str, &str); 3] = [
    ("anthropic/claude-haiku-4-5", "EYOT_TEST_ANTHROPIC_KEY"),
    ("openai/gpt-5-mini", "EYOT_TEST_OPENAI_KEY"),
    ("openai-completions/gpt-5-mini", "EYOT_TEST_OPENAI_KEY"),
];

pub fn trials() -> Vec<Trial> {
    MODELS.into_iter().map(|(model, variable)| trial(model, variable)).collect()
}

fn trial(model: &'static str, variable: &str) -> Trial {
    let name = format!("real_{}_calls_a_tool_and_reads_its_answer", model.replace(['/', '-', '.'], "_"));
    match std::env::var(variable).ok().filter(|key| !key.is_empty()) {
        Some(key) => Trial::test(name, move || talk(model, key)),
        None => {
            Trial::test(name, || Ok(())).with_kind(format!("{variable} is not set")).with_ignored_flag(true)
        }
    }
}

/// Lets a model call a tool, and gives it the answer.
fn talk(name: &str, key: String) -> Result<(), Failed> {
    let (provider, _) = name.split_once('/').ok_or("no provider")?;
    let mut settings = ModelProviderSettings::default();
    settings.api_key = Some(ApiKey::from(key));
    configure_provider(provider.split('-').next().unwrap_or(provider), settings);
    tokio::runtime::Runtime::new()?.block_on(async {
        let question =
            ChatMessage::user("Which word does the tool `word` give? Call it, then say the word alone.");
        let turn = ask(name, vec![question.clone()]).await?;
        ensure(turn.stop_reason == StopReason::ToolUse, &turn)?;
        let said = said(name, &turn)?;
        let answers = said.tool_calls().map(|call| {
            ChatMessage::ToolResult(ToolResultMessage {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                content: vec![ContentBlock::text("islet")],
                details: Value::Null,
                is_error: false,
                timestamp: 2,
            })
        });
        let mut messages = vec![question];
        let answers: Vec<_> = answers.collect();
        messages.push(ChatMessage::Assistant(said));
        messages.extend(answers);
        let turn = ask(name, messages).await?;
        let text: String = turn.content.iter().filter_map(ContentBlock::as_text).collect();
        ensure(text.to_lowercase().contains("islet") && turn.usage.output > 0, &turn)
    })
}

async fn ask(name: &str, messages: Vec<ChatMessage>) -> Result<ModelTurn, Failed> {
    let request = ModelRequest {
        system_prompt: Some("You answer in few words.".to_owned()),
        messages,
        tools: vec![ToolDeclaration {
            name: "word".to_owned(),
            description: "Gives a word.".to_owned(),
            parameters: json!({"type": "object", "properties": {}, "required": []}),
        }],
        max_tokens: Some(4096),
        thinking: ThinkingLevel::Low,
        session_id: Some("eyot-test".to_owned()),
    };
    let mut stream = resolve_model(name)?.stream(request).await.map_err(|error| error.to_string())?;
    while let Some(event) = stream.next().await {
        if let ModelEvent::Done(turn) = event.map_err(|error| error.to_string())? {
            return Ok(turn);
        }
    }
    Err("the stream has no end".into())
}

fn said(name: &str, turn: &ModelTurn) -> Result<AssistantMessage, Failed> {
    let model = resolve_model(name)?;
    let info = model.info();
    Ok(AssistantMessage {
        content: turn.content.clone(),
        api: info.api.as_str().to_owned(),
        provider: info.provider.clone(),
        model: info.id.clone(),
        usage: turn.usage,
        stop_reason: turn.stop_reason,
        error_message: None,
        timestamp: 1,
    })
}

fn ensure(holds: bool, turn: &ModelTurn) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(format!("{turn:?}").into()) }
}
