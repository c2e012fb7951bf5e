//! The connection and the driver against a guest that behaves.
#![cfg(feature = "client")]
#![allow(clippy::unwrap_used)]

mod client_fake;

use std::collections::BTreeMap;
use std::sync::Arc;

use client_fake::{CLIENT_NONCE, FakeGuest, GUEST_NONCE, connected, driven, parts, place, unconnected};
use eyot::{
    ByteRange, ByteStream, Bytes, Command, Error, ErrorKind, ExecRequest, Execution, ExecutionEvent,
    ExitStatus, KeepRequest, LogQuery, LogStream, ProcessId, SandboxDriver, Signal, WriteOptions,
};
use eyot_guest::client::{Connection, GuestDriver};
use eyot_guest::protocol::{
    CHANNEL_MAIN, CHANNEL_STDERR, CHANNEL_STDOUT, Control, Event, FileEntry, FileKind, Kind, LogRange, MAJOR,
    MAX_PAYLOAD_BYTES, MINOR, ProcessRecord, Reply, Request, Status, UsageRecord, WINDOW, Welcome, decode,
    encode,
};
use futures_util::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn command(line: &str, stdin: bool) -> ExecRequest {
    let command = Command::shell(line);
    ExecRequest { command, cwd: place("/workspace"), env: BTreeMap::new(), user: None, stdin, pty: None }
}

fn content(pieces: Vec<Result<Bytes, Error>>) -> ByteStream {
    Box::pin(stream::iter(pieces))
}

async fn open_with(welcome: Welcome) -> Error {
    let (mut guest, host) = unconnected();
    let answer = async {
        guest.receive().await;
        guest.send(Kind::Welcome, 0, &welcome).await;
    };
    let (connection, ()) = tokio::join!(Connection::open(host, CLIENT_NONCE, GUEST_NONCE), answer);
    connection.err().unwrap()
}

async fn collect(execution: Execution) -> Vec<ExecutionEvent> {
    execution.events.map(|event| event.unwrap()).collect().await
}

#[tokio::test]
async fn another_major_version_is_a_conflict_that_names_both() {
    let error = open_with(Welcome { major: 2, minor: 5, nonce: GUEST_NONCE, protections: None }).await;
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let ours = format!("{MAJOR}.{MINOR}");
    assert!(error.to_string().contains("2.5") && error.to_string().contains(&ours), "{error}");
}

#[tokio::test]
async fn a_guest_of_an_older_minor_version_keeps_no_commands_and_is_not_asked_to() {
    let (mut guest, host) = unconnected();
    let answer = async {
        guest.receive().await;
        let welcome = Welcome { major: MAJOR, minor: 1, nonce: GUEST_NONCE, protections: None };
        guest.send(Kind::Welcome, 0, &welcome).await;
    };
    let (connection, ()) = tokio::join!(Connection::open(host, CLIENT_NONCE, GUEST_NONCE), answer);
    let driver = GuestDriver::new(connection.unwrap(), parts("/workspace"));
    let request =
        KeepRequest { exec: command("x", false), stdin: Bytes::new(), timeout_ms: None, linger_ms: 1 };
    let error = driver.keep(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("needs a guest that speaks protocol 1.2"), "{error}");
    assert!(error.hint().unwrap().contains("put it to sleep and wake it"));
    assert_eq!(driver.attach("ex_1", None).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(driver.kept_commands().await.unwrap(), []);
}

#[tokio::test]
async fn another_nonce_is_refused() {
    assert_eq!(
        open_with(Welcome { major: 1, minor: 0, nonce: [9; 16], protections: None }).await.kind(),
        ErrorKind::Permission
    );
}

#[tokio::test]
async fn a_guest_that_refuses_the_connection_says_why() {
    let (mut guest, host) = unconnected();
    let answer = async {
        guest.receive().await;
        guest.fail(0, "permission", "the nonce is wrong").await;
    };
    let (connection, ()) = tokio::join!(Connection::open(host, CLIENT_NONCE, GUEST_NONCE), answer);
    let error = connection.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Permission);
    assert!(error.to_string().ends_with("the nonce is wrong"), "{error}");
}

#[tokio::test]
async fn a_stream_that_ends_before_the_welcome_is_unavailable() {
    let (guest, host) = unconnected();
    drop(guest);
    let error = Connection::open(host, CLIENT_NONCE, GUEST_NONCE).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_keeps_silent_is_given_up_after_ten_seconds() {
    let (_guest, host) = unconnected();
    let begin = tokio::time::Instant::now();
    let error = Connection::open(host, CLIENT_NONCE, GUEST_NONCE).await.err().unwrap();
    assert_eq!((error.kind(), begin.elapsed().as_secs()), (ErrorKind::Unavailable, 10));
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_answers_late_once_is_not_given_up() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (wait, request) = guest.request().await;
        assert!(matches!(request, Request::Wait(..)), "{request:?}");
        let (late, request) = guest.request().await;
        assert_eq!(request, Request::Ping);
        let cancel = guest.receive_no_credit().await;
        assert_eq!((cancel.header.kind, cancel.header.call), (Kind::Cancel, late));
        let (second, request) = guest.request().await;
        assert_eq!(request, Request::Ping);
        guest.reply(late, Reply::Done).await;
        guest.reply(second, Reply::Done).await;
        let ended = ProcessRecord {
            id: 1,
            pid: 7,
            command: "true".to_owned(),
            status: Some(Status::Exited(0)),
            started_ms: 1,
            ended_ms: Some(2),
            timed_out: None,
        };
        guest.reply(wait, Reply::Process(ended)).await;
    };
    let (ended, ()) = tokio::join!(driver.wait(ProcessId(1)), serve);
    assert_eq!(ended.unwrap().ended_ms, Some(2));
}

#[tokio::test]
async fn replies_find_their_calls_in_any_order() {
    let (mut guest, driver) = driven().await;
    let exists: Vec<_> = (0..40)
        .map(|index| {
            let driver = Arc::clone(&driver);
            tokio::spawn(async move { driver.exists(&place(&format!("/f{index}"))).await.unwrap() })
        })
        .collect();
    // Sixteen short file calls go at a time.
    let mut answered = 0;
    while answered < 40 {
        let mut batch = Vec::new();
        for _ in 0..(40 - answered).min(16) {
            batch.push(guest.request().await);
        }
        answered += batch.len();
        for (call, request) in batch.into_iter().rev() {
            let Request::Exists(at) = request else { panic!("{request:?}") };
            guest.reply(call, Reply::Bool(at.path.ends_with('7'))).await;
        }
    }
    for (index, exists) in exists.into_iter().enumerate() {
        assert_eq!(exists.await.unwrap(), index % 10 == 7, "{index}");
    }
}

#[tokio::test]
async fn a_failure_keeps_its_kind_and_sentence_and_an_unknown_kind_is_internal() {
    let (mut guest, driver) = driven().await;
    for (kind, expected) in [("is_directory", ErrorKind::IsDirectory), ("of_tomorrow", ErrorKind::Internal)] {
        let answer = async {
            let (call, _) = guest.request().await;
            guest.fail(call, kind, "read file `/x`: is a directory").await;
        };
        let (at, range) = (place("/x"), ByteRange::default());
        let (read, ()) = tokio::join!(driver.read(&at, range), answer);
        let error = read.err().unwrap();
        assert_eq!((error.kind(), error.to_string().as_str()), (expected, "read file `/x`: is a directory"));
    }
}

#[tokio::test]
async fn a_file_larger_than_the_window_is_read_with_credits() {
    let (mut guest, driver) = driven().await;
    let total = 5 * WINDOW as usize + 17;
    let serve = tokio::spawn(async move {
        let (call, _) = guest.request().await;
        guest.opened(call).await;
        let (mut sent, mut window) = (0, WINDOW as usize);
        while sent < total {
            while window == 0 {
                let credit = guest.receive().await;
                assert_eq!(credit.header.kind, Kind::Credit);
                window += u32::from_le_bytes(credit.payload.try_into().unwrap()) as usize;
            }
            let length = window.min(total - sent).min(MAX_PAYLOAD_BYTES);
            let bytes: Vec<u8> = (sent..sent + length).map(|index| (index % 251) as u8).collect();
            guest.data(call, CHANNEL_MAIN, &bytes).await;
            (sent, window) = (sent + length, window - length);
        }
        guest.reply(call, Reply::Done).await;
        guest
    });
    let mut content = driver.read(&place("/big"), ByteRange::default()).await.unwrap();
    let mut read = Vec::new();
    while let Some(bytes) = content.next().await {
        read.extend_from_slice(&bytes.unwrap());
    }
    assert!(read.len() == total && read.iter().enumerate().all(|(index, byte)| *byte == (index % 251) as u8));
    drop(serve.await.unwrap());
}

#[tokio::test]
async fn a_reader_that_stops_reading_stops_its_own_stream_alone() {
    let (mut guest, driver) = driven().await;
    let at = place("/big");
    let serve = async {
        let (call, _) = guest.request().await;
        guest.opened(call).await;
        for _ in 0..WINDOW / 1024 {
            guest.data(call, CHANNEL_MAIN, &[0; 1024]).await;
        }
        call
    };
    let (content, read) = tokio::join!(driver.read(&at, ByteRange::default()), serve);
    let answer = async {
        // No credit has come: the first frame after the request for reading is the ping.
        let frame = guest.receive().await;
        assert_eq!(frame.header.kind, Kind::Request);
        guest.reply(frame.header.call, Reply::Done).await;
    };
    let (ping, ()) = tokio::join!(driver.ping(), answer);
    ping.unwrap();
    drop(content);
    let cancel = guest.receive().await;
    assert_eq!((cancel.header.kind, cancel.header.call), (Kind::Cancel, read));
}

/// Takes a write's content until its end, granting credit for each frame.
async fn take_content(guest: &mut FakeGuest, call: u32) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        let frame = guest.receive().await;
        match frame.header.kind {
            Kind::Data => {
                guest.credit(call, frame.payload.len() as u32).await;
                content.extend(frame.payload);
            }
            Kind::End => return content,
            kind => panic!("{kind:?}"),
        }
    }
}

#[tokio::test]
async fn content_larger_than_the_window_is_written_with_credits() {
    let (mut guest, driver) = driven().await;
    let bytes: Bytes = (0..3 * WINDOW).map(|index| (index % 253) as u8).collect();
    let pieces = content(vec![Ok(bytes.clone()), Ok(Bytes::from_static(b"end"))]);
    let serve = async {
        let (call, _) = guest.request().await;
        let content = take_content(&mut guest, call).await;
        guest.reply(call, Reply::Size(content.len() as u64)).await;
        content
    };
    let at = place("/f");
    let (size, taken) = tokio::join!(driver.write(&at, pieces, WriteOptions::default()), serve);
    assert_eq!(size.unwrap(), u64::from(3 * WINDOW) + 3);
    assert!(taken.len() == bytes.len() + 3 && taken[..bytes.len()] == bytes);
}

#[tokio::test]
async fn content_that_fails_cancels_the_write_and_its_error_comes_after_the_guest_has_settled() {
    let (mut guest, driver) = driven().await;
    let broken = Error::new(ErrorKind::Conflict, "the upload broke off");
    let pieces = content(vec![Ok(Bytes::from_static(b"half")), Err(broken)]);
    let serve = async {
        let (call, _) = guest.request().await;
        assert_eq!(guest.receive().await.payload, b"half");
        assert_eq!(guest.receive().await.header.kind, Kind::Cancel);
        guest.fail(call, "cancelled", "the write was cancelled").await;
    };
    let at = place("/f");
    let (written, ()) = tokio::join!(driver.write(&at, pieces, WriteOptions::default()), serve);
    assert_eq!(written.unwrap_err().to_string(), "the upload broke off");
    assert!(!driver.connection().is_closed());
}

#[tokio::test]
async fn a_write_that_the_guest_ends_early_returns_at_once_though_the_content_never_ends() {
    let (mut guest, driver) = driven().await;
    let endless: ByteStream = Box::pin(stream::iter([Ok(Bytes::from_static(b"x"))]).chain(stream::pending()));
    let serve = async {
        let (call, _) = guest.request().await;
        guest.fail(call, "too_large", "write file `/f`: larger than 0 bytes").await;
    };
    let at = place("/f");
    let (written, ()) = tokio::join!(driver.write(&at, endless, WriteOptions::default()), serve);
    assert_eq!(written.unwrap_err().kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn a_command_gives_its_output_and_its_exit_once_and_last() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, request) = guest.request().await;
        let Request::Exec(exec) = request else { panic!("{request:?}") };
        assert!(!exec.stdin && exec.cwd.path == "/workspace");
        guest.started(call).await;
        guest.data(call, CHANNEL_STDOUT, b"out").await;
        guest.data(call, CHANNEL_STDERR, b"err").await;
        guest.reply(call, Reply::Exited(Status::Signaled(9), None)).await;
    };
    let (execution, ()) = tokio::join!(driver.exec(command("x", false)), serve);
    let expected = [
        ExecutionEvent::Stdout(Bytes::from_static(b"out")),
        ExecutionEvent::Stderr(Bytes::from_static(b"err")),
        ExecutionEvent::Exit { status: ExitStatus::Signaled(9), output_open: false },
    ];
    let execution = execution.unwrap();
    let control = Arc::clone(&execution.control);
    assert_eq!(collect(execution).await, expected);
    control.kill().await.unwrap();
    control.signal(Signal::TERM).await.unwrap();
}

#[tokio::test]
async fn a_missing_program_is_the_error_of_exec_itself() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        guest.fail(call, "not_found", "no such program").await;
    };
    let (execution, ()) = tokio::join!(driver.exec(command("x", false)), serve);
    assert_eq!(execution.err().unwrap().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn input_goes_in_and_dropping_it_is_end_of_file() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        guest.started(call).await;
        call
    };
    let (execution, call) = tokio::join!(driver.exec(command("cat", true)), serve);
    let mut execution = execution.unwrap();
    let mut input = execution.input.take().unwrap();
    let bytes = Bytes::from(vec![7; 2 * WINDOW as usize]);
    let write = async {
        input.write(bytes.clone()).await.unwrap();
        drop(input);
    };
    let ((), taken) = tokio::join!(write, take_content(&mut guest, call));
    assert_eq!(taken, bytes);
    execution.control.signal(Signal::INT).await.unwrap();
    let frame = guest.receive().await;
    assert_eq!(decode::<Control>(&frame.payload), Ok(Control::Signal(2)));
    guest.reply(call, Reply::Exited(Status::Exited(0), None)).await;
    assert_eq!(
        collect(execution).await,
        [ExecutionEvent::Exit { status: ExitStatus::Exited(0), output_open: false }]
    );
}

#[tokio::test]
async fn writing_to_a_command_that_has_ended_or_reads_no_more_is_an_error() {
    let (mut guest, driver) = driven().await;
    for by_end in [true, false] {
        let serve = async {
            let (call, _) = guest.request().await;
            guest.started(call).await;
            call
        };
        let (execution, call) = tokio::join!(driver.exec(command("true", true)), serve);
        let mut execution = execution.unwrap();
        let mut input = execution.input.take().unwrap();
        if by_end {
            guest.end(call, CHANNEL_MAIN).await
        } else {
            guest.reply(call, Reply::Exited(Status::Exited(0), None)).await
        }
        let error = input.write(Bytes::from(vec![0; WINDOW as usize + 1])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        if by_end {
            guest.reply(call, Reply::Exited(Status::Exited(0), None)).await;
        }
        assert!(matches!(execution.events.next().await, Some(Ok(ExecutionEvent::Exit { .. }))));
        guest_drain(&mut guest, &driver).await;
    }
}

/// Takes frames until a ping comes through.
async fn guest_drain(guest: &mut FakeGuest, driver: &GuestDriver) {
    let serve = async {
        loop {
            let frame = guest.receive().await;
            if frame.header.kind == Kind::Request {
                return guest.reply(frame.header.call, Reply::Done).await;
            }
        }
    };
    let (ping, ()) = tokio::join!(driver.ping(), serve);
    ping.unwrap();
}

#[tokio::test]
async fn dropping_a_command_before_its_exit_cancels_it_and_its_late_frames_are_ignored() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        guest.started(call).await;
        call
    };
    let (execution, call) = tokio::join!(driver.exec(command("sleep 9", false)), serve);
    drop(execution);
    let cancel = guest.receive().await;
    assert_eq!((cancel.header.kind, cancel.header.call), (Kind::Cancel, call));
    guest.data(call, CHANNEL_STDOUT, b"late").await;
    guest.reply(call, Reply::Exited(Status::Signaled(9), None)).await;
    guest_drain(&mut guest, &driver).await;
}

#[tokio::test]
async fn a_listing_is_put_together_in_its_order_and_its_odd_names_keep_their_bytes() {
    let (mut guest, driver) = driven().await;
    let entry = |name: &[u8], kind| FileEntry { name: name.to_vec(), kind, size: 3 };
    let serve = async {
        let (call, _) = guest.request().await;
        guest.opened(call).await;
        guest
            .data(call, 0, &encode(&vec![entry(b"b", FileKind::Directory), entry(b"a\xff", FileKind::File)]))
            .await;
        guest.data(call, 0, &encode(&vec![entry(b"a", FileKind::Symlink)])).await;
        guest.reply(call, Reply::Done).await;
    };
    let at = place("/");
    let (entries, ()) = tokio::join!(driver.list(&at), serve);
    let entries = entries.unwrap();
    let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["b", "a\u{fffd}", "a"]);
    assert_eq!(entries[1].name_bytes.as_deref(), Some(&b"a\xff"[..]));
    assert_eq!(entries[0].file_type, Some(eyot::FileType::Directory));
}

#[tokio::test]
async fn a_dialled_connection_goes_both_ways_and_closes_by_halves() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        guest.opened(call).await;
        call
    };
    let (tcp, call) = tokio::join!(driver.dial(80), serve);
    let mut tcp = tcp.unwrap();
    tcp.write_all(b"GET /").await.unwrap();
    assert_eq!(guest.receive().await.payload, b"GET /");
    guest.data(call, CHANNEL_MAIN, b"200").await;
    let mut answer = [0; 2];
    tcp.read_exact(&mut answer).await.unwrap();
    guest.end(call, CHANNEL_MAIN).await;
    let mut rest = Vec::new();
    tcp.read_to_end(&mut rest).await.unwrap();
    assert_eq!((&answer, rest.as_slice()), (b"20", &b"0"[..]));
    tcp.write_all(b"more").await.unwrap();
    tcp.shutdown().await.unwrap();
    assert_eq!(guest.receive().await.payload, b"more");
    assert_eq!(guest.receive().await.header.kind, Kind::End);
    assert!(tcp.write_all(b"x").await.is_err());
    drop(tcp);
    assert_eq!(guest.receive().await.header.kind, Kind::Cancel);
}

#[tokio::test]
async fn log_chunks_carry_their_stream_and_offset() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        guest.event(call, Event::Log(LogRange { start: 700, ..LogRange::default() })).await;
        let prefix = [700_u64.to_le_bytes(), 30_u64.to_le_bytes()].concat();
        guest.data(call, CHANNEL_STDERR, &[&prefix[..], b"oops"].concat()).await;
        guest.reply(call, Reply::Done).await;
    };
    let query = LogQuery { follow: true, ..LogQuery::default() };
    let (chunks, ()) = tokio::join!(driver.logs(ProcessId(1), query), serve);
    assert_eq!(chunks.as_ref().unwrap().range.start, 700);
    let chunks: Vec<_> = chunks.unwrap().map(|chunk| chunk.unwrap()).collect().await;
    assert_eq!((chunks.len(), chunks[0].stream, chunks[0].offset), (1, LogStream::Stderr, 700));
    assert_eq!(chunks[0].stream_offset, 30);
    assert_eq!(&chunks[0].data[..], b"oops");
}

#[tokio::test]
async fn usage_leaves_out_what_the_guest_does_not_know() {
    let (mut guest, driver) = driven().await;
    let serve = async {
        let (call, _) = guest.request().await;
        guest.reply(call, Reply::Usage(UsageRecord { processes: 3, ..UsageRecord::default() })).await;
    };
    let (usage, ()) = tokio::join!(driver.usage(), serve);
    let usage = usage.unwrap();
    assert_eq!((usage.processes, usage.disk_bytes), (Some(3), None));
}

#[tokio::test]
async fn a_request_of_several_frames_arrives_whole_and_one_beyond_the_limit_is_never_sent() {
    let (mut guest, driver) = driven().await;
    let line = "x".repeat(3 << 20);
    let serve = async {
        let (call, request) = guest.request().await;
        let Request::Exec(exec) = request else { panic!("{request:?}") };
        guest.fail(call, "too_large", "command").await;
        exec.command
    };
    let (execution, sent) = tokio::join!(driver.exec(command(&line, false)), serve);
    assert!(execution.is_err());
    assert_eq!(sent, eyot_guest::protocol::CommandSpec::Shell(line));
    let error = driver.exec(command(&"x".repeat(9 << 20), false)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    guest_drain(&mut guest, &driver).await;
}

#[tokio::test]
async fn after_a_destroy_pending_and_later_calls_say_destroyed() {
    let (mut guest, connection) = connected().await;
    let waiting = tokio::spawn({
        let connection = connection.clone();
        async move { connection.ping().await }
    });
    guest.request().await;
    connection.set_closed_error(ErrorKind::Destroyed, "sandbox `a` has been destroyed");
    drop(guest);
    connection.closed().await;
    for error in [waiting.await.unwrap().unwrap_err(), connection.ping().await.unwrap_err()] {
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Destroyed, "sandbox `a` has been destroyed")
        );
    }
}

#[tokio::test]
async fn destroying_through_the_driver_asks_its_maker_and_ends_the_connection() {
    let (_guest, connection) = connected().await;
    let destroyer = Arc::new(client_fake::CountingDestroyer::default());
    let parts = eyot_guest::client::GuestDriverParts { destroyer: destroyer.clone(), ..parts("/workspace") };
    let driver = GuestDriver::new(connection, parts);
    driver.destroy().await.unwrap();
    driver.destroy().await.unwrap();
    assert_eq!(destroyer.0.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert_eq!(driver.ping().await.unwrap_err().kind(), ErrorKind::Destroyed);
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_stream() {
    let (mut guest, connection) = connected().await;
    let closed = connection.closed();
    let clone = connection.clone();
    drop(connection);
    assert!(!clone.is_closed());
    drop(clone);
    closed.await;
    assert!(guest.try_receive().await.is_none());
}
