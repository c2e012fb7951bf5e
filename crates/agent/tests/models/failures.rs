//! Answers that fail, and the secrets that their errors must not contain.

use std::time::Duration;

use eyot_agent::standin::StandInTurn;
use eyot_agent::{
    ApiKey, ModelApi, ModelError, ModelErrorKind, ModelEvent, ModelOptions, ModelProviderSettings,
    ProviderRegistration, TokenUsage, configure_provider, register_provider, resolve_model,
    resolve_model_with,
};
use serde_json::json;

use crate::setup::{APIS, KEY, Vendor, hello, register};

async fn failure(api: ModelApi, turn: StandInTurn) -> ModelError {
    Vendor::playing(api, [turn]).await.ask(hello()).await.unwrap_err()
}

#[tokio::test]
async fn a_status_and_a_type_make_the_kind() {
    for api in APIS {
        let kind =
            async |status, error_type| failure(api, StandInTurn::failure(status, error_type, "m")).await.kind;
        assert_eq!(kind(400, "invalid_request_error").await, ModelErrorKind::Invalid);
        assert_eq!(kind(400, "context_length_exceeded").await, ModelErrorKind::ContextOverflow);
        assert_eq!(kind(401, "authentication_error").await, ModelErrorKind::Unauthorized);
        assert_eq!(kind(404, "not_found_error").await, ModelErrorKind::NotFound);
        assert_eq!(kind(413, "request_too_large").await, ModelErrorKind::ContextOverflow);
        assert_eq!(kind(502, "").await, ModelErrorKind::Unavailable);
        assert_eq!(failure(api, StandInTurn::overloaded()).await.kind, ModelErrorKind::Overloaded);
        assert_eq!(failure(api, StandInTurn::server_error()).await.kind, ModelErrorKind::Unavailable);
        let limited = failure(api, StandInTurn::rate_limited(Duration::from_secs(7))).await;
        assert_eq!(limited.kind, ModelErrorKind::RateLimited);
        assert_eq!(limited.retry_after, Some(Duration::from_secs(7)));
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_fails_after_what_came() {
    for api in APIS {
        let vendor = Vendor::playing(api, [StandInTurn::text("a text that is long enough").cut()]).await;
        let (events, end) = vendor.ask_to_the_end(hello()).await;
        assert!(matches!(events.first(), Some(ModelEvent::TextDelta(_))), "{api:?}: {events:?}");
        assert_eq!(end.unwrap_err().kind, ModelErrorKind::Cut, "{api:?}");
    }
}

#[tokio::test]
async fn a_tool_call_that_is_cut_is_never_complete() {
    for api in APIS {
        let turn = StandInTurn::call("call_1", "read", json!({"path": "a.txt"})).cut();
        let (events, end) = Vendor::playing(api, [turn]).await.ask_to_the_end(hello()).await;
        assert!(matches!(events.first(), Some(ModelEvent::ToolCallStart { .. })), "{api:?}: {events:?}");
        assert!(events.iter().any(|event| matches!(event, ModelEvent::ToolCallDelta { .. })), "{api:?}");
        assert_eq!(end.unwrap_err().kind, ModelErrorKind::Cut, "{api:?}");
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_an_answer_has_the_kind_of_its_type() {
    for api in APIS {
        for (error_type, kind) in [
            ("overloaded_error", ModelErrorKind::Overloaded),
            ("server_error", ModelErrorKind::Unavailable),
            ("rate_limit_exceeded", ModelErrorKind::RateLimited),
        ] {
            let turn = StandInTurn::text("a text that is long enough").broken_by(error_type);
            let (events, end) = Vendor::playing(api, [turn]).await.ask_to_the_end(hello()).await;
            assert!(!events.is_empty());
            assert_eq!(end.unwrap_err().kind, kind, "{api:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_stands_still_is_a_timeout() {
    for api in APIS {
        let mut options = ModelOptions::default();
        (options.tries, options.idle_timeout_ms) = (1, 100);
        let turn = StandInTurn::text("slow").slowed(Duration::from_secs(30));
        let failure = Vendor::with(api, options, [turn]).await.ask(hello()).await.unwrap_err();
        assert_eq!(failure.kind, ModelErrorKind::Timeout);
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_unreachable() {
    let mut options = ModelOptions::default();
    options.tries = 1;
    // This port was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for api in APIS {
        let name = register(api, &format!("http://user:password@{free}/v1"));
        let model = resolve_model_with(&format!("{name}/m"), options).unwrap();
        let failure = model.stream(hello()).await.err().unwrap();
        assert_eq!(failure.kind, ModelErrorKind::Unreachable, "{failure}");
        assert!(!failure.message.contains("password"), "{failure}");
        assert!(failure.message.contains(&format!("http://{free} can't be reached")), "{failure}");
    }
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_is_not_told() {
    for api in APIS {
        let said = format!("the key {KEY} is wrong");
        let failure = failure(api, StandInTurn::failure(401, "authentication_error", &said)).await;
        assert_eq!(failure.message, "the provider answered 401: the key <redacted> is wrong");
    }
}

#[test]
fn a_key_is_in_no_debug() {
    let mut registration =
        ProviderRegistration::new(ModelApi::OpenaiCompletions, format!("http://u:{KEY}@host/v1"));
    registration.api_key = Some(ApiKey::from(KEY));
    registration.headers.insert("x-auth-token".to_owned(), KEY.to_owned());
    let mut settings = ModelProviderSettings::default();
    settings.api_key = Some(ApiKey::from(KEY));
    settings.headers.insert("authorization".to_owned(), KEY.to_owned());
    let shown = format!("{registration:?} {settings:?}");
    assert!(!shown.contains(KEY), "{shown}");
    assert!(shown.contains("host") && shown.contains("authorization"), "{shown}");
}

#[test]
fn a_name_that_is_none_is_refused_with_the_names_there_are() {
    let refused = |name: &str| resolve_model(name).err().unwrap().to_string();
    assert_eq!(
        refused("gpt-5"),
        "`model` `gpt-5` names no provider: write `provider/model-id`, such as `anthropic/claude-haiku-4-5`"
    );
    assert_eq!(refused("openai/"), "`model` `openai/` names no model: write `openai/model-id`");
    register_provider("known", ProviderRegistration::new(ModelApi::OpenaiCompletions, "http://127.0.0.1:1"));
    let unknown = refused("opanai/gpt-5");
    assert!(unknown.contains("`opanai`, which is not one of"), "{unknown}");
    assert!(
        unknown.contains("anthropic") && unknown.contains("known") && unknown.contains("ollama"),
        "{unknown}"
    );
    register_provider("addressless", ProviderRegistration::new(ModelApi::OpenaiCompletions, "127.0.0.1"));
    assert!(refused("addressless/m").contains("must be an address"));
}

#[tokio::test]
async fn settings_of_a_provider_replace_its_address_key_and_headers() {
    let vendor = Vendor::playing(ModelApi::OpenaiResponses, [StandInTurn::text("x")]).await;
    let mut settings = ModelProviderSettings::default();
    settings.base_url = Some(vendor.stand_in.url().to_owned());
    settings.api_key = Some(ApiKey::from("another-key"));
    settings.headers.insert("X-Team".to_owned(), "blue".to_owned());
    settings.store_responses = Some(true);
    configure_provider("configured", settings);
    let mut registration = ProviderRegistration::new(ModelApi::OpenaiResponses, "http://127.0.0.1:1");
    registration.headers.insert("x-team".to_owned(), "red".to_owned());
    registration.headers.insert("x-kept".to_owned(), "yes".to_owned());
    registration.provider = Some("configured".to_owned());
    register_provider("to-configure", registration);
    let model = resolve_model("to-configure/m").unwrap();
    assert_eq!(model.info().provider, "configured");
    assert!(model.stream(hello()).await.is_ok());
    let asked = vendor.stand_in.requests().remove(0);
    assert_eq!(asked.headers["authorization"], "Bearer another-key");
    assert_eq!((asked.headers["x-team"].as_str(), asked.headers["x-kept"].as_str()), ("blue", "yes"));
    assert_eq!(asked.body["store"], true);
}

#[tokio::test]
async fn a_header_that_is_given_takes_the_place_of_the_usual_one() {
    for api in APIS {
        let vendor = Vendor::playing(api, [StandInTurn::text("x")]).await;
        let url = vendor.stand_in.url().replace("http://", "http://user:password@");
        let mut registration = ProviderRegistration::new(api, url);
        registration.api_key = Some(ApiKey::from(KEY));
        let given = "application/json; charset=utf-8";
        registration.headers.insert("Content-Type".to_owned(), given.to_owned());
        let name = format!("with-headers-{api:?}");
        register_provider(name.clone(), registration);
        assert!(resolve_model(&format!("{name}/m")).unwrap().stream(hello()).await.is_ok());
        let asked = vendor.stand_in.requests().remove(0);
        assert_eq!(asked.headers["content-type"], given, "{api:?}");
        if api != ModelApi::AnthropicMessages {
            assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"), "{api:?}");
        }
    }
}

#[tokio::test]
async fn no_form_of_a_credential_that_a_provider_repeats_is_told() {
    let said = "canary-auth-1 canary-sid-2 canary-tick-3 canary-pass/4 canary-query-5 sid=canary-sid-2";
    for (number, api) in APIS.into_iter().enumerate() {
        let vendor = Vendor::playing(api, [StandInTurn::failure(401, "authentication_error", said)]).await;
        let url = vendor.stand_in.url().replace("http://", "http://user:canary-pass%2F4@");
        let mut registration = ProviderRegistration::new(api, format!("{url}?api_key=canary-query-5"));
        registration.api_key = Some(ApiKey::from(KEY));
        for (name, value) in [
            ("X-Auth", "canary-auth-1"),
            ("Cookie", "sid=canary-sid-2; t=canary-tick-3"),
            ("x-team", "repeats"),
        ] {
            registration.headers.insert(name.to_owned(), value.to_owned());
        }
        let shown = format!("{registration:?}");
        assert!(!shown.contains("canary"), "{shown}");
        register_provider(format!("forms-{number}"), registration);
        let model = resolve_model(&format!("forms-{number}/m")).unwrap();
        let failure = model.stream(hello()).await.err().unwrap();
        assert_eq!(failure.kind, ModelErrorKind::Unauthorized);
        assert!(!failure.message.contains("canary") && failure.message.contains("<redacted>"), "{failure}");
    }
}

#[test]
fn a_long_part_of_an_address_is_not_shown() {
    let url = "https://gateway.example.com/v1/canary-0123456789-0123456789/openai?key=canary";
    let shown = format!("{:?}", ProviderRegistration::new(ModelApi::OpenaiCompletions, url));
    assert!(
        shown.contains("https://gateway.example.com/v1/…/openai") && !shown.contains("canary"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_turn_that_is_cut_tells_the_tokens_that_it_took() {
    let usage = TokenUsage { input: 20, output: 7, cache_read: 100, ..TokenUsage::default() };
    let turn = || StandInTurn::text("a text that is long enough").with_usage(usage);
    for turn in [turn().cut(), turn().broken_by("overloaded_error")] {
        let vendor = Vendor::playing(ModelApi::AnthropicMessages, [turn]).await;
        let (_, end) = vendor.ask_to_the_end(hello()).await;
        // The number of tokens that were written comes at the end.
        let expected = TokenUsage { output: 1, total_tokens: 121, ..usage };
        assert_eq!(*end.unwrap_err().usage, expected);
    }
}

#[tokio::test]
async fn tries_that_came_to_nothing_count_together() {
    let turn = || StandInTurn::text("").with_usage(TokenUsage { input: 20, ..TokenUsage::default() }).cut();
    let mut options = ModelOptions::default();
    (options.tries, options.first_wait_ms) = (3, 1);
    let vendor = Vendor::with(ModelApi::AnthropicMessages, options, [turn(), turn(), turn()]).await;
    let failure = vendor.ask(hello()).await.unwrap_err();
    assert_eq!((failure.kind, failure.usage.input), (ModelErrorKind::Cut, 60));
}
