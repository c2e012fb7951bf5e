//! A guest that does what a test tells it, over an in-process stream: well-behaved where the test
//! wants an answer, malicious where it wants to see that the client holds.

#![allow(dead_code)] // each test file uses a part of it

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use eyot::{
    Capabilities, ConfinedPath, DiskEnforcement, Enforcement, Isolation, LimitsEnforced, NetworkMode,
    SandboxPath,
};
use eyot_guest::client::{Connection, Destroyer, GuestDriver, GuestDriverParts};
use eyot_guest::protocol::{
    Decoder, Event, Failure, Frame, Header, Kind, MAJOR, MINOR, Message, Reply, Request, Welcome, decode,
    encode,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

pub const CLIENT_NONCE: [u8; 16] = [1; 16];
pub const GUEST_NONCE: [u8; 16] = [2; 16];

/// A stream of bytes both ways.
pub trait ByteChannel: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteChannel for S {}

/// The guest's end of the stream.
pub struct FakeGuest {
    stream: Box<dyn ByteChannel>,
    decoder: Decoder,
}

/// Counts how often the sandbox was destroyed.
#[derive(Default)]
pub struct CountingDestroyer(pub AtomicU32);

#[async_trait]
impl Destroyer for CountingDestroyer {
    async fn destroy(&self) -> eyot::Result<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Returns the facts about a sandbox of these tests.
pub fn parts(workdir: &str) -> GuestDriverParts {
    let none = Enforcement::None;
    let isolation = Isolation {
        provider: "fake".to_owned(),
        shares_host_kernel: true,
        namespaces: Vec::new(),
        identity: None,
        no_new_privileges: false,
        capabilities: Vec::new(),
        seccomp: false,
        runtime: None,
        guest_out_of_reach: true,
        shared_files: Vec::new(),
        user_counts: None,
        seccomp_instructions: None,
        landlock_abi: None,
        network: NetworkMode::None,
        readonly_rootfs: false,
        cgroup_controllers: Vec::new(),
        limits: LimitsEnforced { memory: none, cpus: none, pids: none, disk: DiskEnforcement::None },
    };
    GuestDriverParts {
        provider: "fake".to_owned(),
        workdir: SandboxPath::parse(workdir).unwrap(),
        capabilities: Capabilities::new([]),
        isolation,
        destroyer: Arc::new(CountingDestroyer::default()),
        meter: None,
    }
}

/// A path that is held beneath nothing.
pub fn place(path: &str) -> ConfinedPath {
    ConfinedPath { path: SandboxPath::parse(path).unwrap(), beneath: None }
}

/// A guest without a client yet, and the client's end of the stream.
pub fn unconnected() -> (FakeGuest, DuplexStream) {
    let (host, guest) = tokio::io::duplex(256 * 1024);
    (FakeGuest::of(guest), host)
}

/// A guest on this machine that has welcomed its client, and the guest's end of the socket.
pub async fn connected_locally() -> (FakeGuest, UnixStream, Connection) {
    let (host, socket) = UnixStream::pair().unwrap();
    let raw = socket.try_clone().unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut guest = FakeGuest::of(tokio::net::UnixStream::from_std(socket).unwrap());
    let opening = Connection::open_local(host, CLIENT_NONCE, GUEST_NONCE);
    let (connection, ()) = tokio::join!(opening, guest.welcome());
    (guest, raw, connection.unwrap())
}

/// A guest that has welcomed its client.
pub async fn connected() -> (FakeGuest, Connection) {
    let (mut guest, host) = unconnected();
    let (connection, ()) = tokio::join!(Connection::open(host, CLIENT_NONCE, GUEST_NONCE), guest.welcome());
    (guest, connection.unwrap())
}

/// A guest and a driver of it.
pub async fn driven() -> (FakeGuest, Arc<GuestDriver>) {
    let (guest, connection) = connected().await;
    (guest, Arc::new(GuestDriver::new(connection, parts("/workspace"))))
}

impl FakeGuest {
    fn of(stream: impl ByteChannel + 'static) -> Self {
        Self { stream: Box::new(stream), decoder: Decoder::new() }
    }

    pub async fn welcome(&mut self) {
        assert_eq!(self.receive().await.header.kind, Kind::Hello);
        self.send(
            Kind::Welcome,
            0,
            &Welcome { major: MAJOR, minor: MINOR, nonce: GUEST_NONCE, protections: None },
        )
        .await;
    }

    /// The next frame of the client. A credit is returned like any other.
    pub async fn receive(&mut self) -> Frame {
        self.try_receive().await.expect("the client closed the stream")
    }

    /// The next frame, or `None` when the client closed the stream.
    pub async fn try_receive(&mut self) -> Option<Frame> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(frame);
            }
            match self.stream.read(&mut buffer).await.unwrap() {
                0 => return None,
                length => self.decoder.push(&buffer[..length]),
            }
        }
    }

    /// The next frame that is no credit.
    pub async fn receive_no_credit(&mut self) -> Frame {
        loop {
            let frame = self.receive().await;
            if frame.header.kind != Kind::Credit {
                return frame;
            }
        }
    }

    /// The next request, put together, and its call.
    pub async fn request(&mut self) -> (u32, Request) {
        let mut message = Vec::new();
        loop {
            let frame = self.receive_no_credit().await;
            assert_eq!(frame.header.kind, Kind::Request, "{frame:?}");
            message.extend(frame.payload);
            if !frame.header.more {
                return (frame.header.call, decode(&message).unwrap());
            }
        }
    }

    pub async fn send_frame(&mut self, header: Header, payload: &[u8]) {
        self.send_raw(&[&header.to_bytes(payload.len())[..], payload].concat()).await;
    }

    /// Bytes as they are. The client may have gone away in the middle of them: that is what some
    /// tests are about.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        if let Err(error) = self.stream.write_all(bytes).await {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        }
    }

    pub async fn send<M: Message>(&mut self, kind: Kind, call: u32, message: &M) {
        self.send_frame(Header { kind, channel: 0, more: false, call }, &encode(message)).await;
    }

    pub async fn reply(&mut self, call: u32, reply: Reply) {
        self.send(Kind::Reply, call, &reply).await;
    }

    pub async fn fail(&mut self, call: u32, kind: &str, message: &str) {
        self.send(Kind::Failure, call, &Failure { kind: kind.to_owned(), message: message.to_owned() }).await;
    }

    pub async fn opened(&mut self, call: u32) {
        self.event(call, Event::Opened(None)).await;
    }

    pub async fn event(&mut self, call: u32, event: Event) {
        self.send(Kind::Event, call, &event).await;
    }

    pub async fn started(&mut self, call: u32) {
        self.send(Kind::Event, call, &Event::Started(7)).await;
    }

    pub async fn data(&mut self, call: u32, channel: u8, bytes: &[u8]) {
        self.send_frame(Header { kind: Kind::Data, channel, more: false, call }, bytes).await;
    }

    pub async fn end(&mut self, call: u32, channel: u8) {
        self.send_frame(Header { kind: Kind::End, channel, more: false, call }, b"").await;
    }

    pub async fn credit(&mut self, call: u32, bytes: u32) {
        self.send_frame(Header { kind: Kind::Credit, channel: 0, more: false, call }, &bytes.to_le_bytes())
            .await;
    }
}
