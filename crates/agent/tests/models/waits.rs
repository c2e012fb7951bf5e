//! Retries of turns.

use std::time::{Duration, Instant};

use eyot_agent::standin::StandInTurn;
use eyot_agent::{ModelApi, ModelErrorKind, ModelOptions};

use crate::setup::{APIS, Vendor, hello};

fn quick() -> ModelOptions {
    let mut options = ModelOptions::default();
    options.first_wait_ms = 10;
    options
}

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_again() {
    for api in APIS {
        let turns = [StandInTurn::overloaded(), StandInTurn::server_error(), StandInTurn::text("x")];
        let vendor = Vendor::with(api, quick(), turns).await;
        vendor.turn(hello()).await;
        assert_eq!(vendor.stand_in.requests().len(), 3);
    }
}

#[tokio::test]
async fn after_the_last_try_the_failure_is_told() {
    let turns = [
        StandInTurn::overloaded(),
        StandInTurn::overloaded(),
        StandInTurn::overloaded(),
        StandInTurn::text("x"),
    ];
    let vendor = Vendor::with(ModelApi::AnthropicMessages, quick(), turns).await;
    assert_eq!(vendor.ask(hello()).await.unwrap_err().kind, ModelErrorKind::Overloaded);
    assert_eq!(vendor.stand_in.turns_left(), 1);
}

#[tokio::test]
async fn a_request_that_is_wrong_is_not_tried_again() {
    let turns = [StandInTurn::failure(400, "invalid_request_error", "no"), StandInTurn::text("x")];
    let vendor = Vendor::with(ModelApi::AnthropicMessages, quick(), turns).await;
    assert_eq!(vendor.ask(hello()).await.unwrap_err().kind, ModelErrorKind::Invalid);
    assert_eq!(vendor.stand_in.turns_left(), 1);
}

#[tokio::test]
async fn a_provider_is_left_alone_as_long_as_it_asks() {
    let wait = Duration::from_millis(300);
    for api in APIS {
        let vendor =
            Vendor::with(api, quick(), [StandInTurn::rate_limited(wait), StandInTurn::text("x")]).await;
        let begin = Instant::now();
        vendor.turn(hello()).await;
        assert!(begin.elapsed() >= wait);
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_left_to_the_caller() {
    let turns = [StandInTurn::failure(429, "rate_limit_error", "later").with_header("retry-after", "61")];
    let vendor = Vendor::with(ModelApi::OpenaiResponses, quick(), turns).await;
    let failure = vendor.ask(hello()).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.retry_after),
        (ModelErrorKind::RateLimited, Some(Duration::from_secs(61)))
    );
    assert_eq!(vendor.stand_in.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_began_is_not_asked_for_again() {
    for api in APIS {
        let turns = [StandInTurn::text("a text that is long enough").cut(), StandInTurn::text("x")];
        let vendor = Vendor::with(api, quick(), turns).await;
        let (events, end) = vendor.ask_to_the_end(hello()).await;
        assert!(!events.is_empty());
        assert_eq!(end.unwrap_err().kind, ModelErrorKind::Cut);
        assert_eq!(vendor.stand_in.turns_left(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_ends_before_it_began_is_asked_for_again() {
    for api in APIS {
        let vendor = Vendor::with(api, quick(), [StandInTurn::empty().cut(), StandInTurn::text("x")]).await;
        vendor.turn(hello()).await;
        assert_eq!(vendor.stand_in.requests().len(), 2);
    }
}
