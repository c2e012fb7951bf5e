//! The end of a command's output, when something that the command left behind still holds it open.
#![cfg(feature = "program")]
#![allow(clippy::unwrap_used)]

mod program_client;

use std::time::{Duration, Instant};

use eyot_guest::protocol::*;
use program_client::Guest;

const TERMINAL: Option<Terminal> = Some(Terminal { rows: 24, cols: 80 });

/// The median of how long a line takes.
fn duration_of(guest: &mut Guest, line: &str) -> Duration {
    let mut all: Vec<Duration> = (0..15)
        .map(|_| {
            let begun = Instant::now();
            guest.run(line);
            begun.elapsed()
        })
        .collect();
    all.sort();
    all[all.len() / 2]
}

#[test]
fn what_comes_out_of_a_process_substitution_is_output() {
    let mut guest = Guest::start();
    for line in ["exec > >(tee log) 2>&1; echo one", "echo one | tee >(cat) >/dev/null"] {
        for round in 0..40 {
            let outcome = guest.run(line);
            assert_eq!(outcome.stdout, "one\n", "{line}, {round}");
        }
    }
}

#[test]
fn both_streams_are_heard_out() {
    let mut guest = Guest::start();
    let outcome = guest.run("exec > >(sed s/^/out:/) 2> >(sed s/^/err:/ >&2); echo a; echo b >&2; exit 3");
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("out:a\n", "err:b\n"));
    assert_eq!((outcome.status, outcome.output_open), (Status::Exited(3), false));
}

#[test]
fn a_lot_of_output_through_a_process_substitution_is_whole() {
    let mut guest = Guest::start();
    for _ in 0..5 {
        let outcome = guest.run("head -c 204800 /dev/zero > >(cat)");
        assert_eq!((outcome.stdout.len(), outcome.output_open), (204_800, false));
    }
}

#[test]
fn a_reader_that_takes_nothing_for_a_while_loses_nothing() {
    let mut guest = Guest::start();
    // More than the window and both pipes: `cat` writes long after the command's end.
    let bytes = 4 * WINDOW as usize;
    let exec = guest.exec(&format!("head -c {bytes} /dev/zero > >(cat); echo ended >&2"));
    let call = guest.client.begin(&Request::Exec(exec));
    let mut received = 0;
    while received < WINDOW as usize {
        received += guest.client.next_data_of(call).payload.len();
    }
    for _ in 0..3 {
        // Longer than a command is listened to after its end.
        std::thread::sleep(Duration::from_millis(120));
        guest.client.send(Kind::Credit, call, CHANNEL_STDOUT, &(WINDOW / 8).to_le_bytes());
    }
    guest.client.send(Kind::Credit, call, CHANNEL_STDOUT, &(8 * WINDOW).to_le_bytes());
    let mut errors = 0;
    let reply = guest.client.finish_with(call, |frame| match (frame.header.kind, frame.header.channel) {
        (Kind::Data, CHANNEL_STDOUT) => received += frame.payload.len(),
        (Kind::Data, _) => errors += frame.payload.len(),
        _ => {}
    });
    assert_eq!(reply, Ok(Reply::Exited(Status::Exited(0), None)));
    assert_eq!((received, errors), (bytes, 6));
}

#[test]
fn a_background_child_delays_nothing_and_the_answer_says_that_it_holds_the_output() {
    let mut guest = Guest::start();
    for line in ["sleep 60 & echo now", "(sleep 5; echo late) & echo now"] {
        let begun = Instant::now();
        let outcome = guest.run(line);
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        assert_eq!((outcome.stdout.as_str(), outcome.output_open), ("now\n", true), "{line}");
    }
    // The child has let go of the output when its shell ends.
    let line = "(exec >/dev/null 2>&1; touch there; sleep 60) & until [ -e there ]; do :; done; echo now";
    let redirected = guest.run(line);
    assert_eq!((redirected.stdout.as_str(), redirected.output_open), ("now\n", false));
}

#[test]
fn silence_costs_a_background_child_some_milliseconds_and_nobody_else_any() {
    let mut guest = Guest::start();
    let plain = duration_of(&mut guest, "true");
    let background = duration_of(&mut guest, "sleep 60 &");
    assert!(background < plain + Duration::from_millis(30), "{background:?} after {plain:?}");
    // Who computes may write at any time, for so long and no longer.
    let busy = duration_of(&mut guest, "timeout 2 sh -c 'while :; do :; done' &");
    assert!(busy < plain + Duration::from_millis(500), "{busy:?} after {plain:?}");
}

#[test]
fn a_background_child_that_never_stops_writing_is_cut_off() {
    let mut guest = Guest::start();
    for line in ["yes & echo now", "yes | while read -r l; do echo $l; sleep 0.001; done & echo now"] {
        let begun = Instant::now();
        let outcome = guest.run(line);
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        assert!(outcome.stdout.contains("now\n") && outcome.output_open, "{line}");
    }
}

#[test]
fn commands_that_wait_for_last_words_hold_up_nobody() {
    let mut guest = Guest::start();
    let calls: Vec<u32> = (0..100)
        .map(|index| {
            let exec = guest.exec(&format!("exec > >(cat); echo {index}"));
            guest.client.begin(&Request::Exec(exec))
        })
        .collect();
    assert_eq!(guest.client.call(&Request::Ping), Ok(Reply::Done));
    for (index, call) in calls.into_iter().enumerate() {
        assert_eq!(guest.client.collect(call).unwrap().status, Status::Exited(0), "{index}");
    }
}

#[test]
fn a_terminal_is_heard_out_as_well() {
    let mut guest = Guest::start();
    for round in 0..20 {
        let exec = Exec { terminal: TERMINAL, ..guest.exec("trap '' HUP; exec > >(cat) 2>&1; echo one") };
        let outcome = guest.client.run(exec);
        assert_eq!(outcome.stdout, "one\r\n", "{round}");
    }
    let exec = Exec { terminal: TERMINAL, ..guest.exec("trap '' HUP; sleep 60 & echo now") };
    let outcome = guest.client.run(exec);
    assert_eq!((outcome.stdout.as_str(), outcome.output_open), ("now\r\n", true));
}

#[test]
fn a_killed_command_leaves_nothing_open() {
    let mut guest = Guest::start();
    let exec = guest.exec("sleep 60 & exec > >(cat); echo one; sleep 60");
    let call = guest.client.begin(&Request::Exec(exec));
    assert_eq!(guest.client.read_until(call, "one\n"), "one\n");
    guest.client.control(call, Control::Kill);
    let outcome = guest.client.collect(call).unwrap();
    assert_eq!((outcome.status, outcome.output_open), (Status::Signaled(9), false));
}

#[test]
fn a_command_can_be_killed_while_its_last_words_are_waited_for() {
    let mut guest = Guest::start();
    // Nothing is granted, so nothing is read any more and the clock stands. What is left behind writes fast once the shell is gone.
    let exec = guest.exec("(while kill -0 $$ 2>/dev/null; do echo; done; exec yes) & echo now >&2");
    let call = guest.client.begin(&Request::Exec(exec));
    let mut received = 0;
    while received < WINDOW as usize {
        let frame = guest.client.next_data_of(call);
        received += if frame.header.channel == CHANNEL_STDOUT { frame.payload.len() } else { 0 };
    }
    guest.client.send(Kind::Cancel, call, 0, &[]);
    assert_eq!(guest.client.finish(call), Ok(Reply::Exited(Status::Exited(0), None)));
}

#[test]
fn the_end_of_a_started_process_comes_after_its_last_words() {
    let mut guest = Guest::start();
    for round in 0..20 {
        let exec = guest.exec("exec > >(tee log) 2>&1; echo one");
        let process = guest.client.start(exec);
        let request = LogRequest {
            process: process.id,
            stream: None,
            offset: 0,
            tail: None,
            follow: true,
            tail_lines: None,
        };
        let call = guest.client.begin(&Request::Logs(request));
        let mut text = Vec::new();
        let reply = guest.client.finish_with(call, |frame| {
            if frame.header.kind == Kind::Data {
                text.extend_from_slice(&frame.payload[LOG_PREFIX_BYTES..]);
            }
        });
        assert_eq!((reply, String::from_utf8(text).unwrap().as_str()), (Ok(Reply::Done), "one\n"), "{round}");
    }
}
