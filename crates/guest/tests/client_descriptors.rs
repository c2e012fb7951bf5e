//! Files whose descriptors a guest passes, and everything else that a hostile guest may pass in
//! their place (threats N6, F2 and F5): nothing but a regular file of the sandbox's own is read, the
//! connection ends at the first breach, and every descriptor is closed.
#![cfg(all(feature = "client", feature = "program"))]
#![allow(clippy::unwrap_used)]

mod client_fake;

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use client_fake::{FakeGuest, connected_locally, parts, place};
use eyot::{ByteRange, ByteStream, Bytes, Error, ErrorKind, Result, SandboxDriver, WriteOptions};
use eyot_guest::client::{FileGate, GuestDriver};
use eyot_guest::protocol::{Event, Header, Kind, Reply, Request, encode};
use futures_util::{StreamExt, TryStreamExt};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tempfile::TempDir;

/// A test that takes longer hangs.
const HANG: Duration = Duration::from_secs(60);

/// A gate that answers the same to everything, and counts.
struct CountingGate {
    admits: bool,
    asked: AtomicU32,
}

impl FileGate for CountingGate {
    fn admits(&self, _: BorrowedFd<'_>) -> io::Result<bool> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.admits)
    }
}

/// A gate that waits for ever, as a look at a file of a dead network would.
struct StuckGate(Mutex<mpsc::Receiver<()>>);

impl FileGate for StuckGate {
    fn admits(&self, _: BorrowedFd<'_>) -> io::Result<bool> {
        // It ends with the test.
        self.0.lock().unwrap().recv().unwrap_or_default();
        Ok(true)
    }
}

/// A driver of a fake guest that passes descriptors.
struct Scene {
    guest: FakeGuest,
    socket: UnixStream,
    driver: Arc<GuestDriver>,
    folder: TempDir,
}

impl Scene {
    async fn new(gate: impl FileGate + 'static) -> Self {
        let (guest, socket, connection) = connected_locally().await;
        let driver = GuestDriver::new(connection, parts("/workspace")).with_file_gate(Arc::new(gate));
        Self { guest, socket, driver: Arc::new(driver), folder: tempfile::tempdir().unwrap() }
    }

    async fn admitting() -> Self {
        Self::new(CountingGate { admits: true, asked: AtomicU32::new(0) }).await
    }

    /// Returns the path of a file with that content.
    fn file(&self, content: &[u8]) -> PathBuf {
        let path = self.folder.path().join("file");
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Takes the request to read, and passes these descriptors with the answer to it.
    async fn pass(&mut self, size: u64, descriptors: &[BorrowedFd<'_>]) -> u32 {
        let (call, request) = self.guest.request().await;
        assert!(matches!(request, Request::ReadPassed(..)), "{request:?}");
        send(&self.socket, &passed(call, size), descriptors);
        call
    }
}

/// The frames that end a read with a descriptor.
fn passed(call: u32, size: u64) -> Vec<u8> {
    [frame(Kind::Event, call, &encode(&Event::Passed(size))), frame(Kind::Reply, call, &encode(&Reply::Done))]
        .concat()
}

fn frame(kind: Kind, call: u32, payload: &[u8]) -> Vec<u8> {
    [&Header { kind, channel: 0, more: false, call }.to_bytes(payload.len())[..], payload].concat()
}

fn send(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(descriptors.is_empty() || control.push(SendAncillaryMessage::ScmRights(descriptors)));
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
    assert_eq!(sent, bytes.len());
}

async fn read(driver: &GuestDriver) -> Result<Vec<u8>> {
    read_range(driver, ByteRange::default()).await
}

async fn read_range(driver: &GuestDriver, range: ByteRange) -> Result<Vec<u8>> {
    let content: ByteStream = driver.read(&place("/workspace/file"), range).await?;
    Ok(content.try_collect::<Vec<_>>().await?.concat())
}

/// Counts this process's descriptors of a path, or of what was one.
fn descriptors_of(path: &Path) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    all.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(path))).count()
}

fn assert_broken(error: &Error, expected: &str) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().starts_with("the sandbox's guest broke the protocol: "), "{error}");
    assert!(error.to_string().contains(expected), "{error}");
}

/// A guest that answers a read with these descriptors must end the connection.
async fn read_met_with(descriptors: &[BorrowedFd<'_>], expected: &str) {
    let mut scene = Scene::admitting().await;
    let driver = Arc::clone(&scene.driver);
    let attack = async {
        let (outcome, _) = tokio::join!(read(&driver), scene.pass(100_000, descriptors));
        assert_broken(&outcome.unwrap_err(), expected);
        driver.connection().closed().await;
    };
    tokio::time::timeout(HANG, attack).await.unwrap();
}

#[tokio::test]
async fn a_passed_file_is_read_whole_and_in_parts() {
    let mut scene = Scene::admitting().await;
    let driver = Arc::clone(&scene.driver);
    let content: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    let path = scene.file(&content);
    let ranges =
        [(0, None), (17, None), (0, Some(100_000)), (2_097_152, Some(2_097_152)), (4_999_999, Some(9))];
    for (offset, limit) in ranges {
        let file = File::open(&path).unwrap();
        let reading = read_range(&driver, ByteRange { offset, limit });
        let fds = [file.as_fd()];
        let (bytes, _) = tokio::join!(reading, scene.pass(content.len() as u64, &fds));
        let part = &content[offset as usize..];
        let part = &part[..part.len().min(limit.map_or(usize::MAX, |limit| limit as usize))];
        assert!(bytes.unwrap() == part, "{offset} {limit:?}");
    }
    assert_eq!(descriptors_of(&path), 0);
}

#[tokio::test]
async fn f5_a_file_that_shrinks_or_grows_while_it_is_read_ends_where_it_ends() {
    for (size, claimed) in [(0, 3_000_000), (10, 3_000_000), (3_000_000, 0), (3_000_000, u64::MAX)] {
        let mut scene = Scene::admitting().await;
        let driver = Arc::clone(&scene.driver);
        let path = scene.file(&vec![7; size]);
        let file = File::open(&path).unwrap();
        let fds = [file.as_fd()];
        let (bytes, _) = tokio::join!(read(&driver), scene.pass(claimed, &fds));
        assert_eq!(bytes.unwrap().len(), size);
    }
    let mut scene = Scene::admitting().await;
    let driver = Arc::clone(&scene.driver);
    let path = scene.file(&vec![7; 5_000_000]);
    let file = File::open(&path).unwrap();
    let fds = [file.as_fd()];
    let at = place("/workspace/file");
    let (content, _) = tokio::join!(driver.read(&at, ByteRange::default()), scene.pass(5_000_000, &fds));
    let mut content = content.unwrap();
    let first = content.next().await.unwrap().unwrap().len();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(first as u64 + 3).unwrap();
    assert_eq!(content.next().await.unwrap().unwrap().len(), 3);
    assert!(content.next().await.is_none());
}

#[tokio::test]
async fn n6_a_pipe_a_fifo_a_directory_a_socket_or_a_device_ends_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    rustix::fs::mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
    let fifo =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&fifo).unwrap();
    let (pipe, _writer) = io::pipe().unwrap();
    let device = File::open("/dev/zero").unwrap();
    let not_regular: [OwnedFd; 3] = [fifo.into(), pipe.into(), device.into()];
    for file in &not_regular {
        read_met_with(&[file.as_fd()], "not a regular file").await;
    }
    read_met_with(&[File::open(folder.path()).unwrap().as_fd()], "a descriptor").await;
    let (socket, _other) = UnixStream::pair().unwrap();
    read_met_with(&[socket.as_fd()], "a descriptor with the flags").await;
}

#[tokio::test]
async fn n6_a_file_that_is_open_in_another_way_ends_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "content").unwrap();
    for flags in [OFlags::PATH, OFlags::WRONLY, OFlags::RDWR, OFlags::APPEND, OFlags::SYNC] {
        let file = rustix::fs::open(&path, flags, Mode::empty()).unwrap();
        read_met_with(&[file.as_fd()], "a descriptor with the flags").await;
    }
}

#[tokio::test]
async fn n6_more_descriptors_than_one_a_message_are_closed_and_end_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "content").unwrap();
    for count in [2, 3, 64] {
        let files: Vec<File> = (0..count).map(|_| File::open(&path).unwrap()).collect();
        let fds: Vec<_> = files.iter().map(File::as_fd).collect();
        read_met_with(&fds, "more than one descriptor").await;
        assert_eq!(descriptors_of(&path), count);
    }
}

#[tokio::test]
async fn n6_a_descriptor_without_its_message_ends_the_connection() {
    let scene = Scene::admitting().await;
    let path = scene.file(b"content");
    let file = File::open(&path).unwrap();
    let reading = tokio::spawn({
        let driver = Arc::clone(&scene.driver);
        async move { read(&driver).await }
    });
    let mut scene = scene;
    let (call, _) = scene.guest.request().await;
    // The event says that the content follows.
    send(&scene.socket, &frame(Kind::Event, call, &encode(&Event::Opened(None))), &[file.as_fd()]);
    assert_broken(&reading.await.unwrap().unwrap_err(), "a descriptor without a message");
    drop(file);
    assert_eq!(descriptors_of(&path), 0);
}

#[tokio::test]
async fn n6_a_message_without_its_descriptor_ends_the_connection() {
    read_met_with(&[], "a message without its descriptor").await;
}

#[tokio::test]
async fn n6_descriptors_that_wait_for_the_rest_of_their_message_do_not_pile_up() {
    let mut scene = Scene::admitting().await;
    let path = scene.file(b"content");
    let reading = tokio::spawn({
        let driver = Arc::clone(&scene.driver);
        async move { read(&driver).await }
    });
    let (call, _) = scene.guest.request().await;
    let file = File::open(&path).unwrap();
    // A frame that never ends, byte by byte, each with a descriptor.
    let bytes = frame(Kind::Event, call, &[0; 1000]);
    for byte in bytes.chunks(1).take(5) {
        send(&scene.socket, byte, &[file.as_fd()]);
    }
    let error = tokio::time::timeout(HANG, reading).await.unwrap().unwrap().unwrap_err();
    assert_broken(&error, "descriptor");
    drop(file);
    assert_eq!(descriptors_of(&path), 0);
}

#[tokio::test]
async fn n6_a_call_that_reads_nothing_takes_no_descriptor() {
    let mut scene = Scene::admitting().await;
    let path = scene.file(b"content");
    let file = File::open(&path).unwrap();
    let driver = Arc::clone(&scene.driver);
    let attack = async {
        let (call, _) = scene.guest.request().await;
        send(&scene.socket, &passed(call, 7), &[file.as_fd()]);
    };
    let (outcome, ()) = tokio::join!(driver.ping(), attack);
    assert_broken(&outcome.unwrap_err(), "an event that its call does not have");
    drop(file);
    assert_eq!(descriptors_of(&path), 0);
}

#[tokio::test]
async fn n6_content_beside_a_passed_file_ends_the_connection() {
    let mut scene = Scene::admitting().await;
    let path = scene.file(&[7; 100_000]);
    let file = File::open(&path).unwrap();
    let driver = Arc::clone(&scene.driver);
    let attack = async {
        let (call, _) = scene.guest.request().await;
        let event = frame(Kind::Event, call, &encode(&Event::Passed(100_000)));
        send(&scene.socket, &[event, frame(Kind::Data, call, b"more")].concat(), &[file.as_fd()]);
    };
    let (_, ()) = tokio::join!(read(&driver), attack);
    tokio::time::timeout(HANG, driver.connection().closed()).await.unwrap();
    assert_broken(&driver.ping().await.unwrap_err(), "the content of a file that was passed");
}

#[tokio::test]
async fn n6_a_file_that_is_not_the_sandboxs_own_is_read_as_a_stream() {
    let mut scene = Scene::new(CountingGate { admits: false, asked: AtomicU32::new(0) }).await;
    let path = scene.file(b"of another sandbox");
    let memory = rustix::fs::memfd_create("m", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::io::write(&memory, b"sealed").unwrap();
    rustix::fs::fcntl_add_seals(&memory, SealFlags::WRITE | SealFlags::SHRINK).unwrap();
    let memory = File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&memory))).unwrap();
    let driver = Arc::clone(&scene.driver);
    for file in [File::open(&path).unwrap(), File::open("/proc/self/status").unwrap(), memory] {
        let serve = async {
            scene.pass(100_000, &[file.as_fd()]).await;
            let (call, request) = scene.guest.request().await;
            assert!(matches!(request, Request::Read(..)), "{request:?}");
            scene.guest.opened(call).await;
            scene.guest.data(call, 0, b"as the guest sees it").await;
            scene.guest.reply(call, Reply::Done).await;
        };
        let (content, ()) = tokio::join!(read(&driver), serve);
        assert_eq!(content.unwrap(), b"as the guest sees it");
    }
    assert_eq!(descriptors_of(&path), 0);
}

#[tokio::test]
async fn n6_a_file_that_never_answers_holds_up_its_own_read_alone() {
    let (release, stuck) = mpsc::channel();
    let mut scene = Scene::new(StuckGate(Mutex::new(stuck))).await;
    let path = scene.file(b"content");
    let file = File::open(&path).unwrap();
    let reading = tokio::spawn({
        let driver = Arc::clone(&scene.driver);
        async move { read(&driver).await }
    });
    scene.pass(100_000, &[file.as_fd()]).await;
    let driver = Arc::clone(&scene.driver);
    let pong = async {
        let (call, _) = scene.guest.request().await;
        scene.guest.reply(call, Reply::Done).await;
    };
    let (answered, ()) = tokio::join!(driver.ping(), pong);
    answered.unwrap();
    let error = tokio::time::timeout(HANG, reading).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("does not answer"), "{error}");
    drop(release);
}

/// Begins to read a file that takes several pieces. Returns the rest of its content.
async fn begin(scene: &mut Scene) -> (PathBuf, ByteStream) {
    let path = scene.file(&vec![7; 5_000_000]);
    let file = File::open(&path).unwrap();
    let driver = Arc::clone(&scene.driver);
    let (at, fds) = (place("/workspace/file"), [file.as_fd()]);
    let (content, _) = tokio::join!(driver.read(&at, ByteRange::default()), scene.pass(5_000_000, &fds));
    let mut content = content.unwrap();
    assert!(!content.next().await.unwrap().unwrap().is_empty());
    drop(file);
    assert_eq!(descriptors_of(&path), 1);
    (path, content)
}

#[tokio::test]
async fn a_read_that_is_dropped_closes_its_descriptor() {
    let mut scene = Scene::admitting().await;
    let (path, content) = begin(&mut scene).await;
    drop(content);
    assert_eq!(descriptors_of(&path), 0);
}

#[tokio::test]
async fn a_guest_that_ends_or_a_destroy_closes_the_descriptors_that_are_in_use() {
    let mut scene = Scene::admitting().await;
    let (path, mut content) = begin(&mut scene).await;
    scene.driver.connection().revoke_files();
    assert_eq!(descriptors_of(&path), 0);
    assert!(content.next().await.unwrap().is_err());

    let mut scene = Scene::admitting().await;
    let (path, mut content) = begin(&mut scene).await;
    let driver = Arc::clone(&scene.driver);
    drop(scene.guest);
    drop(scene.socket);
    tokio::time::timeout(HANG, driver.connection().closed()).await.unwrap();
    assert_eq!(descriptors_of(&path), 0);
    assert_eq!(content.next().await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_guest_that_says_that_it_ends_gets_its_descriptors_back_before() {
    let mut scene = Scene::admitting().await;
    let (path, mut content) = begin(&mut scene).await;
    scene.guest.event(0, Event::Ending(Vec::new())).await;
    let driver = Arc::clone(&scene.driver);
    let pong = async {
        let (call, _) = scene.guest.request().await;
        scene.guest.reply(call, Reply::Done).await;
    };
    // Frames are read in order.
    let (answered, ()) = tokio::join!(driver.ping(), pong);
    answered.unwrap();
    assert_eq!(descriptors_of(&path), 0);
    assert!(content.next().await.unwrap().is_err());
}

#[tokio::test]
async fn more_files_than_there_are_places_for_travel_as_streams() {
    let mut scene = Scene::admitting().await;
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(begin_another(&mut scene).await);
    }
    let driver = Arc::clone(&scene.driver);
    let serve = async {
        let (call, request) = scene.guest.request().await;
        assert!(matches!(request, Request::Read(..)), "{request:?}");
        scene.guest.opened(call).await;
        scene.guest.reply(call, Reply::Done).await;
    };
    let (content, ()) = tokio::join!(read(&driver), serve);
    assert!(content.unwrap().is_empty());
    open.clear();
    drop(begin_another(&mut scene).await);
}

async fn begin_another(scene: &mut Scene) -> ByteStream {
    let path = scene.folder.path().join("file");
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .unwrap()
        .set_len(5_000_000)
        .unwrap();
    let file = File::open(&path).unwrap();
    let driver = Arc::clone(&scene.driver);
    let (at, fds) = (place("/workspace/file"), [file.as_fd()]);
    let (content, _) = tokio::join!(driver.read(&at, ByteRange::default()), scene.pass(5_000_000, &fds));
    content.unwrap()
}

/// A write of that content, and the future of its result.
async fn write(driver: &GuestDriver, content: Vec<u8>) -> Result<u64> {
    let content: ByteStream = Box::pin(futures_util::stream::iter([Ok(Bytes::from(content))]));
    driver.write(&place("/workspace/file"), content, WriteOptions::default()).await
}

/// Takes the request to write, passes this descriptor, and returns what is sent besides.
async fn take_rest(scene: &mut Scene, file: BorrowedFd<'_>) -> (u32, Vec<u8>) {
    let (call, request) = scene.guest.request().await;
    assert!(matches!(request, Request::WritePassed(..)), "{request:?}");
    send(&scene.socket, &frame(Kind::Event, call, &encode(&Event::Passed(0))), &[file]);
    let mut rest = Vec::new();
    loop {
        let frame = scene.guest.receive().await;
        match frame.header.kind {
            Kind::Data => {
                let taken = u32::try_from(frame.payload.len()).unwrap();
                rest.extend(frame.payload);
                scene.guest.credit(call, taken).await;
            }
            Kind::End | Kind::Cancel => return (call, rest),
            other => panic!("{other:?}"),
        }
    }
}

fn draft(folder: &Path) -> (PathBuf, File) {
    let path = folder.join(".draft");
    (path.clone(), OpenOptions::new().write(true).create(true).truncate(true).open(path).unwrap())
}

#[tokio::test]
async fn a_passed_file_is_written_and_closed_before_the_guest_is_told_the_end() {
    for (size, direct) in [(100_000, 100_000), ((8 << 20) + 5, 8 << 20)] {
        let mut scene = Scene::admitting().await;
        let driver = Arc::clone(&scene.driver);
        let (path, file) = draft(scene.folder.path());
        let content: Vec<u8> = (0..size).map(|n: usize| (n % 251) as u8).collect();
        let serve = async {
            let (call, rest) = take_rest(&mut scene, file.as_fd()).await;
            assert_eq!(descriptors_of(&path), 1, "the host has not closed it");
            scene.guest.reply(call, Reply::Size(size as u64)).await;
            rest
        };
        let (written, rest) = tokio::join!(write(&driver, content.clone()), serve);
        assert_eq!(written.unwrap(), size as u64);
        let there = std::fs::read(&path).unwrap();
        assert!(
            there == content[..direct] && rest == content[direct..],
            "{} and {}",
            there.len(),
            rest.len()
        );
    }
}

#[tokio::test]
async fn what_the_host_can_not_write_is_sent_to_the_guest() {
    let sealed = rustix::fs::memfd_create("m", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::fcntl_add_seals(&sealed, SealFlags::GROW).unwrap();
    let file = write_only(&sealed);
    let mut scene = Scene::admitting().await;
    let driver = Arc::clone(&scene.driver);
    let content: Vec<u8> = (0..100_000_usize).map(|n| (n % 251) as u8).collect();
    let serve = async {
        let (call, rest) = take_rest(&mut scene, file.as_fd()).await;
        scene.guest.fail(call, "quota", "no room is left").await;
        rest
    };
    let (written, rest) = tokio::join!(write(&driver, content.clone()), serve);
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Quota);
    assert!(rest == content, "{} bytes were sent", rest.len());
}

fn write_only(memory: &OwnedFd) -> File {
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(memory));
    OpenOptions::new().write(true).open(path).unwrap()
}

#[tokio::test]
async fn n6_a_file_that_is_not_the_sandboxs_own_is_not_written_to() {
    let mut scene = Scene::new(CountingGate { admits: false, asked: AtomicU32::new(0) }).await;
    let driver = Arc::clone(&scene.driver);
    let (path, file) = draft(scene.folder.path());
    let serve = async {
        let (call, rest) = take_rest(&mut scene, file.as_fd()).await;
        scene.guest.reply(call, Reply::Size(100_000)).await;
        rest
    };
    let (written, rest) = tokio::join!(write(&driver, vec![7; 100_000]), serve);
    assert_eq!((written.unwrap(), rest.len()), (100_000, 100_000));
    assert!(std::fs::read(&path).unwrap().is_empty());
}

#[tokio::test]
async fn n6_a_write_met_with_another_kind_of_descriptor_ends_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "old").unwrap();
    let open = |flags| rustix::fs::open(&path, flags, Mode::empty()).unwrap();
    let (_reader, pipe) = io::pipe().unwrap();
    let null = OpenOptions::new().write(true).open("/dev/null").unwrap();
    let others = [
        open(OFlags::RDONLY),
        open(OFlags::RDWR),
        open(OFlags::PATH),
        open(OFlags::WRONLY | OFlags::APPEND),
        open(OFlags::WRONLY | OFlags::SYNC),
        File::open(folder.path()).unwrap().into(),
        pipe.into(),
        null.into(),
    ];
    for other in others {
        let mut scene = Scene::admitting().await;
        let driver = Arc::clone(&scene.driver);
        let attack = async {
            let (call, _) = scene.guest.request().await;
            send(&scene.socket, &frame(Kind::Event, call, &encode(&Event::Passed(0))), &[other.as_fd()]);
        };
        let (written, ()) = tokio::join!(write(&driver, vec![7; 100_000]), attack);
        assert_broken(&written.unwrap_err(), "a descriptor");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    }
}

#[tokio::test]
async fn a_write_that_is_dropped_is_cancelled_and_closes_its_descriptor() {
    let mut scene = Scene::admitting().await;
    let (path, file) = draft(scene.folder.path());
    let (sender, more) = tokio::sync::mpsc::unbounded_channel::<Result<Bytes>>();
    sender.send(Ok(Bytes::from(vec![7; 100_000]))).unwrap();
    let content = futures_util::stream::unfold(more, async |mut more| Some((more.recv().await?, more)));
    let writing = tokio::spawn({
        let driver = Arc::clone(&scene.driver);
        async move { driver.write(&place("/workspace/file"), Box::pin(content), WriteOptions::default()).await }
    });
    let (call, _) = scene.guest.request().await;
    send(&scene.socket, &frame(Kind::Event, call, &encode(&Event::Passed(0))), &[file.as_fd()]);
    drop(file);
    while std::fs::metadata(&path).unwrap().len() < 100_000 || descriptors_of(&path) > 0 {
        tokio::task::yield_now().await;
    }
    writing.abort();
    assert!(writing.await.unwrap_err().is_cancelled());
    assert_eq!(scene.guest.receive().await.header.kind, Kind::Cancel);
}
