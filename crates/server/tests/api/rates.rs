//! Rate limits of keys, and of addresses without a right key.

use eyot_server::api::ServeLimits;
use futures_util::future::join_all;
use reqwest::{Method, Response};

use crate::ground::{Ground, kind};

/// Sends this many requests at once and returns the answers.
async fn at_once(ground: &Ground, count: usize, key: &str, path: &str) -> Vec<Response> {
    let asked = (0..count).map(|_| ground.as_whom(key, Method::GET, path).send());
    join_all(asked).await.into_iter().map(Result::unwrap).collect()
}

/// Counts the answers with this status.
fn count(answers: &[Response], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status() == status).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_asks_too_much_is_told_when_to_come_back_and_others_are_served() {
    let limits = ServeLimits { max_requests_per_second: 1, max_request_burst: 3, ..ServeLimits::default() };
    let ground = Ground::limited(limits).await;
    let mut answers = at_once(&ground, 100, &ground.ours, "/v1/sandboxes").await;
    assert!(count(&answers, 200) >= 3 && count(&answers, 429) > 0);
    assert_eq!(count(&answers, 200) + count(&answers, 429), 100);
    let place = answers.iter().position(|answer| answer.status() == 429).unwrap();
    let refused = answers.swap_remove(place);
    let seconds: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=3).contains(&seconds));
    assert_eq!(kind(refused).await, "quota");
    let theirs = at_once(&ground, 3, &ground.theirs, "/v1/sandboxes").await;
    assert_eq!(count(&theirs, 200), 3);
    let health = at_once(&ground, 20, &ground.ours, "/v1/health").await;
    assert_eq!(count(&health, 200), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_keys_from_one_address_are_told_to_wait_and_right_ones_are_let_in() {
    let limits = ServeLimits { wrong_keys_per_second: 1, wrong_key_burst: 3, ..ServeLimits::default() };
    let ground = Ground::limited(limits).await;
    let wrong = "eyot_0000wrong0000key0000of0000somebody0000";
    let answers = at_once(&ground, 100, wrong, "/v1/sandboxes").await;
    assert!(count(&answers, 401) >= 3 && count(&answers, 429) > 0);
    assert_eq!(count(&answers, 401) + count(&answers, 429), 100);
    let refused = answers.iter().filter(|answer| answer.status() == 429);
    assert!(refused.clone().all(|answer| answer.headers().contains_key("retry-after")));
    let refused = refused.count();
    assert_eq!(ground.get("/v1/sandboxes").await.status(), 200);
    let metrics = ground.metrics().await.text().await.unwrap();
    let line = format!("eyot_http_requests_refused_total{{by=\"rate_of_wrong_keys\"}} {refused}");
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
}
