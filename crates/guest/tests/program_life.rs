//! Connections, started processes, and the guest's own end.
#![cfg(feature = "program")]
#![allow(clippy::unwrap_used)]

mod program_client;

use std::time::{Duration, Instant};

use eyot_guest::protocol::*;
use program_client::*;

fn refusal(client: &mut Client) -> Failure {
    let frame = client.next_frame().expect("a refusal");
    assert_eq!((frame.header.kind, frame.header.call), (Kind::Failure, 0));
    assert_eq!(client.next_frame(), None, "it is closed");
    decode(&frame.payload).unwrap()
}

#[test]
fn a_stranger_is_refused_and_told_why() {
    let mut guest = Guest::start();
    let mut client = guest.connect_silently();
    client.hello(MAJOR + 1, CLIENT_NONCE);
    assert_eq!(refusal(&mut client).kind, "conflict");
    let mut client = guest.connect_silently();
    client.hello(MAJOR, [9; 16]);
    assert_eq!(refusal(&mut client).kind, "permission");
    let mut client = guest.connect_silently();
    client.send(Kind::Request, 1, 0, &encode(&Request::Ping));
    assert_eq!(refusal(&mut client).kind, "invalid");
    assert_eq!(guest.client.call(&Request::Ping), Ok(Reply::Done));
}

#[test]
fn n6_whoever_breaks_the_protocol_is_dropped_and_nobody_else() {
    let mut guest = Guest::start();
    let ping = encode(&Request::Ping);
    let breaches: [(Kind, u32, &[u8]); 7] = [
        (Kind::Request, 0, &ping),
        (Kind::Request, 1, b"\xff\xff"),
        (Kind::Data, 77, b"x"),
        (Kind::Credit, 77, &[0; 4]),
        (Kind::Cancel, 77, &[]),
        (Kind::Reply, 77, &[]),
        (Kind::Hello, 0, &[]),
    ];
    for (kind, call, payload) in breaches {
        let mut client = guest.connect();
        client.send(kind, call, 0, payload);
        assert_eq!(refusal(&mut client).kind, "invalid", "{kind:?}");
    }
    let mut client = guest.connect();
    client.send(Kind::Request, 5, 0, &ping);
    assert_eq!(client.finish(5), Ok(Reply::Done));
    // It has ended: what still comes for it is ignored, but its number is used up.
    client.send(Kind::Cancel, 5, 0, &[]);
    client.send(Kind::Data, 5, 0, b"late");
    client.send(Kind::Request, 5, 0, &ping);
    assert_eq!(refusal(&mut client).kind, "invalid");
    assert_eq!(guest.client.call(&Request::Ping), Ok(Reply::Done));
}

#[test]
fn n6_a_message_without_end_is_cut_off() {
    let guest = Guest::start();
    let mut client = guest.connect();
    let piece = vec![0; MAX_PAYLOAD_BYTES];
    let header = Header { kind: Kind::Request, channel: 0, more: true, call: 1 };
    let frame = [&header.to_bytes(piece.len())[..], &piece].concat();
    for _ in 0..=MAX_MESSAGE_BYTES / MAX_PAYLOAD_BYTES {
        if client.send_raw(&frame).is_err() {
            break;
        }
    }
    assert_eq!(refusal(&mut client).kind, "invalid");
}

#[test]
fn a_command_of_two_mebibytes_arrives_in_pieces() {
    let mut guest = Guest::start();
    let exec = Exec { env: vec![("BIG".into(), "x".repeat(100_000)); 1], ..guest.exec("echo ${#BIG}") };
    assert_eq!(guest.client.run(exec).stdout, "100000\n");
    let exec = guest.exec(&format!("true {}", "x".repeat(2 << 20)));
    assert_eq!(guest.client.try_run(exec).unwrap_err().kind, "too_large");
}

#[test]
fn a_guest_that_was_never_adopted_ends_with_its_makers_stream() {
    let mut guest = Guest::start_silent(|_| ());
    guest.client.greet();
    let exec = guest.exec("echo $$ >>pids; exec sleep 600");
    guest.client.start(exec);
    let pids = pids_in(&guest.path("pids"), 1);
    let (nobody, _) = std::os::unix::net::UnixStream::pair().unwrap();
    guest.client = Client::new(nobody);
    assert!(guest.wait_for_end().success());
    assert!(!is_alive(pids[0]));
}

#[test]
fn an_adopted_guest_outlives_its_makers_stream() {
    let mut guest = Guest::start();
    let mut second = guest.connect();
    assert_eq!(second.call(&Request::Adopt).unwrap_err().kind, "permission");
    let (nobody, _) = std::os::unix::net::UnixStream::pair().unwrap();
    guest.client = Client::new(nobody);
    assert_eq!(second.call(&Request::Ping), Ok(Reply::Done));
    drop(second);
    assert_eq!(guest.connect().call(&Request::Ping), Ok(Reply::Done));
}

#[test]
fn shutdown_answers_when_everything_is_dead() {
    let mut guest = Guest::start();
    let exec = guest.exec("echo $$ >>pids; (setsid sh -c 'trap \"\" TERM; echo $$ >>pids; while :; do sleep 1; done' &); sleep 600");
    guest.client.begin(&Request::Exec(exec));
    let pids = pids_in(&guest.path("pids"), 2);
    assert_eq!(guest.client.call(&Request::Shutdown), Ok(Reply::Done));
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    assert!(guest.wait_for_end().success());
}

#[test]
fn the_time_to_live_ends_everything() {
    let mut guest = Guest::start_with(|config| config.ttl_ms = Some(400));
    let begun = Instant::now();
    let exec = guest.exec("echo $$ >>pids; exec sleep 600");
    guest.client.begin(&Request::Exec(exec));
    let pids = pids_in(&guest.path("pids"), 1);
    assert!(guest.wait_for_end().success());
    assert!(begun.elapsed() >= Duration::from_millis(300) && !is_alive(pids[0]));
}

#[test]
fn the_idle_timeout_waits_for_commands_and_not_for_started_processes() {
    let mut guest = Guest::start_with(|config| config.idle_timeout_ms = Some(300));
    let started = guest.client.start(guest.exec("exec sleep 600"));
    // Longer than the timeout, and an activity all the time.
    assert_eq!(guest.run("sleep 0.8; echo done").stdout, "done\n");
    let idle_since = Instant::now();
    assert!(guest.wait_for_end().success());
    assert!(idle_since.elapsed() >= Duration::from_millis(250) && !is_alive(started.pid));
}

#[test]
fn an_idle_guest_is_not_woken() {
    let mut guest = Guest::start_with(|config| config.ttl_ms = Some(3_600_000));
    guest.run("true");
    let switches = |guest: &Guest| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", guest.process.id())).unwrap();
        let count = |name: &str| -> u64 {
            status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
        };
        count("voluntary_ctxt_switches:")
    };
    // The command's reaper waits for another one first.
    wait_until("no reaper is left", || reapers(&guest).is_empty().then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    let before = switches(&guest);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(switches(&guest), before);
}

fn logs(client: &mut Client, request: LogRequest) -> Vec<(u8, u64, String)> {
    let call = client.begin(&Request::Logs(request));
    let mut pieces = Vec::new();
    let reply = client.finish_with(call, |frame| {
        if frame.header.kind == Kind::Data {
            let (offset, rest) = frame.payload.split_first_chunk::<8>().unwrap();
            let (_, bytes) = rest.split_first_chunk::<8>().unwrap();
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            pieces.push((frame.header.channel, u64::from_le_bytes(*offset), text));
        }
    });
    assert_eq!(reply, Ok(Reply::Done));
    pieces
}

fn wait(client: &mut Client, id: u32) -> ProcessRecord {
    match client.call(&Request::Wait(id, None)) {
        Ok(Reply::Process(record)) => record,
        other => panic!("{other:?} to a wait"),
    }
}

fn all_of(process: u32) -> LogRequest {
    LogRequest { process, stream: None, offset: 0, tail: None, follow: false, tail_lines: None }
}

#[test]
fn a_started_process_keeps_its_log_with_offsets_over_both_streams() {
    let mut guest = Guest::start();
    let started =
        guest.client.start(guest.exec("echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three; exit 6"));
    assert!(started.pid > 0 && started.status.is_none() && started.command.starts_with("echo one"));
    let record = wait(&mut guest.client, started.id);
    assert_eq!(record.status, Some(Status::Exited(6)));
    assert!(record.ended_ms.unwrap() >= record.started_ms);
    let piece = |channel, offset, text: &str| (channel, offset, text.to_owned());
    let (one, two) = (piece(CHANNEL_STDOUT, 0, "one\n"), piece(CHANNEL_STDERR, 4, "two\n"));
    let three = piece(CHANNEL_STDOUT, 8, "three\n");
    let all = all_of(started.id);
    let client = &mut guest.client;
    assert_eq!(logs(client, all), [one.clone(), two.clone(), three.clone()]);
    assert_eq!(logs(client, LogRequest { stream: Some(CHANNEL_STDERR), ..all }), [two]);
    assert_eq!(logs(client, LogRequest { offset: 10, ..all }), [piece(CHANNEL_STDOUT, 10, "ree\n")]);
    assert_eq!(logs(client, LogRequest { tail: Some(6), ..all }), [three]);
    assert_eq!(logs(client, LogRequest { offset: 99, follow: true, ..all }), []);
    assert_eq!(client.call(&Request::Logs(all_of(99))).unwrap_err().kind, "not_found");
}

#[test]
fn a_log_is_followed_until_the_process_ends() {
    let mut guest = Guest::start();
    let exec = guest.exec("for i in 1 2 3; do echo $i; sleep 0.05; done; echo last >&2");
    let started = guest.client.start(exec);
    let pieces = logs(&mut guest.client, LogRequest { follow: true, ..all_of(started.id) });
    let text: String = pieces.iter().map(|(_, _, text)| text.as_str()).collect();
    assert_eq!(text, "1\n2\n3\nlast\n");
}

#[test]
fn a_log_keeps_the_last_bytes_and_says_which() {
    let mut guest = Guest::start_with(|config| config.log_bytes = 10_000);
    let started = guest.client.start(guest.exec("seq 1 20000"));
    wait(&mut guest.client, started.id);
    let pieces = logs(&mut guest.client, all_of(started.id));
    let kept: usize = pieces.iter().map(|(_, _, text)| text.len()).sum();
    assert!(kept > 4000 && kept <= 10_000, "{kept}");
    let end = pieces.last().map(|(_, offset, text)| offset + text.len() as u64).unwrap();
    assert_eq!((end, pieces[0].1), (108_894, end - kept as u64));
}

#[test]
fn started_processes_are_listed_signalled_killed_and_forgotten_when_there_are_many() {
    let mut guest = Guest::start();
    let sleeper = guest.client.start(guest.exec("trap 'exit 8' TERM; while :; do sleep 0.01; done"));
    let tree = guest.client.start(guest.exec("(setsid sleep 600 & echo $! >>pids); sleep 600"));
    let pids = pids_in(&guest.path("pids"), 1);
    let client = &mut guest.client;
    assert_eq!(client.call(&Request::Kill(tree.id, None)), Ok(Reply::Done));
    assert_eq!(wait(client, tree.id).status, Some(Status::Signaled(9)));
    assert!(!is_alive(pids[0]));
    wait_until("the trap is set", || {
        assert_eq!(client.call(&Request::Kill(sleeper.id, Some(15))), Ok(Reply::Done));
        let Ok(Reply::Processes(list)) = client.call(&Request::Processes) else { panic!("no list") };
        list.into_iter().find(|record| record.id == sleeper.id)?.status
    });
    assert_eq!(client.call(&Request::Kill(99, None)).unwrap_err().kind, "not_found");
    for _ in 0..70 {
        let started = guest.client.start(guest.exec("true"));
        wait(&mut guest.client, started.id);
    }
    let Ok(Reply::Processes(list)) = guest.client.call(&Request::Processes) else { panic!("no list") };
    assert_eq!((list.len(), list[63].id), (64, 72));
}

#[test]
fn a_process_that_can_not_start_is_refused_and_not_listed() {
    let mut guest = Guest::start();
    let exec = Exec { command: CommandSpec::Argv(vec!["no-such-program".into()]), ..guest.exec("") };
    assert_eq!(guest.client.call(&Request::Start(exec)).unwrap_err().kind, "not_found");
    assert_eq!(guest.client.call(&Request::Processes), Ok(Reply::Processes(Vec::new())));
    let exec = Exec { cwd: Location { path: "/nowhere".into(), beneath: None }, ..guest.exec("true") };
    assert_eq!(guest.client.call(&Request::Start(exec)).unwrap_err().kind, "not_found");
}

#[test]
fn a_wait_and_a_follow_can_be_cancelled() {
    let mut guest = Guest::start();
    let started = guest.client.start(guest.exec("exec sleep 600"));
    let follow = LogRequest { follow: true, ..all_of(started.id) };
    for request in [Request::Wait(started.id, None), Request::Logs(follow)] {
        let call = guest.client.begin(&request);
        guest.client.send(Kind::Cancel, call, 0, &[]);
        assert_eq!(guest.client.finish(call).unwrap_err().kind, "cancelled");
    }
    assert!(is_alive(started.pid));
}

#[test]
fn f7_many_files_are_read_and_written_at_once_over_one_connection() {
    let mut guest = Guest::start();
    let content = vec![b'c'; 100_000];
    let location =
        |guest: &Guest, index: usize| Location { path: guest.path(&format!("f{index}")), beneath: None };
    let writes: Vec<u32> = (0..100)
        .map(|index| {
            let how = WriteParameters { mode: 0, permissions: None, max_bytes: None };
            let call = guest.client.begin(&Request::Write(location(&guest, index), how));
            for piece in content.chunks(MAX_PAYLOAD_BYTES) {
                guest.client.send(Kind::Data, call, CHANNEL_MAIN, piece);
            }
            guest.client.send(Kind::End, call, CHANNEL_MAIN, &[]);
            call
        })
        .collect();
    for call in writes {
        assert_eq!(guest.client.finish(call), Ok(Reply::Size(100_000)));
    }
    let reads: Vec<u32> =
        (0..100).map(|index| guest.client.begin(&Request::Read(location(&guest, index), 0, None))).collect();
    for call in reads {
        let mut bytes = 0;
        let reply = guest.client.finish_with(call, |frame| {
            bytes += if frame.header.kind == Kind::Data { frame.payload.len() } else { 0 };
        });
        assert_eq!((reply, bytes), (Ok(Reply::Done), 100_000));
    }
}

/// Begins a command that is kept, and returns its record.
fn keep(client: &mut Client, exec: Exec, linger_ms: u64) -> KeptRecord {
    let call = client.begin(&Request::Keep(exec, KeepTerms { linger_ms, timeout_ms: None }));
    match decode(&client.next_of(call).payload) {
        Ok(Event::Kept(record)) => record,
        other => panic!("{other:?} of a kept command"),
    }
}

fn kept_end(client: &mut Client, record: &KeptRecord) -> Result<KeptRecord, Failure> {
    match client.call(&Request::KeptEnd(record.id.clone()))? {
        Reply::Kept(record) => Ok(record),
        other => panic!("{other:?} to a wait for a kept command"),
    }
}

#[test]
fn a_kept_command_outlives_its_connection_with_its_output() {
    let mut guest = Guest::start();
    let mut other = guest.connect();
    let record = keep(&mut other, guest.exec("echo out; sleep 0.1; echo err >&2; exit 3"), 600_000);
    drop(other);
    let ended = kept_end(&mut guest.client, &record).unwrap();
    assert_eq!(ended.end.map(|end| (end.status, end.cause)), Some((Status::Exited(3), None)));
    assert_eq!((ended.first, ended.next, ended.stdout_bytes, ended.stderr_bytes), (1, 3, 4, 4));
    let call = guest.client.begin(&Request::Attach(record.id.clone(), Some(2)));
    let mut heard = Vec::new();
    let reply = guest.client.finish_with(call, |frame| {
        if frame.header.kind == Kind::Data {
            heard.push((frame.header.channel, frame.payload.clone()));
        }
    });
    let payload = [&2_u64.to_le_bytes()[..], &3_u64.to_le_bytes(), b"err\n"].concat();
    assert_eq!(heard, [(CHANNEL_STDERR, payload)]);
    assert!(matches!(reply, Ok(Reply::Kept(KeptRecord { end: Some(_), .. }))), "{reply:?}");
}

#[test]
fn a_kept_command_whose_input_is_cut_off_is_killed() {
    let mut guest = Guest::start();
    let mut other = guest.connect();
    let record = keep(&mut other, Exec { stdin: true, ..guest.exec("cat; sleep 86480") }, 600_000);
    let input = other.begin(&Request::KeptInput(record.id.clone()));
    other.send(Kind::Data, input, CHANNEL_MAIN, b"half of it");
    drop(other);
    let ended = kept_end(&mut guest.client, &record).unwrap();
    assert_eq!(ended.end.unwrap().cause, Some(StopCause::Client));
}

#[test]
fn a_kept_command_is_forgotten_when_nobody_comes_back() {
    let mut guest = Guest::start();
    let mut other = guest.connect();
    let record = keep(&mut other, guest.exec("sleep 86481"), 0);
    let wait = guest.client.begin(&Request::KeptEnd(record.id.clone()));
    drop(other);
    assert_eq!(guest.client.finish(wait).unwrap_err().kind, "not_found");
    assert_eq!(guest.client.call(&Request::KeptCommands), Ok(Reply::KeptList(Vec::new())));
}

#[test]
fn no_more_than_so_many_commands_are_kept() {
    let mut guest = Guest::start();
    let exec = guest.exec("true");
    for _ in 0..MAX_KEPT {
        keep(&mut guest.client, exec.clone(), 600_000);
    }
    let call = guest.client.begin(&Request::Keep(exec, KeepTerms { linger_ms: 0, timeout_ms: None }));
    assert_eq!(guest.client.finish(call).unwrap_err().kind, "quota");
}
