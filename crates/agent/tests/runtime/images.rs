//! Images in the answers of tools: they reach each vendor, now and from the store.

use std::sync::Arc;

use eyot_agent::standin::{StandIn, StandInTurn};
use eyot_agent::{
    AgentStore, ApiKey, EngineStore, HarnessOptions, Model, ModelApi, ModelFacts, PromptOptions,
    ProviderRegistration, ScriptedTurn, init, register_provider, resolve_model,
};
use eyot_engine::store::Store;
use eyot_tools::{ToolDef, ToolOutput};
use serde_json::json;

use crate::support::{agent, in_memory};

/// The beginning of each PNG file.
const PNG: &str = "iVBORw0KGgo=";

fn camera(output: ToolOutput) -> ToolDef {
    let schema = json!({"type": "object", "properties": {}});
    ToolDef::new("look", "Looks.", schema, move |_, _| std::future::ready(Ok(output.clone())))
        .expect("a tool")
}

async fn seeing(api: ModelApi, turns: [StandInTurn; 3]) -> (StandIn, Arc<dyn Model>) {
    let vendor = match api {
        ModelApi::AnthropicMessages => StandIn::anthropic(turns).await,
        _ => StandIn::openai(turns).await,
    };
    let vendor = vendor.expect("a stand-in");
    let mut registration = ProviderRegistration::new(api, vendor.url());
    registration.api_key = Some(ApiKey::from("canary-of-images"));
    let facts = ModelFacts { images: Some(true), ..ModelFacts::default() };
    registration.models.insert("m".to_owned(), facts);
    let name = format!("seeing-{}", api.as_str());
    register_provider(name.clone(), registration);
    (vendor, resolve_model(&format!("{name}/m")).expect("a model"))
}

#[tokio::test]
async fn an_image_of_a_tool_reaches_each_vendor_and_comes_back_out_of_the_store() {
    for api in [ModelApi::AnthropicMessages, ModelApi::OpenaiCompletions, ModelApi::OpenaiResponses] {
        let turns = [
            StandInTurn::call("c1", "look", json!({})),
            StandInTurn::text("a dog"),
            StandInTurn::text("yes"),
        ];
        let (vendor, model) = seeing(api, turns).await;
        let folder = tempfile::tempdir().unwrap();
        let store = EngineStore::new(Store::open(folder.path().join("eyot.db")).unwrap());
        let store: Arc<dyn AgentStore> = Arc::new(store);
        for question in ["What is there?", "Is it a dog?"] {
            let options = HarnessOptions {
                instance_id: Some("i".to_owned()),
                store: Some(store.clone()),
                model: Some(model.clone()),
                tools: vec![camera(ToolOutput::text("here").and_image(PNG, "image/png"))],
                ..in_memory()
            };
            let session = init(options).await.unwrap().session().await.unwrap();
            session.prompt(question, PromptOptions::default()).await.unwrap();
            let body = vendor.requests().last().unwrap().body.to_string();
            let as_image = match api {
                ModelApi::AnthropicMessages => format!(r#""data":"{PNG}""#),
                _ => format!("data:image/png;base64,{PNG}"),
            };
            assert!(body.contains(&as_image), "{api:?} {question}: {body}");
        }
    }
}

#[tokio::test]
async fn an_image_that_no_vendor_takes_is_a_note() {
    let large = format!("{PNG}{}", "A".repeat(8 << 20));
    for (data, mime_type, sent) in [
        (PNG, "image/jpeg", true),
        ("PHN2Zz4=", "image/svg+xml", false),
        ("not base64!", "image/png", false),
        (large.as_str(), "image/png", false),
    ] {
        let agent = agent([ScriptedTurn::call("1", "look", json!({})), ScriptedTurn::text("ok")]).await;
        let tools = vec![camera(ToolOutput::text("here").and_image(data, mime_type))];
        agent.session.prompt("go", PromptOptions { tools, ..PromptOptions::default() }).await.unwrap();
        let content = json!(agent.model.requests()[1].messages.last().unwrap())["content"].clone();
        if sent {
            // The bytes say what it is.
            assert_eq!(content[1], json!({"type": "image", "data": PNG, "mimeType": "image/png"}));
        } else {
            let note = content[1]["text"].as_str().unwrap();
            assert!(note.starts_with("(an image is left out: "), "{note}");
        }
    }
}
