//! Stand-ins that are registered as providers, and requests for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eyot_agent::standin::{StandIn, StandInTurn};
use eyot_agent::{
    ApiKey, ChatMessage, Model, ModelApi, ModelError, ModelEvent, ModelFacts, ModelOptions, ModelRequest,
    ModelTurn, ProviderRegistration, ThinkingLevel, ToolDeclaration, register_provider, resolve_model_with,
};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// The key of the tests. It may appear only in requests.
pub const KEY: &str = "canary-key-0123456789";

/// The APIs. Most tests run for each of them.
pub const APIS: [ModelApi; 3] =
    [ModelApi::AnthropicMessages, ModelApi::OpenaiCompletions, ModelApi::OpenaiResponses];

/// A stand-in for a vendor and a model of it.
pub struct Vendor {
    pub stand_in: StandIn,
    pub model: Arc<dyn Model>,
    pub name: String,
}

impl Vendor {
    /// Creates a model that plays these turns, without retries.
    pub async fn playing<const N: usize>(api: ModelApi, turns: [StandInTurn; N]) -> Self {
        let mut options = ModelOptions::default();
        options.tries = 1;
        Self::with(api, options, turns).await
    }

    /// Creates a model that plays these turns, with these timeouts and retries.
    pub async fn with<const N: usize>(api: ModelApi, options: ModelOptions, turns: [StandInTurn; N]) -> Self {
        let stand_in = match api {
            ModelApi::AnthropicMessages => StandIn::anthropic(turns).await.unwrap(),
            _ => StandIn::openai(turns).await.unwrap(),
        };
        let name = register(api, stand_in.url());
        let model = resolve_model_with(&format!("{name}/m"), options).unwrap();
        Self { stand_in, model, name }
    }

    /// Returns the body of the last request.
    pub fn last_body(&self) -> Value {
        self.stand_in.requests().last().unwrap().body.clone()
    }

    /// Asks for a turn, and returns all of its events.
    pub async fn ask(&self, request: ModelRequest) -> Result<Vec<ModelEvent>, ModelError> {
        let (events, end) = self.ask_to_the_end(request).await;
        end.map(|()| events)
    }

    /// Asks for a turn. Returns its events, even those before a failure, and the outcome.
    pub async fn ask_to_the_end(&self, request: ModelRequest) -> (Vec<ModelEvent>, Result<(), ModelError>) {
        let mut stream = match self.model.stream(request).await {
            Ok(stream) => stream,
            Err(failure) => return (Vec::new(), Err(failure)),
        };
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => events.push(event),
                Err(failure) => return (events, Err(failure)),
            }
        }
        (events, Ok(()))
    }

    /// Asks for a turn, and returns only the complete turn.
    pub async fn turn(&self, request: ModelRequest) -> ModelTurn {
        match self.ask(request).await.unwrap().pop() {
            Some(ModelEvent::Done(turn)) => turn,
            other => panic!("the turn ended with {other:?}"),
        }
    }
}

/// Registers an address under a unique name. The model `m` there reasons and accepts images.
pub fn register(api: ModelApi, url: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("standin-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut registration = ProviderRegistration::new(api, url);
    registration.api_key = Some(ApiKey::from(KEY));
    let facts = ModelFacts { reasoning: Some(true), images: Some(true), ..ModelFacts::default() };
    registration.models.insert("m".to_owned(), facts);
    register_provider(name.clone(), registration);
    name
}

/// Returns a request for the turn after these messages.
pub fn request(messages: Vec<ChatMessage>) -> ModelRequest {
    ModelRequest {
        system_prompt: Some("You help.".to_owned()),
        messages,
        tools: vec![ToolDeclaration {
            name: "read".to_owned(),
            description: "Read a file.".to_owned(),
            parameters: json!({
                "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
            }),
        }],
        max_tokens: None,
        thinking: ThinkingLevel::Off,
        session_id: Some("session-1".to_owned()),
    }
}

/// Returns a request after one word of the user.
pub fn hello() -> ModelRequest {
    request(vec![ChatMessage::user("hello")])
}
