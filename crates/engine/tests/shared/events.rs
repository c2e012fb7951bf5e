//! The event log of several servers.

use std::sync::Arc;
use std::thread;

use eyot::ErrorKind;
use eyot_engine::events::{BrokenChain, EventKind, EventLog, NewEvent};
use futures_util::StreamExt;

use crate::Case;
use crate::postgres::TestDatabase;

pub const CASES: &[(&str, Case)] = &[
    ("events::servers_append_to_one_chain_that_holds", one_chain),
    ("events::an_event_is_read_as_it_was_written", as_written),
    ("events::a_follower_hears_of_every_servers_events", following),
    ("events::no_line_is_changed_moved_or_removed_unseen", tampering),
    ("events::a_log_is_not_begun_anew", not_anew),
];

fn logs(database: &TestDatabase<'_>) -> [Arc<EventLog>; 2] {
    [EventLog::in_database(database.store()), EventLog::in_database(database.store())]
}

fn event(text: &str) -> NewEvent {
    NewEvent::new(EventKind::ExecStarted { command: text.to_owned() }, "a test asked").in_pool("p")
}

fn one_chain(database: &TestDatabase<'_>) {
    let logs = logs(database);
    thread::scope(|scope| {
        for number in 0..4 {
            let log = &logs[number % 2];
            scope.spawn(move || {
                (0..25).for_each(|at| drop(log.append(event(&format!("{number} {at}"))).unwrap()))
            });
        }
    });
    let verified = logs[1].verify().unwrap();
    assert_eq!((verified.events, verified.first_seq, verified.last_seq), (100, 1, 100));
    let read = logs[0].read(1, 1_000).unwrap();
    assert!(read.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1 && pair[1].previous == pair[0].hash));
    assert_eq!(logs[0].last_seq().unwrap(), 100);
}

fn as_written(database: &TestDatabase<'_>) {
    let [one, other] = logs(database);
    assert_eq!((one.last_seq().unwrap(), one.read(1, 9).unwrap().len()), (0, 0));
    assert_eq!(one.verify().unwrap().events, 0);
    let texts = ["ä € 😀 \" \\ \u{0} \n '", "?1 $1 ?", &"x".repeat(4_000)];
    let written: Vec<_> = texts.map(|text| one.append(event(text)).unwrap()).into();
    assert_eq!(other.read(1, 9).unwrap(), written);
    assert_eq!(other.read(2, 1).unwrap(), written[1..2]);
    assert_eq!(other.read(4, 9).unwrap(), []);
    let commands: Vec<_> = written.into_iter().map(|event| event.kind).collect();
    assert_eq!(commands, texts.map(|text| EventKind::ExecStarted { command: text.to_owned() }));
}

fn following(database: &TestDatabase<'_>) {
    let [one, other] = logs(database);
    one.append(event("before")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut followed = std::pin::pin!(one.follow(1));
        assert_eq!(followed.next().await.unwrap().unwrap().seq, 1);
        for number in 2..6 {
            let appended = other.record(event("later")).await.unwrap();
            let heard = followed.next().await.unwrap().unwrap();
            assert_eq!((heard.seq, &heard), (number, &appended));
        }
    });
}

fn tampering(database: &TestDatabase<'_>) {
    let [one, _] = logs(database);
    (0..5).for_each(|number| drop(one.append(event(&number.to_string())).unwrap()));
    for (change, undo, seq) in [
        ("UPDATE events SET line = replace(line, 'a test', 'no test') WHERE seq = 3", "", 3),
        ("UPDATE events SET seq = 9 WHERE seq = 3", "UPDATE events SET seq = 3 WHERE seq = 9", 3),
        (
            "CREATE TABLE aside AS SELECT * FROM events; DELETE FROM events WHERE seq >= 4",
            "DELETE FROM events; INSERT INTO events SELECT * FROM aside; DROP TABLE aside",
            4,
        ),
        (
            "CREATE TABLE aside AS SELECT * FROM events; DELETE FROM events WHERE seq <= 2",
            "DELETE FROM events; INSERT INTO events SELECT * FROM aside; DROP TABLE aside",
            1,
        ),
        (
            "CREATE TABLE aside AS SELECT * FROM events; DELETE FROM events",
            "INSERT INTO events SELECT * FROM aside; DROP TABLE aside",
            1,
        ),
    ] {
        database.sql(change);
        let error = one.verify().unwrap_err();
        let source =
            std::error::Error::source(&error).and_then(|source| source.downcast_ref::<BrokenChain>());
        assert_eq!(
            (error.kind(), source.map(|broken| broken.seq)),
            (ErrorKind::Conflict, Some(seq)),
            "{error}"
        );
        let undo = if undo.is_empty() {
            change.replace("'a test', 'no test'", "'no test', 'a test'")
        } else {
            undo.into()
        };
        database.sql(&undo);
        assert_eq!(one.verify().unwrap().events, 5);
    }
}

fn not_anew(database: &TestDatabase<'_>) {
    let [one, _] = logs(database);
    assert_eq!(one.begin_anew().unwrap_err().kind(), ErrorKind::Unsupported);
}
