//! Calls that are held back for somebody who changes the sandbox's files from outside.
#![cfg(feature = "program")]
#![allow(clippy::unwrap_used)]

mod program_client;

use eyot_guest::protocol::*;
use program_client::*;

/// A client for whom the calls of the others are held back, and the call of the hold.
fn holder(guest: &Guest) -> (Client, u32) {
    let mut holder = guest.connect();
    let hold = holder.begin(&Request::Hold);
    assert_eq!(holder.next_of(hold).header.kind, Kind::Event);
    (holder, hold)
}

fn place(guest: &Guest, name: &str) -> Location {
    Location { path: guest.path(name), beneath: None }
}

#[test]
fn calls_wait_until_the_hold_ends_and_are_served_then() {
    let mut guest = Guest::start();
    let (mut holder, hold) = holder(&guest);
    let made = guest.client.begin(&Request::CreateDir(place(&guest, "made"), false));
    let mut late = guest.connect_silently();
    late.hello(MAJOR, CLIENT_NONCE);
    let exists = Request::Exists(place(&guest, "made"));
    for _ in 0..20 {
        assert_eq!(holder.call(&exists), Ok(Reply::Bool(false)), "the holder is served, and nobody else");
    }
    holder.send(Kind::End, hold, CHANNEL_MAIN, &[]);
    assert_eq!(holder.finish(hold), Ok(Reply::Done));
    assert_eq!(guest.client.finish(made), Ok(Reply::Done));
    assert_eq!(holder.call(&exists), Ok(Reply::Bool(true)));
    assert_eq!(late.next_frame().map(|frame| frame.header.kind), Some(Kind::Welcome));
    assert_eq!(late.call(&Request::Ping), Ok(Reply::Done));
}

#[test]
fn a_hold_ends_with_a_cancel_and_with_its_connection() {
    let mut guest = Guest::start();
    let (mut cancelling, hold) = holder(&guest);
    let waiting = guest.client.begin(&Request::Ping);
    cancelling.send(Kind::Cancel, hold, 0, &[]);
    assert_eq!(cancelling.finish(hold).unwrap_err().kind, "cancelled");
    assert_eq!(guest.client.finish(waiting), Ok(Reply::Done));
    let (leaving, _) = holder(&guest);
    let waiting = guest.client.begin(&Request::Ping);
    drop(leaving);
    assert_eq!(guest.client.finish(waiting), Ok(Reply::Done));
    assert_eq!(guest.run("echo on").stdout, "on\n");
}

#[test]
fn nobody_is_held_back_while_something_is_at_work() {
    let mut guest = Guest::start();
    let mut asking = guest.connect();
    let running = guest.client.start(guest.exec("exec sleep 600"));
    assert_eq!(asking.call(&Request::Hold).unwrap_err().kind, "conflict");
    assert_eq!(guest.client.call(&Request::Kill(running.id, None)), Ok(Reply::Done));
    assert_eq!(guest.client.call(&Request::CreateDir(place(&guest, "watched"), false)), Ok(Reply::Done));
    let watch = guest.client.begin(&Request::Watch(place(&guest, "watched"), false, 1));
    assert_eq!(guest.client.next_of(watch).header.kind, Kind::Event);
    assert_eq!(asking.call(&Request::Hold).unwrap_err().kind, "conflict");
    guest.client.send(Kind::Cancel, watch, 0, &[]);
    guest.client.finish(watch).unwrap_err();
    // A second one waits for the first like every other call.
    let (mut first, hold) = holder(&guest);
    let second = asking.begin(&Request::Hold);
    first.send(Kind::End, hold, CHANNEL_MAIN, &[]);
    assert_eq!(first.finish(hold), Ok(Reply::Done));
    assert_eq!(asking.next_of(second).header.kind, Kind::Event);
}
