//! Appending and reading, rotation, and what a process that was killed leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use eyot::ErrorKind;
use eyot_engine::events::{EventHash, EventKind, EventLog, EventLogOptions, NewEvent, VerifiedLog};

use crate::log::Scene;

#[test]
fn events_are_numbered_from_one_and_each_names_the_hash_of_the_one_before() {
    let scene = Scene::with(3);
    let events = scene.all();
    assert_eq!(scene.numbers(), [1, 2, 3]);
    assert_eq!(events[0].previous, EventHash::ZERO);
    assert_eq!((events[1].previous, events[2].previous), (events[0].hash, events[1].hash));
    assert_eq!(scene.holds(), VerifiedLog { events: 3, first_seq: 1, last_seq: 3 });
}

#[test]
fn what_is_appended_is_what_is_read() {
    let scene = Scene::with(0);
    let kind = EventKind::PortOpened { port: 80, url: "http://localhost:1/\n\"ä".to_owned() };
    let new = NewEvent::new(kind, "browse was called").in_pool("p").of_sandbox("box", "sb_0");
    let appended = scene.log.append(new.clone()).unwrap();
    assert_eq!(scene.all(), std::slice::from_ref(&appended));
    assert_eq!((appended.kind, appended.reason), (new.kind, new.reason));
    assert_eq!(
        (appended.pool, appended.sandbox, appended.sandbox_id),
        (new.pool, new.sandbox, new.sandbox_id)
    );
}

#[test]
fn an_event_without_a_reason_is_refused_and_takes_no_number() {
    let scene = Scene::with(1);
    let error = scene.log.append(NewEvent::new(EventKind::Woke, " ")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    scene.slept(1);
    assert_eq!(scene.numbers(), [1, 2]);
}

#[test]
fn options_that_keep_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (max_segment_bytes, max_segments) in [(0, 1), (1, 0)] {
        let options = EventLogOptions { max_segment_bytes, max_segments };
        assert_eq!(
            EventLog::open(folder.path(), options).err().map(|error| error.kind()),
            Some(ErrorKind::Invalid)
        );
    }
}

#[test]
fn only_the_owner_may_read_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path().join("a/events"), EventLogOptions::default()).unwrap();
    log.append(NewEvent::new(EventKind::Woke, "it was called")).unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("a/events"), mode("a/events/head")), (0o700, 0o600));
    assert_eq!(mode("a/events/00000000000000000001.jsonl"), 0o600);
}

#[test]
fn the_oldest_segments_go_and_the_first_line_that_is_kept_anchors_the_chain() {
    let scene = Scene::new(10, 3);
    scene.slept(45);
    assert_eq!(scene.segments(), [21, 31, 41]);
    assert_eq!(scene.numbers(), (21..=45).collect::<Vec<u64>>());
    assert_eq!(scene.holds(), VerifiedLog { events: 25, first_seq: 21, last_seq: 45 });
}

#[test]
fn one_segment_of_one_line_is_a_log_too() {
    let scene = Scene::new(1, 1);
    scene.slept(5);
    assert_eq!(scene.numbers(), [5]);
    assert_eq!(scene.holds(), VerifiedLog { events: 1, first_seq: 5, last_seq: 5 });
}

#[test]
fn reading_begins_at_a_number_in_any_segment_and_ends_at_the_limit() {
    let scene = Scene::new(10, 16);
    scene.slept(35);
    let read = |from, limit| {
        scene.log.read(from, limit).unwrap().iter().map(|event| event.seq).collect::<Vec<u64>>()
    };
    assert_eq!(read(9, 4), [9, 10, 11, 12]);
    assert_eq!(read(31, 2), [31, 32]);
    assert_eq!(read(0, 1), [1]);
    assert_eq!((read(36, 9), read(u64::MAX, 9), read(1, 0)), (vec![], vec![], vec![]));
    assert_eq!(read(1, usize::MAX).len(), 35);
}

#[test]
fn what_another_handle_appends_is_continued() {
    let scene = Scene::with(2);
    let other = scene.again();
    for seq in 3..20 {
        let log = if seq % 3 == 0 { &other } else { &scene.log };
        let event = log.append(NewEvent::new(EventKind::Woke, "it was called")).unwrap();
        assert_eq!(event.seq, seq);
    }
    assert_eq!(scene.holds().events, 19);
}

#[test]
fn a_torn_last_line_is_no_fault_and_the_next_append_cuts_it_off_and_says_so() {
    let scene = Scene::with(3);
    let torn = scene.lines(1)[2][..100].to_owned();
    scene.scribble(1, &torn);
    assert_eq!(scene.holds().last_seq, 3);
    assert_eq!(scene.numbers(), [1, 2, 3]);
    scene.slept(1);
    let events = scene.all();
    let EventKind::Reconciled { what } = &events[3].kind else { panic!("{:?}", events[3]) };
    assert_eq!(what, "100 bytes of a torn line after event 3 were cut off");
    assert_eq!((events.len(), &events[4].kind), (5, &EventKind::Slept));
    assert_eq!(scene.holds().last_seq, 5);
}

#[test]
fn a_whole_line_that_the_head_does_not_know_is_kept() {
    let scene = Scene::with(3);
    let head = fs::read(scene.file("head")).unwrap();
    scene.slept(2);
    fs::write(scene.file("head"), head).unwrap();
    assert_eq!(scene.holds().last_seq, 5);
    scene.slept(1);
    assert_eq!(scene.numbers(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(scene.holds().last_seq, 6);
}

#[test]
fn a_head_that_is_older_than_whole_segments_is_brought_up_to_date() {
    let scene = Scene::new(10, 16);
    scene.slept(5);
    let head = fs::read(scene.file("head")).unwrap();
    scene.slept(40);
    fs::write(scene.file("head"), head).unwrap();
    scene.slept(1);
    assert_eq!(scene.numbers(), (1..=46).collect::<Vec<u64>>());
    assert_eq!(scene.holds().last_seq, 46);
}

#[test]
fn a_segment_that_was_announced_and_never_made_is_made_later() {
    let scene = Scene::new(10, 16);
    scene.slept(10);
    let head = fs::read_to_string(scene.file("head")).unwrap();
    let bytes = fs::metadata(scene.segment(1)).unwrap().len();
    let announced = head
        .replace("\"segment\":1,", "\"segment\":11,")
        .replace(&format!("\"bytes\":{bytes}"), "\"bytes\":0");
    assert_ne!(head, announced);
    fs::write(scene.file("head"), announced).unwrap();
    assert_eq!(scene.holds().last_seq, 10);
    scene.slept(1);
    assert_eq!((scene.segments(), scene.holds().last_seq), (vec![1, 11], 11));
}

#[test]
fn a_folder_that_was_emptied_under_the_writer_holds_a_new_log() {
    let scene = Scene::with(3);
    fs::remove_file(scene.file("head")).unwrap();
    fs::remove_file(scene.segment(1)).unwrap();
    scene.slept(2);
    assert_eq!(scene.numbers(), [1, 2]);
    assert_eq!(scene.holds().events, 2);
}

#[test]
fn threads_of_one_process_share_the_log() {
    let scene = Scene::new(50, 16);
    std::thread::scope(|scope| {
        for log in [scene.log.clone(), scene.log.clone(), scene.again(), scene.again()] {
            scope.spawn(move || {
                for _ in 0..50 {
                    log.append(NewEvent::new(EventKind::Slept, "it was idle")).unwrap();
                }
            });
        }
    });
    assert_eq!(scene.holds(), VerifiedLog { events: 200, first_seq: 1, last_seq: 200 });
}

#[tokio::test]
async fn async_code_records_without_blocking() {
    let scene = Scene::with(0);
    let event = scene.log.record(NewEvent::new(EventKind::Created, "it was called")).await.unwrap();
    assert_eq!(scene.all(), [event]);
}
