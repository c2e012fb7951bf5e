//! One event log, many processes.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use eyot_engine::events::{EventKind, EventLog, EventLogOptions, NewEvent};
use futures_util::StreamExt;
use libtest_mimic::Trial;

use super::role::{Actor, say};

/// Several segments, and no event ever goes.
fn options() -> EventLogOptions {
    EventLogOptions { max_segment_bytes: 20_000, max_segments: 10_000 }
}

fn open(folder: &Path) -> Arc<EventLog> {
    EventLog::open(folder, options()).unwrap()
}

/// Appends this many events (or for ever), and says the number and the hash of each once it is acknowledged.
pub fn append_role(arguments: &[String]) {
    let log = open(Path::new(&arguments[0]));
    let count: u64 = arguments[1].parse().unwrap();
    for index in 0..count {
        let kind = EventKind::ExecStarted { command: "x".repeat(index as usize % 300) };
        let event = log.append(NewEvent::new(kind, "it was called")).unwrap();
        say(format_args!("{} {}", event.seq, event.hash));
    }
}

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("what_many_processes_append_at_once_is_one_chain_without_gaps", || {
            many_at_once();
            Ok(())
        }),
        Trial::test("an_acknowledged_event_survives_the_kill_of_its_process", || {
            killed();
            Ok(())
        }),
        Trial::test("a_follower_is_told_what_another_process_appends", || {
            followed();
            Ok(())
        }),
    ]
}

/// The events' numbers and hashes as the appending processes say them.
fn kept(log: &EventLog) -> Vec<String> {
    let events = log.read(1, usize::MAX).unwrap();
    events.iter().map(|event| format!("{} {}", event.seq, event.hash)).collect()
}

fn many_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let actors: Vec<Actor> = (0..8).map(|_| Actor::start("append", folder.path(), &["150"])).collect();
    let mut said: Vec<String> = actors.into_iter().flat_map(Actor::finish).collect();
    let log = open(folder.path());
    assert_eq!(log.verify().unwrap().last_seq, 8 * 150);
    let mut kept = kept(&log);
    said.sort();
    kept.sort();
    assert_eq!(said, kept);
}

fn killed() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    let mut acknowledged = Vec::new();
    for round in 0..25 {
        let mut actors: Vec<Actor> =
            (0..2).map(|_| Actor::start("append", folder.path(), &["1000000"])).collect();
        // The moment differs from round to round by how much each was let say before.
        for actor in &mut actors {
            acknowledged.extend((0..=round * 3).map(|_| actor.hear()));
        }
        acknowledged.extend(actors.into_iter().flat_map(Actor::kill));
        log.verify().unwrap();
        log.append(NewEvent::new(EventKind::Woke, "its process was killed")).unwrap();
    }
    let verified = log.verify().unwrap();
    let kept = kept(&log);
    assert_eq!((verified.first_seq, verified.events), (1, kept.len() as u64));
    let kept: std::collections::HashSet<String> = kept.into_iter().collect();
    let lost: Vec<String> = acknowledged.into_iter().filter(|said| !kept.contains(said)).collect();
    assert_eq!(lost, Vec::<String>::new());
}

fn followed() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut followed = pin!(log.follow(1));
        let actor = Actor::start("append", folder.path(), &["500"]);
        for seq in 1..=500 {
            assert_eq!(followed.next().await.unwrap().unwrap().seq, seq);
        }
        actor.finish();
    });
}
