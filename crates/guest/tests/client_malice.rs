//! Threats N6 and E5 against the client: whatever a guest sends, the connection ends with a typed
//! error for every call, nothing hangs, nothing grows without bounds.
#![cfg(feature = "client")]
#![allow(clippy::unwrap_used)]

mod client_fake;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client_fake::{FakeGuest, driven, place};
use eyot::{
    ByteRange, ByteStream, Bytes, Command, CreateDirOptions, Error, ErrorKind, ExecRequest, GlobOptions,
    GrepOptions, KeepRequest, KeptControl, LogQuery, ProcessId, RemoveOptions, Result, SandboxDriver,
    StartTerms, TarInOptions, WatchOptions, WriteOptions,
};
use eyot_guest::client::GuestDriver;
use eyot_guest::protocol::{
    CHANNEL_MAIN, CHANNEL_STDERR, CHANNEL_STDOUT, Event, FileEntry, FileKind, GlobMatches, Header,
    KeptRecord, Kind, LogRange, MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES, Reply, Request, WINDOW, encode,
};
use futures_util::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use tokio::io::AsyncReadExt;

const BROKEN: &str = "the sandbox's guest broke the protocol: ";

fn command() -> ExecRequest {
    let command = Command::shell("x");
    ExecRequest { command, cwd: place("/"), env: BTreeMap::new(), user: None, stdin: true, pty: None }
}

fn kept() -> KeepRequest {
    KeepRequest { exec: command(), stdin: Bytes::new(), timeout_ms: None, linger_ms: 1 }
}

/// Runs a command to its end and says what came of it.
async fn run(driver: &GuestDriver) -> Result<u64> {
    let execution = driver.exec(command()).await?;
    let mut events = 0;
    let mut stream = execution.events;
    while let Some(event) = stream.next().await {
        event?;
        events += 1;
    }
    Ok(events)
}

/// A guest that answers the start of a command with `attack` must end the connection, and the error
/// is this one.
async fn command_met_with(attack: impl AsyncFnOnce(&mut FakeGuest, u32), expected: &str) {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        attack(&mut guest, call).await;
    };
    let (outcome, ()) = tokio::join!(run(&driver), serve);
    assert_broken(&outcome.unwrap_err(), expected);
    tokio::time::timeout(Duration::from_secs(5), driver.connection().closed()).await.unwrap();
    assert_broken(&driver.ping().await.unwrap_err(), expected);
    while guest.try_receive().await.is_some() {}
}

fn assert_broken(error: &Error, expected: &str) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().starts_with(BROKEN) && error.to_string().contains(expected), "{error}");
    assert!(error.hint().is_some());
}

fn header(kind: Kind, channel: u8, more: bool, call: u32) -> Header {
    Header { kind, channel, more, call }
}

#[tokio::test]
async fn n6_garbage_ends_the_connection() {
    command_met_with(async |guest, _| guest.send_raw(b"HTTP/1.1 200 OK\r\n\r\n").await, "a frame of").await;
}

#[tokio::test]
async fn n6_a_frame_that_claims_to_be_huge_ends_the_connection_before_it_is_read() {
    let mut bytes = header(Kind::Data, 1, false, 1).to_bytes(0);
    bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    command_met_with(async |guest, _| guest.send_raw(&bytes).await, "a frame of 4294967295 bytes").await;
}

#[tokio::test]
async fn n6_frames_of_calls_that_never_were_end_the_connection() {
    let attack = async |guest: &mut FakeGuest, _| guest.reply(77, Reply::Done).await;
    command_met_with(attack, "call 77, which never was").await;
    let attack = async |guest: &mut FakeGuest, _| guest.data(0, CHANNEL_STDOUT, b"x").await;
    command_met_with(attack, "Data outside of a call").await;
}

#[tokio::test]
async fn n6_a_second_reply_ends_the_connection() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        guest.reply(call, Reply::Done).await;
        guest.reply(call, Reply::Done).await;
    };
    let (ping, ()) = tokio::join!(driver.ping(), serve);
    ping.unwrap();
    driver.connection().closed().await;
    assert_broken(&driver.ping().await.unwrap_err(), "call 1, which has ended");
}

#[tokio::test]
async fn n6_data_beyond_the_credit_ends_the_connection() {
    let attack = async |guest: &mut FakeGuest, call| {
        guest.started(call).await;
        // The reader of the events takes nothing meanwhile: the flood comes in one piece.
        let flood: Vec<u8> = (0..=WINDOW as usize / MAX_PAYLOAD_BYTES)
            .flat_map(|_| {
                let header = header(Kind::Data, CHANNEL_STDOUT, false, call).to_bytes(MAX_PAYLOAD_BYTES);
                [&header[..], &[0; MAX_PAYLOAD_BYTES]].concat()
            })
            .collect();
        guest.send_raw(&flood).await;
    };
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        attack(&mut guest, call).await;
    };
    let (execution, ()) = tokio::join!(driver.exec(command()), serve);
    driver.connection().closed().await;
    assert_broken(&driver.ping().await.unwrap_err(), "data beyond the granted credit");
    let error = execution.unwrap().events.try_collect::<Vec<_>>().await.unwrap_err();
    assert_broken(&error, "data beyond the granted credit");
}

#[tokio::test]
async fn n6_data_where_it_does_not_belong_ends_the_connection() {
    let early = async |guest: &mut FakeGuest, call| guest.data(call, CHANNEL_STDOUT, b"x").await;
    command_met_with(early, "before the call had begun").await;
    for channel in [CHANNEL_MAIN, 3, 255] {
        let wrong = async |guest: &mut FakeGuest, call| {
            guest.started(call).await;
            guest.data(call, channel, b"x").await;
        };
        command_met_with(wrong, "which its call does not have").await;
    }
    let ended = async |guest: &mut FakeGuest, call| {
        guest.started(call).await;
        guest.end(call, CHANNEL_STDERR).await;
        guest.data(call, CHANNEL_STDERR, b"x").await;
    };
    command_met_with(ended, "a channel that has ended").await;
    let empty = async |guest: &mut FakeGuest, call| {
        guest.started(call).await;
        guest.data(call, CHANNEL_STDERR, b"").await;
    };
    command_met_with(empty, "a data frame of 0 bytes").await;
}

#[tokio::test]
async fn n6_a_message_that_never_ends_is_dropped_at_its_limit() {
    let parts = async |guest: &mut FakeGuest, call| {
        guest.started(call).await;
        for _ in 0..3 {
            guest.send_frame(header(Kind::Reply, 0, true, call), &[0; MAX_PAYLOAD_BYTES]).await;
        }
    };
    command_met_with(parts, "a message of more than").await;
    let empty =
        async |guest: &mut FakeGuest, call| guest.send_frame(header(Kind::Event, 0, true, call), b"").await;
    command_met_with(empty, "an empty part").await;
}

#[tokio::test]
async fn n6_a_list_is_held_to_eight_mebibytes_and_to_what_was_asked_for() {
    let glob = GlobOptions { pattern: "**".to_owned(), root: place("/"), hidden: true, max_results: 2 };
    for oversized in [true, false] {
        let (mut guest, driver) = driven().await;
        let serve = async {
            let (call, _) = guest.request().await;
            if oversized {
                for _ in 0..=MAX_MESSAGE_BYTES / MAX_PAYLOAD_BYTES {
                    guest.send_frame(header(Kind::Reply, 0, true, call), &[0; MAX_PAYLOAD_BYTES]).await;
                }
            } else {
                let found = GlobMatches { paths: vec![String::new(); 3], truncated: false };
                guest.reply(call, Reply::Glob(found)).await;
            }
        };
        let (found, ()) = tokio::join!(driver.glob(&glob), serve);
        assert_broken(
            &found.unwrap_err(),
            if oversized { "a message of more than 8388608" } else { "a list of 3" },
        );
    }
}

#[tokio::test]
async fn n6_messages_that_make_no_sense_end_the_connection() {
    let unreadable = async |guest: &mut FakeGuest, call| {
        guest.started(call).await;
        guest.send_frame(header(Kind::Reply, 0, false, call), &[0xff; 9]).await;
    };
    command_met_with(unreadable, "can't be read").await;
    let other = async |guest: &mut FakeGuest, call| {
        guest.started(call).await;
        guest.reply(call, Reply::Bool(true)).await;
    };
    command_met_with(other, "a reply of the wrong kind").await;
    let unannounced = async |guest: &mut FakeGuest, call| {
        guest.reply(call, Reply::Exited(eyot_guest::protocol::Status::Exited(0), None)).await
    };
    command_met_with(unannounced, "before the call had begun").await;
    let twice = async |guest: &mut FakeGuest, call| {
        guest.started(call).await;
        guest.started(call).await;
    };
    command_met_with(twice, "an event that its call does not have").await;
    let opened =
        async |guest: &mut FakeGuest, call| guest.send(Kind::Event, call, &Event::Opened(Some(1))).await;
    command_met_with(opened, "an event that its call does not have").await;
}

#[tokio::test]
async fn n6_frames_that_only_a_client_sends_end_the_connection() {
    for kind in [Kind::Hello, Kind::Welcome, Kind::Request, Kind::Control, Kind::Cancel] {
        let attack =
            async |guest: &mut FakeGuest, call| guest.send_frame(header(kind, 0, false, call), b"").await;
        command_met_with(attack, &format!("{kind:?} from a guest")).await;
    }
}

#[tokio::test]
async fn n6_credits_that_mean_nothing_or_overflow_end_the_connection() {
    let none = async |guest: &mut FakeGuest, call| guest.credit(call, 0).await;
    command_met_with(none, "a credit that means nothing").await;
    let much = async |guest: &mut FakeGuest, call| guest.credit(call, u32::MAX).await;
    command_met_with(much, "more credit than").await;
    let long = async |guest: &mut FakeGuest, call| {
        guest.send_frame(header(Kind::Credit, 0, false, call), &[1; 5]).await
    };
    command_met_with(long, "a credit that means nothing").await;
    let parts =
        async |guest: &mut FakeGuest, call| guest.send_frame(header(Kind::Data, 1, true, call), b"x").await;
    command_met_with(parts, "Data in parts").await;
}

#[tokio::test]
async fn n6_more_of_a_file_than_was_asked_for_ends_the_connection() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        guest.opened(call).await;
        guest.data(call, CHANNEL_MAIN, &[0; 11]).await;
    };
    let (at, range) = (place("/f"), ByteRange { offset: 0, limit: Some(10) });
    let (content, ()) = tokio::join!(driver.read(&at, range), serve);
    let error = content.unwrap().try_collect::<Vec<_>>().await.unwrap_err();
    assert_broken(&error, "more data than the 10 bytes");
}

#[tokio::test]
async fn n6_a_listing_with_a_name_that_leads_elsewhere_ends_the_connection() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        guest.opened(call).await;
        let name = b"../../root/.ssh/authorized_keys".to_vec();
        guest
            .data(call, CHANNEL_MAIN, &encode(&vec![FileEntry { name, kind: FileKind::File, size: 0 }]))
            .await;
    };
    let at = place("/");
    let (entries, ()) = tokio::join!(driver.list(&at), serve);
    assert_broken(&entries.unwrap_err(), "a name that no file can have");
    assert!(driver.connection().is_closed());
}

#[tokio::test]
async fn n6_a_guest_that_reads_nothing_holds_up_its_own_callers_and_no_memory() {
    let (guest, driver) = driven().await;
    let calls: Vec<_> = (0..2000)
        .map(|_| {
            let driver = Arc::clone(&driver);
            let line = Command::shell("x".repeat(16 * 1024));
            tokio::spawn(
                async move { driver.exec(ExecRequest { command: line, ..command() }).await.map(drop) },
            )
        })
        .collect();
    // What the stream took and what the outbox holds is far below what the callers want to send.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!driver.connection().is_closed() && calls.iter().all(|call| !call.is_finished()));
    drop(guest);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    }
}

#[tokio::test]
async fn a_connection_that_the_guest_ends_with_a_reason_tells_it() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        guest.request().await;
        guest.fail(0, "destroyed", "its time to live has passed").await;
    };
    let (ping, ()) = tokio::join!(driver.ping(), serve);
    let error = ping.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("its time to live has passed"));
}

/// One call of each kind, taken to its end.
fn every_call(driver: &Arc<GuestDriver>) -> Vec<BoxFuture<'static, Result<()>>> {
    fn endless() -> ByteStream {
        Box::pin(stream::repeat_with(|| Ok(Bytes::from_static(&[0; 4096]))))
    }
    let glob = GlobOptions { pattern: "*".to_owned(), root: place("/"), hidden: false, max_results: 9 };
    let grep = GrepOptions {
        pattern: "x".to_owned(),
        literal: true,
        ignore_case: false,
        root: place("/"),
        include: None,
        max_matches: 9,
        max_line_bytes: 9,
    };
    let query = LogQuery { follow: true, ..LogQuery::default() };
    let id = ProcessId(1);
    macro_rules! calls {
        ($($driver:ident => $call:expr),* $(,)?) => {
            vec![$({
                let $driver = Arc::clone(driver);
                Box::pin(async move { $call }) as BoxFuture<'static, _>
            }),*]
        };
    }
    calls![
        d => d.read(&place("/a"), ByteRange::default()).await?.try_collect::<Vec<_>>().await.map(drop),
        d => d.write(&place("/a"), endless(), WriteOptions::default()).await.map(drop),
        d => d.stat(&place("/a")).await.map(drop),
        d => d.list(&place("/a")).await.map(drop),
        d => d.exists(&place("/a")).await.map(drop),
        d => d.create_dir(&place("/a"), CreateDirOptions::default()).await,
        d => d.remove(&place("/a"), RemoveOptions::default()).await,
        d => d.rename(&place("/a"), &place("/b")).await,
        d => run(&d).await.map(drop),
        d => d.glob(&glob).await.map(drop),
        d => d.grep(&grep).await.map(drop),
        d => d.tar_out(&place("/a")).await?.try_collect::<Vec<_>>().await.map(drop),
        d => d.tar_in(&place("/a"), endless(), TarInOptions::default()).await.map(drop),
        d => {
            let mut tcp = d.dial(80).await?;
            let read = tcp.read_to_end(&mut Vec::new()).await;
            read.map(drop).map_err(|error| *error.into_inner().unwrap().downcast::<Error>().unwrap())
        },
        d => d.usage().await.map(drop),
        d => d.live_processes().await.map(drop),
        d => d.watch(&place("/a"), WatchOptions::default()).await?.try_collect::<Vec<_>>().await.map(drop),
        d => d.start(command(), StartTerms::default()).await.map(drop),
        d => d.processes().await.map(drop),
        d => d.wait(id).await.map(drop),
        d => d.logs(id, query).await?.try_collect::<Vec<_>>().await.map(drop),
        d => d.kill(id, None).await,
        d => d.keep(kept()).await?.events.try_collect::<Vec<_>>().await.map(drop),
        d => d.attach("ex_1", Some(1)).await?.events.try_collect::<Vec<_>>().await.map(drop),
        d => d.kept_commands().await.map(drop),
        d => d.kept_end("ex_1").await.map(drop),
        d => d.control_kept("ex_1", KeptControl::Kill).await,
        d => d.ping().await,
        d => d.adopt().await,
    ]
}

/// Takes a request and announces it where that is due.
async fn begin(guest: &mut FakeGuest) {
    let (call, request) = guest.request().await;
    match request {
        Request::Exec(_) => guest.started(call).await,
        Request::Read(..) | Request::List(_) | Request::TarOut(_) | Request::Dial(_) | Request::Watch(..) => {
            guest.opened(call).await;
        }
        Request::Logs(_) => guest.event(call, Event::Log(LogRange::default())).await,
        Request::Keep(..) | Request::Attach(..) => {
            let record = KeptRecord { id: "ex_1".to_owned(), ..KeptRecord::default() };
            guest.event(call, Event::Kept(record)).await;
        }
        _ => {}
    }
}

#[tokio::test]
async fn e5_the_sandbox_dies_in_the_middle_of_every_call_and_each_settles() {
    let kinds = every_call(&driven().await.1).len();
    for index in 0..kinds {
        for midway in [false, true] {
            let (mut guest, driver) = driven().await;
            let call = tokio::spawn(every_call(&driver).swap_remove(index));
            if midway {
                begin(&mut guest).await
            } else {
                drop(guest.request().await)
            }
            drop(guest);
            let settled = tokio::time::timeout(Duration::from_secs(10), call).await;
            let error = settled.unwrap_or_else(|_| panic!("call {index} hangs")).unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "call {index}: {error}");
            assert!(
                error.to_string().contains("stopped while the call was in flight"),
                "call {index}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn e5_a_guest_that_breaks_the_protocol_in_one_call_settles_all_others() {
    let (mut guest, driver) = driven().await;
    let calls: Vec<_> = every_call(&driver).into_iter().map(tokio::spawn).collect();
    for _ in 0..calls.len() {
        // Whatever the order in which they come: requests, and content of those that write.
        guest.receive_no_credit().await;
    }
    guest.send_raw(&[0xff; 64]).await;
    for (index, call) in calls.into_iter().enumerate() {
        let settled = tokio::time::timeout(Duration::from_secs(10), call).await;
        let error = settled.unwrap_or_else(|_| panic!("call {index} hangs")).unwrap().unwrap_err();
        assert_broken(&error, "a frame of");
    }
}

/// A small deterministic generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n6_random_frames_never_hang_a_call() {
    for seed in 0..300 {
        let (mut guest, driver) = driven().await;
        let call = tokio::spawn(async move { run(&driver).await });
        let (number, _) = guest.request().await;
        let mut random = Random(seed);
        for _ in 0..random.below(40) {
            let kinds = [Kind::Reply, Kind::Failure, Kind::Data, Kind::End, Kind::Credit, Kind::Event];
            let kind = kinds[random.below(6) as usize];
            let header = header(
                kind,
                random.below(4) as u8,
                random.below(5) == 0,
                number + random.below(2) as u32 / 2,
            );
            let payload: Vec<u8> = match random.below(4) {
                0 => encode(&Event::Started(1)),
                1 => encode(&Reply::Exited(eyot_guest::protocol::Status::Exited(0), None)),
                _ => (0..random.below(20)).map(|_| random.below(256) as u8).collect(),
            };
            guest.send_frame(header, &payload).await;
        }
        drop(guest);
        let settled = tokio::time::timeout(Duration::from_secs(10), call).await;
        match settled.unwrap_or_else(|_| panic!("seed {seed} hangs")).unwrap() {
            Ok(events) => assert!(events >= 1, "seed {seed}"),
            Err(error) => assert!(!error.to_string().is_empty(), "seed {seed}"),
        }
    }
}
