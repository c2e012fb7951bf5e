//! The client of a guest, fed with any bytes: every open call settles, with an answer or an error
//! that says something, and nothing waits for ever. (Threats N6 and E5.)

mod calls;
mod guest;

use std::time::Duration;

use eyot_guest::client::{Connection, GuestDriver};
use eyot_guest::protocol::{
    CHANNEL_MAIN, CHANNEL_STDOUT, Event, Failure, Header, Kind, MAJOR, MINOR, Message, Reply, Status,
    Welcome, encode,
};
use futures_util::future::join_all;

use guest::Guest;

const NONCE: [u8; 16] = [1; 16];
/// A time by the runtime's own clock, which moves on as soon as no task can run any more: no real
/// time passes.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);

/// Makes one call of each kind, numbered from 1 in the order of `calls`, and answers with `data`.
/// The first byte says how much is read at a time, and its highest bit whether a valid welcome
/// comes before.
pub fn run(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else {
        return;
    };
    let mut stream = if how & 0x80 == 0 { frame(Kind::Welcome, 0, 0, &welcome()) } else { Vec::new() };
    stream.extend_from_slice(bytes);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let settled = tokio::time::timeout(FOR_EVER, answer(Guest::new(stream, how & 0x7f))).await;
        assert!(settled.is_ok(), "a call never settled");
    });
}

async fn answer(guest: Guest) {
    let connection = match Connection::open(guest, NONCE, NONCE).await {
        Ok(connection) => connection,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let closed = connection.closed();
    let driver = GuestDriver::new(connection, guest::parts());
    for settled in join_all(calls::one_of_each(&driver)).await {
        if let Err(error) = settled {
            assert!(!error.to_string().is_empty());
        }
    }
    // The stream has ended or is nonsense. Either way the connection ends when it has read that
    // far.
    closed.await;
}

fn welcome() -> Vec<u8> {
    encode(&Welcome { major: MAJOR, minor: MINOR, nonce: NONCE, protections: None })
}

fn frame(kind: Kind, call: u32, channel: u8, payload: &[u8]) -> Vec<u8> {
    let header = Header { kind, channel, more: false, call };
    [&header.to_bytes(payload.len())[..], payload].concat()
}

fn message(kind: Kind, call: u32, message: &impl Message) -> Vec<u8> {
    frame(kind, call, 0, &encode(message))
}

/// Returns the fuzzer's starting inputs: each call's proper answers, alone and all together.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let opened = |call| message(Kind::Event, call, &Event::Opened(None));
    let done = |call| message(Kind::Reply, call, &Reply::Done);
    let data = |call, channel| frame(Kind::Data, call, channel, b"some bytes");
    let end = |call| frame(Kind::End, call, CHANNEL_MAIN, b"");
    let exec = [
        message(Kind::Event, calls::EXEC, &Event::Started(7)),
        data(calls::EXEC, CHANNEL_STDOUT),
        message(Kind::Reply, calls::EXEC, &Reply::Exited(Status::Exited(3), None)),
    ];
    let read = [opened(calls::READ), data(calls::READ, CHANNEL_MAIN), end(calls::READ), done(calls::READ)];
    let failure = Failure { kind: "not_found".into(), message: "no such file".into() };
    let failures: Vec<u8> =
        (1..=calls::COUNT).flat_map(|call| message(Kind::Failure, call, &failure)).collect();
    let dones: Vec<u8> = (1..=calls::COUNT).flat_map(done).collect();
    let seed = |how: u8, stream: Vec<u8>| [vec![how], stream].concat();
    vec![
        ("exec", seed(0x7f, exec.concat())),
        ("read", seed(9, read.concat())),
        ("failures", seed(0x40, failures)),
        ("dones", seed(3, dones)),
        ("welcome", seed(0x85, frame(Kind::Welcome, 0, 0, &welcome()))),
    ]
}
