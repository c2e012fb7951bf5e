//! Streams of events: live, afterwards, and taken up again.

use axum::body::Body;
use axum::extract::Request;
use eyot_agent::{RouterOptions, router};
use futures_util::StreamExt;
use serde_json::json;
use tower::util::ServiceExt;

use crate::ground::{Ground, agents, frames};

#[tokio::test]
async fn a_stream_that_is_cut_at_any_event_goes_on_without_loss_and_without_repetition() {
    let ground = Ground::new().await;
    ground.steps.add_permits(20);
    let id = ground.leave("/agents/steps/i", json!({"lines": 20})).await;
    let whole = frames(&ground.stream(&id, None).await);
    assert_eq!(whole.len(), 22);
    for (number, _) in whole.iter().enumerate() {
        let rest = frames(&ground.stream(&id, Some(&number.to_string())).await);
        assert_eq!(rest, whole[number + 1..], "{number}");
    }
}

#[tokio::test]
async fn a_live_stream_is_taken_up_at_each_event_while_the_run_goes_on() {
    let ground = Ground::new().await;
    let id = ground.leave("/agents/steps/i", json!({"lines": 20})).await;
    let mut seen: Vec<u64> = Vec::new();
    loop {
        // One more event comes while nobody listens, and one while somebody does.
        ground.steps.add_permits(1);
        let request = ground.request(reqwest::Method::GET, &format!("/runs/{id}/stream"));
        let request = match seen.last() {
            Some(last) => request.header("last-event-id", last.to_string()),
            None => request,
        };
        let mut answer = request.send().await.unwrap();
        let piece = answer.chunk().await.unwrap().unwrap();
        let text = String::from_utf8(piece.to_vec()).unwrap();
        // A client keeps what came whole.
        let whole = text.rfind("\n\n").map_or("", |end| &text[..end + 2]);
        seen.extend(frames(whole).iter().map(|(_, number, _)| *number));
        if frames(whole).iter().any(|(kind, ..)| kind == "run_end") {
            break;
        }
    }
    assert_eq!(seen, (0..22).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_last_event_id_that_is_no_number_is_as_if_there_were_none() {
    let ground = Ground::new().await;
    let id = ground.leave("/agents/echo/i", json!({})).await;
    for (header, first) in [("x", 0), ("-1", 0), ("", 0), ("0", 1), (" 0 ", 1), ("0abc", 1)] {
        let told = frames(&ground.stream(&id, Some(header)).await);
        assert_eq!(told.first().unwrap().1, first, "{header}");
    }
    assert!(frames(&ground.stream(&id, Some("99999999999999999999999")).await).len() == 2);
    assert!(frames(&ground.stream(&id, Some("1")).await).is_empty(), "the run has ended with event 1");
}

#[tokio::test]
async fn a_stream_ends_when_the_server_stops_and_its_run_goes_on() {
    let ground = Ground::new().await;
    let id = ground.leave("/agents/steps/i", json!({"lines": 1})).await;
    let mut answer = ground.get(&format!("/runs/{id}/stream")).await;
    assert!(answer.chunk().await.unwrap().is_some());
    ground.stop.cancel();
    assert_eq!(answer.chunk().await.unwrap(), None);
    assert_eq!(ground.json(&format!("/runs/{id}")).await["status"], "active");
}

#[tokio::test(start_paused = true)]
async fn a_stream_in_which_nothing_happens_has_a_heartbeat_every_fifteen_seconds() {
    // Without a socket: the clock of the test goes on only while nothing else can be done.
    let (agents, _) = agents();
    let run = agents.run("steps", "i", json!({"lines": 1})).await.unwrap();
    let app = router(agents, RouterOptions::default());
    let request = Request::get(format!("/runs/{}/stream", run.id())).body(Body::empty()).unwrap();
    let mut pieces = app.oneshot(request).await.unwrap().into_body().into_data_stream();
    let first = pieces.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: run_start\nid: 0\ndata: {"), "{first:?}");
    let before = tokio::time::Instant::now();
    assert_eq!(pieces.next().await.unwrap().unwrap(), ": heartbeat\n\n");
    assert_eq!(before.elapsed().as_secs(), 15);
}

#[tokio::test]
async fn the_admin_routes_play_a_run_again() {
    let ground = Ground::new().await;
    let id = ground.leave("/agents/echo/i", json!({})).await;
    let whole = ground.stream(&id, None).await;
    assert_eq!(ground.get(&format!("/admin/runs/{id}/stream")).await.text().await.unwrap(), whole);
    let events = ground.json(&format!("/admin/runs/{id}/events")).await;
    assert_eq!(events["events"].as_array().unwrap().len(), frames(&whole).len());
}
