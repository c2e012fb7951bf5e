//! Following: history, then what comes, whoever appends it.

use std::pin::pin;

use eyot_engine::events::{EventKind, NewEvent};
use futures_util::StreamExt;

use crate::log::Scene;

#[tokio::test]
async fn history_comes_first_and_then_what_another_handle_appends() {
    let scene = Scene::with(3);
    let mut followed = pin!(scene.log.follow(2));
    let mut numbers = Vec::new();
    for _ in 0..2 {
        numbers.push(followed.next().await.unwrap().unwrap().seq);
    }
    let other = scene.again();
    for _ in 0..3 {
        other.record(NewEvent::new(EventKind::Woke, "it was called")).await.unwrap();
        numbers.push(followed.next().await.unwrap().unwrap().seq);
    }
    assert_eq!(numbers, [2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_follower_of_rotating_segments_misses_nothing_that_is_kept() {
    let scene = Scene::new(5, 1000);
    let mut followed = pin!(scene.log.follow(1));
    let log = scene.log.clone();
    let writing = tokio::task::spawn_blocking(move || {
        for _ in 0..500 {
            log.append(NewEvent::new(EventKind::Slept, "it was idle")).unwrap();
        }
    });
    for seq in 1..=500 {
        assert_eq!(followed.next().await.unwrap().unwrap().seq, seq);
    }
    writing.await.unwrap();
    assert!(scene.segments().len() >= 100);
}

#[tokio::test]
async fn a_follower_that_slept_through_whole_segments_goes_on_with_the_first_that_is_kept() {
    let scene = Scene::new(5, 2);
    scene.slept(1);
    let mut followed = pin!(scene.log.follow(1));
    assert_eq!(followed.next().await.unwrap().unwrap().seq, 1);
    scene.slept(28);
    let mut seen = vec![1];
    while seen.last() != Some(&29) {
        seen.push(followed.next().await.unwrap().unwrap().seq);
    }
    assert!(seen.is_sorted() && seen.ends_with(&[25, 26, 27, 28, 29]), "{seen:?}");
    assert!(seen.len() < 29, "{seen:?}");
}

#[tokio::test]
async fn many_followers_share_one_watch_and_each_has_its_place() {
    let scene = Scene::with(1);
    let mut followers: Vec<_> = (0..200).map(|_| Box::pin(scene.log.follow(1))).collect();
    for follower in &mut followers {
        assert_eq!(follower.next().await.unwrap().unwrap().seq, 1);
    }
    scene.slept(1);
    for follower in &mut followers {
        assert_eq!(follower.next().await.unwrap().unwrap().seq, 2);
    }
}

#[tokio::test]
async fn a_torn_line_is_not_told_and_what_replaces_it_is() {
    let scene = Scene::with(1);
    scene.scribble(1, "{\"seq\":2,\"time_ms\":");
    let mut followed = pin!(scene.log.follow(1));
    assert_eq!(followed.next().await.unwrap().unwrap().seq, 1);
    let waiting = async { (followed.next().await, followed.next().await) };
    let (told, ()) = tokio::join!(waiting, async { scene.slept(1) });
    assert!(matches!(told.0.unwrap().unwrap().kind, EventKind::Reconciled { .. }));
    assert_eq!(told.1.unwrap().unwrap().seq, 3);
}

#[tokio::test]
async fn a_line_that_is_no_event_ends_the_stream_with_an_error() {
    let scene = Scene::with(2);
    scene.edit(1, |lines| lines[1] = "nonsense".to_owned());
    let followed: Vec<_> = scene.log.follow(2).collect().await;
    assert_eq!(followed.len(), 1);
    assert!(followed[0].is_err());
}
