//! The driver against the real guest program, as an ordinary process without any isolation: every
//! method once.
#![cfg(all(feature = "client", feature = "program"))]
#![allow(clippy::unwrap_used)]

mod client_fake;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use client_fake::{CLIENT_NONCE, GUEST_NONCE, parts, place};
use eyot::{
    ByteRange, ByteStream, Bytes, Command, ConfinedPath, CreateDirOptions, Error, ErrorKind, ExecRequest,
    ExecutionEvent, ExitStatus, FileType, GlobOptions, GrepOptions, LogQuery, LogStream, ProcessId,
    ProcessStatus, PtySize, RemoveOptions, SandboxDriver, Signal, StartTerms, TarInOptions, WriteMode,
    WriteOptions,
};
use eyot_guest::client::{Connection, FileGate, GuestDriver, GuestDriverParts};
use eyot_guest::protocol::{GuestConfig, Identity, WINDOW, encode};
use futures_util::{StreamExt, TryStreamExt, stream};
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A guest that runs, with a directory of its own.
struct Guest {
    driver: GuestDriver,
    connection: Connection,
    directory: TempDir,
    child: Child,
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself.
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("the guest could not be ended: {error}");
        }
    }
}

impl Guest {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (host, stream) = UnixStream::pair().unwrap();
        let child = spawn(directory.path(), stream.into());
        let connection = open(host).await.unwrap();
        let driver = GuestDriver::new(connection.clone(), parts(directory.path().to_str().unwrap()));
        driver.adopt().await.unwrap();
        Self { driver, connection, directory, child }
    }

    fn place(&self, name: &str) -> ConfinedPath {
        place(self.directory.path().join(name).to_str().unwrap())
    }

    fn command(&self, line: &str) -> ExecRequest {
        let (command, cwd) = (Command::shell(line), self.place(""));
        ExecRequest { command, cwd, env: BTreeMap::new(), user: None, stdin: false, pty: None }
    }

    async fn run(&self, request: ExecRequest) -> (String, String, ExitStatus) {
        collect(self.driver.exec(request).await.unwrap()).await
    }

    async fn put(&self, name: &str, content: &str) {
        let content = Bytes::copy_from_slice(content.as_bytes());
        self.driver.write(&self.place(name), once(content), WriteOptions::default()).await.unwrap();
    }

    async fn get(&self, name: &str) -> Bytes {
        let content = self.driver.read(&self.place(name), ByteRange::default()).await.unwrap();
        content.try_collect::<Vec<_>>().await.unwrap().concat().into()
    }
}

async fn collect(execution: eyot::Execution) -> (String, String, ExitStatus) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut events = execution.events;
    while let Some(event) = events.next().await {
        match event.unwrap() {
            ExecutionEvent::Stdout(bytes) => stdout.extend(bytes),
            ExecutionEvent::Stderr(bytes) => stderr.extend(bytes),
            ExecutionEvent::Exit { status, .. } => {
                assert!(events.next().await.is_none());
                return (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status);
            }
        }
    }
    panic!("the events ended without an exit");
}

/// Admits what the guest passes, and counts.
#[derive(Default)]
struct CountingGate(AtomicU32);

impl FileGate for CountingGate {
    fn admits(&self, _: BorrowedFd<'_>) -> std::io::Result<bool> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(true)
    }
}

async fn open(stream: UnixStream) -> Result<Connection, Error> {
    stream.set_nonblocking(true).unwrap();
    let stream = tokio::net::UnixStream::from_std(stream).unwrap();
    Connection::open(stream, CLIENT_NONCE, GUEST_NONCE).await
}

fn once(content: Bytes) -> ByteStream {
    Box::pin(stream::iter([Ok(content)]))
}

/// Starts the program with its three descriptors where it looks for them. A shell puts them there:
/// what stands on its own standard streams.
fn spawn(directory: &Path, stream: OwnedFd) -> Child {
    let listener = UnixListener::bind(directory.join("guest.sock")).unwrap();
    let (config, mut config_writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut config_writer, &encode(&guest_config(directory))).unwrap();
    std::process::Command::new("sh")
        .args(["-c", r#"exec "$0" 3<&0 4<&1 5<&2 0</dev/null 1>/dev/null 2>"$1""#])
        .args([Path::new(env!("CARGO_BIN_EXE_eyot-guest")), &directory.join("guest.log")])
        .stdin(Stdio::from(stream))
        .stdout(Stdio::from(OwnedFd::from(listener)))
        .stderr(Stdio::from(OwnedFd::from(config)))
        .spawn()
        .unwrap()
}

fn guest_config(directory: &Path) -> GuestConfig {
    let own = std::fs::metadata(directory).unwrap();
    let (uid, gid) = (std::os::unix::fs::MetadataExt::uid(&own), std::os::unix::fs::MetadataExt::gid(&own));
    let home = directory.to_str().unwrap().to_owned();
    GuestConfig {
        client_nonce: CLIENT_NONCE,
        guest_nonce: GUEST_NONCE,
        ttl_ms: None,
        idle_timeout_ms: None,
        user: Identity { name: "user".to_owned(), uid, gid, home, capabilities: 0 },
        users: Vec::new(),
        env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        switch_user: false,
        log_bytes: 1 << 20,
        max_processes: None,
        forbid_setuid: false,
        memory_events_fd: None,
        last_process_id: 0,
        later_users: None,
        late_files: Vec::new(),
    }
}

#[tokio::test]
async fn a_command_gives_output_apart_and_its_exit() {
    let guest = Guest::start().await;
    let mut request = guest.command("echo out; echo \"$GREETING\" >&2; exit 3");
    request.env.insert("GREETING".to_owned(), "hällo".to_owned());
    let expected = ("out\n".to_owned(), "hällo\n".to_owned(), ExitStatus::Exited(3));
    assert_eq!(guest.run(request).await, expected);
    let argv = ExecRequest { command: Command::argv(["sh", "-c", "kill -9 $$"]), ..guest.command("") };
    assert_eq!(guest.run(argv).await.2, ExitStatus::Signaled(9));
    let missing = ExecRequest { command: Command::argv(["no-such-program"]), ..guest.command("") };
    assert_eq!(guest.driver.exec(missing).await.err().unwrap().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_file_of_some_size_on_a_disk_is_passed_and_every_other_one_is_sent() {
    let mut guest = Guest::start().await;
    let stream = UnixStream::connect(guest.directory.path().join("guest.sock")).unwrap();
    let local = Connection::reopen_local(stream, CLIENT_NONCE, GUEST_NONCE).await.unwrap();
    let gate = Arc::new(CountingGate::default());
    guest.driver =
        GuestDriver::new(local, parts_of(&guest)).with_file_gate(Arc::clone(&gate) as Arc<dyn FileGate>);
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    for (name, size) in [("empty", 0), ("small", 10), ("a-frame", 65_524)] {
        std::fs::write(guest.directory.path().join(name), &content[..size]).unwrap();
        assert!(guest.get(name).await == content[..size], "{name}");
    }
    let huge = std::fs::File::create(guest.directory.path().join("huge")).unwrap();
    huge.set_len(9 << 20).unwrap();
    assert_eq!(guest.get("huge").await.len(), 9 << 20);
    let status = guest.driver.read(&place("/proc/self/status"), ByteRange::default()).await.unwrap();
    assert!(status.try_collect::<Vec<_>>().await.unwrap().concat().starts_with(b"Name:"));
    assert_eq!(gate.0.load(Ordering::SeqCst), 0);
    for (name, size) in [("large", 65_525), ("whole", content.len())] {
        std::fs::write(guest.directory.path().join(name), &content[..size]).unwrap();
        assert!(guest.get(name).await == content[..size], "{name}");
    }
    let range = ByteRange { offset: 1000, limit: Some(100_000) };
    let part = guest.driver.read(&guest.place("whole"), range).await.unwrap();
    assert!(part.try_collect::<Vec<_>>().await.unwrap().concat() == content[1000..101_000]);
    // The folder for temporary files may be in memory.
    let magic = rustix::fs::statfs(guest.directory.path()).unwrap().f_type;
    if [0xef53, 0x5846_5342, 0x9123_683e, 0x794c_7630].contains(&magic) {
        assert_eq!(gate.0.load(Ordering::SeqCst), 3);
    }
    // A client that does not ask for descriptors gets none.
    let stream = UnixStream::connect(guest.directory.path().join("guest.sock")).unwrap();
    guest.driver = GuestDriver::new(open(stream).await.unwrap(), parts_of(&guest)).with_file_gate(gate);
    assert!(guest.get("whole").await == content);
}

#[tokio::test]
async fn a_passed_file_replaces_as_a_whole_and_one_that_is_given_up_is_gone() {
    let mut guest = Guest::start().await;
    let stream = UnixStream::connect(guest.directory.path().join("guest.sock")).unwrap();
    let local = Connection::reopen_local(stream, CLIENT_NONCE, GUEST_NONCE).await.unwrap();
    let gate = Arc::new(CountingGate::default());
    guest.driver = GuestDriver::new(local, parts_of(&guest)).with_file_gate(gate);
    let content: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
    let file = guest.directory.path().join("f");
    let pieces = |sizes: &[usize]| -> ByteStream {
        let mut rest = Bytes::from(content.clone());
        let pieces: Vec<_> = sizes.iter().map(|size| Ok(rest.split_to(*size))).collect();
        Box::pin(stream::iter(pieces))
    };
    let cases: [(&[usize], WriteMode); 6] = [
        (&[100_000], WriteMode::CreateNew),
        (&[9_000_000], WriteMode::Replace),
        (&[100_000, 1, 70_000], WriteMode::Replace),
        (&[1, 100_000], WriteMode::Replace),
        (&[65_524], WriteMode::Replace),
        (&[65_525], WriteMode::Replace),
    ];
    for (sizes, mode) in cases {
        let options = WriteOptions { mode, ..WriteOptions::default() };
        let total: usize = sizes.iter().sum();
        let written = guest.driver.write(&guest.place("f"), pieces(sizes), options).await.unwrap();
        assert_eq!(written, total as u64);
        assert!(std::fs::read(&file).unwrap() == content[..total], "{sizes:?}");
    }
    let bounded = WriteOptions { max_file_bytes: Some(150_000), ..WriteOptions::default() };
    let long = guest.driver.write(&guest.place("f"), pieces(&[100_000, 50_001]), bounded).await.unwrap_err();
    assert_eq!(long.kind(), ErrorKind::TooLarge, "{long}");
    let failing = Box::pin(stream::iter([
        Ok(Bytes::from(vec![7; 100_000])),
        Err(Error::new(ErrorKind::Internal, "the source failed")),
    ]));
    let failed = guest.driver.write(&guest.place("f"), failing, WriteOptions::default()).await.unwrap_err();
    assert!(failed.to_string().contains("the source failed"), "{failed}");
    let missing = guest.driver.write(&guest.place("no/f"), pieces(&[100_000]), WriteOptions::default()).await;
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    let appended = WriteOptions { mode: WriteMode::Append, ..WriteOptions::default() };
    guest.driver.write(&guest.place("f"), pieces(&[100_000]), appended).await.unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 165_525);
    let names = std::fs::read_dir(guest.directory.path()).unwrap().flatten();
    let left: Vec<_> =
        names.map(|e| e.file_name()).filter(|n| n.to_string_lossy().starts_with(".eyot")).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn parts_of(guest: &Guest) -> GuestDriverParts {
    parts(guest.directory.path().to_str().unwrap())
}

#[tokio::test]
async fn input_larger_than_the_window_comes_back_through_cat() {
    let guest = Guest::start().await;
    let mut execution = guest.driver.exec(ExecRequest { stdin: true, ..guest.command("cat") }).await.unwrap();
    let mut input = execution.input.take().unwrap();
    let content = "0123456789abcdef".repeat(WINDOW as usize / 4);
    let write = async {
        input.write(content.clone().into()).await.unwrap();
        drop(input);
    };
    let ((), (stdout, _, status)) = tokio::join!(write, collect(execution));
    assert!(stdout == content && status == ExitStatus::Exited(0));
}

#[tokio::test]
async fn a_running_command_is_signalled_and_killed() {
    let guest = Guest::start().await;
    let execution = guest.driver.exec(guest.command("sleep 60")).await.unwrap();
    execution.control.signal(Signal::TERM).await.unwrap();
    assert_eq!(collect(execution).await.2, ExitStatus::Signaled(15));
    let execution = guest.driver.exec(guest.command("trap '' TERM; sleep 60")).await.unwrap();
    execution.control.kill().await.unwrap();
    assert_eq!(collect(execution).await.2, ExitStatus::Signaled(9));
}

#[tokio::test]
async fn dropping_a_command_kills_it() {
    let guest = Guest::start().await;
    drop(guest.driver.exec(guest.command("sleep 60")).await.unwrap());
    while guest.driver.usage().await.unwrap().processes != Some(0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_command_on_a_terminal_knows_its_size() {
    let guest = Guest::start().await;
    let pty = Some(PtySize { rows: 30, cols: 100 });
    let request = ExecRequest { pty, stdin: true, ..guest.command("stty size; read x; stty size") };
    let mut execution = guest.driver.exec(request).await.unwrap();
    execution.control.resize(PtySize { rows: 31, cols: 101 }).await.unwrap();
    let mut input = execution.input.take().unwrap();
    input.write(Bytes::from_static(b"go\n")).await.unwrap();
    let (stdout, _, status) = collect(execution).await;
    assert!(stdout.contains("31 101") && status == ExitStatus::Exited(0), "{stdout}");
}

#[tokio::test]
async fn two_hundred_commands_at_once_are_independent() {
    let guest = Guest::start().await;
    let runs = (0..200).map(|index| {
        let request = guest.command(&format!("echo {index}; exit {}", index % 7));
        async { guest.run(request).await }
    });
    let results = futures_util::future::join_all(runs).await;
    for (index, (stdout, _, status)) in results.into_iter().enumerate() {
        assert_eq!((stdout, status), (format!("{index}\n"), ExitStatus::Exited(index as i32 % 7)));
    }
}

#[tokio::test]
async fn files_are_written_read_and_described() {
    let guest = Guest::start().await;
    guest.put("a", "hello").await;
    let append = WriteOptions { mode: WriteMode::Append, ..WriteOptions::default() };
    let size =
        guest.driver.write(&guest.place("a"), once(Bytes::from_static(b" you")), append).await.unwrap();
    assert_eq!((size, &guest.get("a").await[..]), (9, &b"hello you"[..]));
    let range = ByteRange { offset: 6, limit: Some(2) };
    let part = guest.driver.read(&guest.place("a"), range).await.unwrap();
    let part = part.try_collect::<Vec<_>>().await.unwrap().concat();
    assert_eq!(&part[..], b"yo");
    let stat = guest.driver.stat(&guest.place("a")).await.unwrap();
    assert!(stat.is_file && stat.size == Some(9) && stat.is_symbolic_link == Some(false));
    assert!(guest.driver.exists(&guest.place("a")).await.unwrap());
    assert!(!guest.driver.exists(&guest.place("b")).await.unwrap());
    let missing = guest.driver.read(&guest.place("b"), ByteRange::default()).await;
    assert_eq!(missing.err().unwrap().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_large_file_goes_in_and_comes_out_unchanged() {
    let guest = Guest::start().await;
    let content: Bytes = (0..20 * WINDOW).map(|index| (index % 251) as u8).collect();
    let pieces: Vec<_> = content.chunks(100_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let (big, pieces) = (guest.place("big"), Box::pin(stream::iter(pieces)));
    let written = guest.driver.write(&big, pieces, WriteOptions::default()).await;
    assert_eq!(written.unwrap(), content.len() as u64);
    assert!(guest.get("big").await == content);
}

#[tokio::test]
async fn content_that_fails_leaves_the_old_file() {
    let guest = Guest::start().await;
    guest.put("a", "old").await;
    let broken = Error::new(ErrorKind::Conflict, "the upload broke off");
    let content: ByteStream = Box::pin(stream::iter([Ok(Bytes::from_static(b"new")), Err(broken)]));
    let error = guest.driver.write(&guest.place("a"), content, WriteOptions::default()).await.unwrap_err();
    assert_eq!((error.kind(), &guest.get("a").await[..]), (ErrorKind::Conflict, &b"old"[..]));
}

#[tokio::test]
async fn directories_are_made_listed_moved_and_removed() {
    let guest = Guest::start().await;
    let driver = &guest.driver;
    driver.create_dir(&guest.place("d/e"), CreateDirOptions { recursive: true }).await.unwrap();
    for index in 0..3000 {
        std::fs::write(guest.directory.path().join(format!("d/file-with-a-long-name-{index:05}")), "x")
            .unwrap();
    }
    let mut entries = driver.list(&guest.place("d")).await.unwrap();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(entries.len() == 3001 && entries.is_sorted_by(|one, other| one.name < other.name));
    assert_eq!((entries[0].name.as_str(), entries[0].file_type), ("e", Some(FileType::Directory)));
    driver.rename(&guest.place("d"), &guest.place("f")).await.unwrap();
    let refused = driver.remove(&guest.place("f"), RemoveOptions::default()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::IsDirectory);
    driver.remove(&guest.place("f"), RemoveOptions { recursive: true, force: false }).await.unwrap();
    assert!(!driver.exists(&guest.place("f")).await.unwrap());
}

#[tokio::test]
async fn glob_and_grep_find_and_stop_where_they_should() {
    let guest = Guest::start().await;
    for name in ["a.rs", "b.rs", "c.txt"] {
        guest.put(name, "one\ntwo needle\n").await;
    }
    let glob =
        GlobOptions { pattern: "*.rs".to_owned(), root: guest.place(""), hidden: false, max_results: 1000 };
    let found = guest.driver.glob(&glob).await.unwrap();
    assert!(found.paths.len() == 2 && !found.truncated && found.paths[0].ends_with("/a.rs"), "{found:?}");
    let grep = GrepOptions {
        pattern: "NEEDLE".to_owned(),
        literal: true,
        ignore_case: true,
        root: guest.place(""),
        include: Some("*.rs".to_owned()),
        max_matches: 1,
        max_line_bytes: 100,
    };
    let found = guest.driver.grep(&grep).await.unwrap();
    assert!(found.matches.len() == 1 && found.truncated, "{found:?}");
    assert_eq!((found.matches[0].line_number, found.matches[0].line.as_str()), (2, "two needle"));
}

#[tokio::test]
async fn a_tree_goes_out_and_in_as_tar() {
    let guest = Guest::start().await;
    guest.driver.create_dir(&guest.place("d"), CreateDirOptions::default()).await.unwrap();
    guest.driver.create_dir(&guest.place("in"), CreateDirOptions::default()).await.unwrap();
    guest.put("d/a", &"content".repeat(100_000)).await;
    let tar = guest.driver.tar_out(&guest.place("d")).await.unwrap();
    let made = guest.driver.tar_in(&guest.place("in"), tar, TarInOptions::default()).await.unwrap();
    assert_eq!(made, 2);
    assert_eq!(guest.get("in/d/a").await.len(), 700_000);
}

#[tokio::test]
async fn a_port_is_dialled_and_closes_by_halves() {
    let guest = Guest::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::task::spawn_blocking(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut received).unwrap();
        std::io::Write::write_all(&mut stream, &received).unwrap();
        received.len()
    });
    let mut tcp = guest.driver.dial(port).await.unwrap();
    let content = vec![9; 3 * WINDOW as usize];
    tcp.write_all(&content).await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut echoed = Vec::new();
    tcp.read_to_end(&mut echoed).await.unwrap();
    assert!(echoed == content && server.await.unwrap() == content.len());
    assert_eq!(guest.driver.dial(port).await.err().unwrap().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_started_process_is_listed_logged_waited_for_and_killed() {
    let guest = Guest::start().await;
    let driver = &guest.driver;
    let started =
        driver.start(guest.command("echo one; echo two >&2; sleep 60"), StartTerms::default()).await.unwrap();
    assert_eq!(started.status, ProcessStatus::Running);
    let follow = LogQuery { follow: true, ..LogQuery::default() };
    let mut log = driver.logs(started.id, follow).await.unwrap();
    let (mut stdout, mut bytes) = (Vec::new(), 0);
    while bytes < 8 {
        let chunk = log.next().await.unwrap().unwrap();
        bytes += chunk.data.len();
        if chunk.stream == LogStream::Stdout {
            stdout.extend(chunk.data);
        }
    }
    assert_eq!(stdout, b"one\n");
    assert_eq!(driver.processes().await.unwrap().len(), 1);
    driver.kill(started.id, None).await.unwrap();
    let ended = driver.wait(started.id).await.unwrap();
    assert_eq!(ended.status, ProcessStatus::Ended(ExitStatus::Signaled(9)));
    assert!(log.next().await.is_none());
}

#[tokio::test]
async fn the_log_of_a_process_that_says_nothing_opens_at_once_and_that_of_an_unknown_one_is_refused() {
    let guest = Guest::start().await;
    let started = guest.driver.start(guest.command("sleep 60"), StartTerms::default()).await.unwrap();
    let follow = LogQuery { follow: true, ..LogQuery::default() };
    let log = guest.driver.logs(started.id, follow).await.unwrap();
    drop(log);
    let unknown = guest.driver.logs(ProcessId(99), follow).await.err().unwrap();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    guest.driver.ping().await.unwrap();
}

#[tokio::test]
async fn usage_is_known() {
    let guest = Guest::start().await;
    let usage = guest.driver.usage().await.unwrap();
    assert!(usage.uptime_ms.is_some() && usage.disk_bytes.is_none());
}

#[tokio::test]
async fn a_second_connection_comes_through_the_listener_and_a_wrong_nonce_does_not() {
    let guest = Guest::start().await;
    let socket = guest.directory.path().join("guest.sock");
    let second = open(UnixStream::connect(&socket).unwrap()).await.unwrap();
    second.ping().await.unwrap();
    assert_eq!(second.adopt().await.unwrap_err().kind(), ErrorKind::Permission);
    let stranger = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let error = Connection::open(stranger, [7; 16], GUEST_NONCE).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Permission);
}

#[tokio::test]
async fn e5_a_guest_that_is_killed_settles_what_is_under_way() {
    let mut guest = Guest::start().await;
    let execution = guest.driver.exec(guest.command("sleep 5")).await.unwrap();
    guest.child.kill().unwrap();
    let last = execution.events.try_collect::<Vec<_>>().await.unwrap_err();
    assert_eq!(last.kind(), ErrorKind::Unavailable);
    assert_eq!(guest.driver.ping().await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_command_that_comes_after_the_request_to_end_is_known_not_to_have_begun() {
    let guest = Guest::start().await;
    let mut begun = guest.driver.exec(guest.command("sleep 1000")).await.unwrap().events;
    let pid = Pid::from_child(&guest.child);
    kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let place = guest.place("made");
    // Each is sent when it is first polled, in this order.
    let (ended, late, written, ()) = tokio::join!(
        guest.connection.shutdown(),
        guest.driver.exec(guest.command("touch late")),
        guest.driver.create_dir(&place, CreateDirOptions::default()),
        async { kill_process(pid, rustix::process::Signal::CONT).unwrap() }
    );
    ended.unwrap();
    assert!(late.err().unwrap().had_no_effect());
    assert!(written.unwrap_err().had_no_effect());
    while let Some(event) = begun.next().await {
        let Err(error) = event else { continue };
        assert!(!error.had_no_effect(), "{error}");
    }
    let left = std::fs::read_dir(guest.directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name == "late" || name == "made"));
}

#[tokio::test]
async fn shutdown_ends_the_guest() {
    let mut guest = Guest::start().await;
    drop(guest.driver.start(guest.command("sleep 60"), StartTerms::default()).await.unwrap());
    guest.driver.shutdown().await.unwrap();
    guest.driver.connection().closed().await;
    tokio::task::spawn_blocking(move || guest.child.wait().unwrap()).await.unwrap();
}
