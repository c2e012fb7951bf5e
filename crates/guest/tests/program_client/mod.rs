//! A small blocking client, and the guest as an ordinary process: no namespaces, no PID 1.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use eyot_guest::protocol::*;
use tempfile::TempDir;

pub const CLIENT_NONCE: [u8; 16] = [3; 16];
pub const GUEST_NONCE: [u8; 16] = [4; 16];
/// Longer than anything here takes, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A guest that runs, and the stream of whoever made it.
pub struct Guest {
    pub client: Client,
    pub directory: TempDir,
    pub process: Child,
}

impl Guest {
    pub fn start() -> Self {
        Self::start_with(|_| ())
    }

    pub fn start_with(change: impl FnOnce(&mut GuestConfig)) -> Self {
        let mut guest = Self::start_silent(change);
        guest.client.greet();
        assert_eq!(guest.client.call(&Request::Adopt), Ok(Reply::Done));
        guest
    }

    /// As PID 1 of a namespace of its own, as which it is root of a user namespace.
    pub fn start_as_init() -> Self {
        let mut guest = Self::start_below("unshare -Urpf --mount-proc --kill-child", |_| ());
        guest.client.greet();
        assert_eq!(guest.client.call(&Request::Adopt), Ok(Reply::Done));
        guest
    }

    /// Neither greeted nor adopted.
    pub fn start_silent(change: impl FnOnce(&mut GuestConfig)) -> Self {
        Self::start_below("", change)
    }

    fn start_below(launcher: &str, change: impl FnOnce(&mut GuestConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (host, stream) = UnixStream::pair().unwrap();
        let mut config = config_for(directory.path());
        change(&mut config);
        let process = spawn(launcher, directory.path(), stream.into(), &config);
        Self { client: Client::new(host), directory, process }
    }

    pub fn connect(&self) -> Client {
        let mut client = self.connect_silently();
        client.greet();
        client
    }

    pub fn connect_silently(&self) -> Client {
        Client::new(UnixStream::connect(self.directory.path().join("guest.sock")).unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn exec(&self, line: &str) -> Exec {
        Exec {
            command: CommandSpec::Shell(line.to_owned()),
            cwd: Location { path: self.directory.path().to_str().unwrap().to_owned(), beneath: None },
            env: Vec::new(),
            user: None,
            stdin: false,
            terminal: None,
        }
    }

    pub fn run(&mut self, line: &str) -> Outcome {
        let exec = self.exec(line);
        self.client.run(exec)
    }

    /// Waits until the guest's process has ended.
    pub fn wait_for_end(&mut self) -> std::process::ExitStatus {
        wait_until("the guest ends", || self.process.try_wait().unwrap())
    }
}

impl Drop for Guest {
    /// A guest that is not PID 1 takes its commands with it only if it is asked.
    fn drop(&mut self) {
        if self.process.try_wait().unwrap().is_none() && self.ask_for_end().is_err() {
            self.process.kill().unwrap();
        }
        self.process.wait().unwrap();
    }
}

impl Guest {
    fn ask_for_end(&self) -> std::io::Result<()> {
        let mut client = Client::new(UnixStream::connect(self.directory.path().join("guest.sock"))?);
        let hello = encode(&Hello { major: MAJOR, minor: MINOR, nonce: CLIENT_NONCE });
        let shutdown = encode(&Request::Shutdown);
        for (kind, call, payload) in [(Kind::Hello, 0, hello), (Kind::Request, 1, shutdown)] {
            let header = Header { kind, channel: 0, more: false, call };
            client.send_raw(&[&header.to_bytes(payload.len())[..], &payload].concat())?;
        }
        // The welcome and the answer, then the end.
        client.socket.read_to_end(&mut Vec::new()).map(drop)
    }
}

fn config_for(directory: &Path) -> GuestConfig {
    let own = std::fs::metadata(directory).unwrap();
    let home = directory.to_str().unwrap().to_owned();
    GuestConfig {
        client_nonce: CLIENT_NONCE,
        guest_nonce: GUEST_NONCE,
        ttl_ms: None,
        idle_timeout_ms: None,
        user: Identity { name: "user".into(), uid: own.uid(), gid: own.gid(), home, capabilities: 0 },
        users: Vec::new(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
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

/// The shell puts the three descriptors where the guest looks for them.
fn spawn(launcher: &str, directory: &Path, stream: OwnedFd, config: &GuestConfig) -> Child {
    let listener = UnixListener::bind(directory.join("guest.sock")).unwrap();
    let (config_reader, mut config_writer) = std::io::pipe().unwrap();
    config_writer.write_all(&encode(config)).unwrap();
    Command::new("sh")
        .args(["-c", r#"exec $2 "$0" 3<&0 4<&1 5<&2 0</dev/null 1>/dev/null 2>"$1""#])
        .args([
            Path::new(env!("CARGO_BIN_EXE_eyot-guest")),
            &directory.join("guest.log"),
            Path::new(launcher),
        ])
        .stdin(Stdio::from(stream))
        .stdout(Stdio::from(OwnedFd::from(listener)))
        .stderr(Stdio::from(OwnedFd::from(config_reader)))
        .spawn()
        .unwrap()
}

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: Status,
    pub stdout: String,
    pub stderr: String,
    pub pid: u32,
    /// Something still held the output open when the guest stopped reading.
    pub output_open: bool,
}

/// A connection.
pub struct Client {
    socket: UnixStream,
    decoder: Decoder,
    others: VecDeque<Frame>,
    last_call: u32,
}

impl Client {
    pub fn new(socket: UnixStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, decoder: Decoder::new(), others: VecDeque::new(), last_call: 0 }
    }

    pub fn greet(&mut self) {
        self.hello(MAJOR, CLIENT_NONCE);
        let frame = self.next_frame().expect("a welcome");
        let welcome: Welcome = decode(&frame.payload).unwrap();
        assert_eq!((frame.header.kind, welcome.nonce), (Kind::Welcome, GUEST_NONCE));
    }

    pub fn hello(&mut self, major: u16, nonce: [u8; 16]) {
        self.send(Kind::Hello, 0, 0, &encode(&Hello { major, minor: MINOR, nonce }));
    }

    pub fn send(&mut self, kind: Kind, call: u32, channel: u8, payload: &[u8]) {
        let header = Header { kind, channel, more: false, call };
        self.socket.write_all(&[&header.to_bytes(payload.len())[..], payload].concat()).unwrap();
    }

    pub fn send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.write_all(bytes)
    }

    pub fn begin(&mut self, request: &Request) -> u32 {
        self.last_call += 1;
        let (call, bytes) = (self.last_call, encode(request));
        let pieces: Vec<&[u8]> = bytes.chunks(MAX_PAYLOAD_BYTES).collect();
        for (index, piece) in pieces.iter().enumerate() {
            let more = index + 1 < pieces.len();
            let header = Header { kind: Kind::Request, channel: 0, more, call };
            self.socket.write_all(&[&header.to_bytes(piece.len())[..], piece].concat()).unwrap();
        }
        call
    }

    /// The next frame of anything; `None`: the guest has closed the connection.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(frame);
            }
            let mut buffer = [0; 65536];
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.decoder.push(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                // A child of this process ended.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("nothing came from the guest: {error}"),
            }
        }
    }

    /// The next frame of a call.
    pub fn next_of(&mut self, call: u32) -> Frame {
        if let Some(index) = self.others.iter().position(|frame| frame.header.call == call) {
            return self.others.remove(index).unwrap();
        }
        loop {
            let frame = self.next_frame().expect("the guest has closed the connection");
            if frame.header.call == call {
                return frame;
            }
            self.others.push_back(frame);
        }
    }

    /// Grants as it receives, until the answer. `on_frame` sees everything before that.
    pub fn finish_with(&mut self, call: u32, mut on_frame: impl FnMut(&Frame)) -> Result<Reply, Failure> {
        let mut message = Vec::new();
        loop {
            let frame = self.next_of(call);
            match frame.header.kind {
                Kind::Reply | Kind::Failure => {
                    message.extend_from_slice(&frame.payload);
                    if frame.header.more {
                        continue;
                    }
                    return match frame.header.kind {
                        Kind::Reply => Ok(decode(&message).unwrap()),
                        _ => Err(decode(&message).unwrap()),
                    };
                }
                Kind::Data => {
                    let granted = (frame.payload.len() as u32).to_le_bytes();
                    self.send(Kind::Credit, call, frame.header.channel, &granted);
                    on_frame(&frame);
                }
                _ => on_frame(&frame),
            }
        }
    }

    pub fn finish(&mut self, call: u32) -> Result<Reply, Failure> {
        self.finish_with(call, |_| ())
    }

    pub fn call(&mut self, request: &Request) -> Result<Reply, Failure> {
        let call = self.begin(request);
        self.finish(call)
    }

    pub fn try_run(&mut self, exec: Exec) -> Result<Outcome, Failure> {
        let call = self.begin(&Request::Exec(exec));
        self.collect(call)
    }

    pub fn run(&mut self, exec: Exec) -> Outcome {
        self.try_run(exec).unwrap()
    }

    /// Returns the result of a command that was begun.
    pub fn collect(&mut self, call: u32) -> Result<Outcome, Failure> {
        let (mut stdout, mut stderr, mut pid) = (Vec::new(), Vec::new(), 0);
        let reply = self.finish_with(call, |frame| match (frame.header.kind, frame.header.channel) {
            (Kind::Data, CHANNEL_STDOUT) => stdout.extend_from_slice(&frame.payload),
            (Kind::Data, CHANNEL_STDERR) => stderr.extend_from_slice(&frame.payload),
            (Kind::Event, _) => match decode(&frame.payload).unwrap() {
                Event::Started(number) => pid = number,
                event => panic!("{event:?} of a command"),
            },
            _ => panic!("{:?} of a command", frame.header),
        })?;
        let Reply::Exited(status, output_open) = reply else { panic!("{reply:?} of a command") };
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let output_open = output_open.unwrap_or(false);
        Ok(Outcome { status, stdout: text(stdout), stderr: text(stderr), pid, output_open })
    }

    /// Returns the status of a command, and ignores credit for its input.
    pub fn collect_ignoring_credit(&mut self, call: u32) -> Status {
        match self.finish(call) {
            Ok(Reply::Exited(status, _)) => status,
            other => panic!("{other:?} of a command"),
        }
    }

    /// The next data of a call; events are skipped.
    pub fn next_data_of(&mut self, call: u32) -> Frame {
        loop {
            let frame = self.next_of(call);
            match frame.header.kind {
                Kind::Data => return frame,
                Kind::Event => {}
                kind => panic!("{kind:?} where data was to come: {frame:?}"),
            }
        }
    }

    /// Reads standard output until it ends like this.
    pub fn read_until(&mut self, call: u32, end: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(end) {
            text.push_str(std::str::from_utf8(&self.next_data_of(call).payload).unwrap());
        }
        text
    }

    /// The next frame of anything; `None`: the connection is closed.
    pub fn next_of_any(&mut self) -> Option<Frame> {
        self.others.pop_front().or_else(|| self.next_frame())
    }

    pub fn start(&mut self, exec: Exec) -> ProcessRecord {
        match self.call(&Request::Start(exec)) {
            Ok(Reply::Process(record)) => record,
            other => panic!("{other:?} to a start"),
        }
    }

    pub fn control(&mut self, call: u32, control: Control) {
        self.send(Kind::Control, call, 0, &encode(&control));
    }
}

/// Asks until there is an answer.
pub fn wait_until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Tells whether a process is there and has not ended.
pub fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    !stat.rsplit(") ").next().unwrap().starts_with('Z')
}

/// The process numbers of the guest's children: its reapers, unless something escaped from one.
pub fn reapers(guest: &Guest) -> Vec<u32> {
    let children =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", guest.process.id())).unwrap();
    children.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// The process numbers in a file, once it has this many lines.
pub fn pids_in(path: &str, count: usize) -> Vec<u32> {
    wait_until("the processes run", || {
        let text = std::fs::read_to_string(path).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
        (text.ends_with('\n') && pids.len() >= count).then_some(pids)
    })
}
