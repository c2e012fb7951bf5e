//! The messages inside frames, in CBOR with numbered fields: a field that is added later is skipped
//! by an older side, and an optional one that is missing is `None`.

use minicbor::{Decode, Encode};

use super::{
    GlobMatches, GrepMatches, KeepTerms, KeptRecord, LiveProcessList, ProcessRecord, ProcessTerms,
    StatRecord, Status, UsageRecord,
};

/// A message that travels in frames of one kind.
pub trait Message: Sized + Encode<()> + for<'b> Decode<'b, ()> {}
impl<T: Encode<()> + for<'b> Decode<'b, ()>> Message for T {}

/// The message's bytes.
pub fn encode<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    match minicbor::encode(message, &mut bytes) {
        Ok(()) => bytes,
        Err(error) => unreachable!("writing to a Vec can't fail: {error}"),
    }
}

/// The message in these bytes, or a sentence about why there is none.
pub fn decode<M: Message>(bytes: &[u8]) -> Result<M, String> {
    minicbor::decode(bytes).map_err(|error| format!("a message that can't be read: {error}"))
}

/// The client's first words.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    /// Must be the guest's own.
    #[n(0)]
    pub major: u16,
    /// The additions to that version that the client knows.
    #[n(1)]
    pub minor: u16,
    /// Proves that the client may use this sandbox.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub nonce: [u8; 16],
}

/// The guest's first words.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Welcome {
    /// The client's own.
    #[n(0)]
    pub major: u16,
    /// The additions to that version that the guest knows.
    #[n(1)]
    pub minor: u16,
    /// Proves that this is the guest that was made for this sandbox.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub nonce: [u8; 16],
    /// The protections that the guest found around itself. Only a guest that had to look reports
    /// them, because its maker only asked another engine for them.
    #[n(3)]
    pub protections: Option<Protections>,
}

/// The protections that a guest finds around itself when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Protections {
    /// `no_new_privs` is set.
    #[n(0)]
    pub no_new_privileges: bool,
    /// A seccomp filter is in force.
    #[n(1)]
    pub seccomp: bool,
    /// The root file system is mounted read-only.
    #[n(2)]
    pub readonly_rootfs: bool,
    /// The kernel's release.
    #[n(3)]
    pub kernel_release: String,
}

/// A file: an absolute path, and the directory that no symbolic link may lead out of.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Location {
    /// Absolute and normalised.
    #[n(0)]
    pub path: String,
    /// `path` is this or below it, and must stay there once every link is followed.
    #[n(1)]
    pub beneath: Option<String>,
}

/// The request that begins a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Request {
    /// Answers `Done`.
    #[n(0)]
    Ping,
    /// The maker's word that the sandbox is complete: from now on it outlives the maker's stream.
    /// Answers `Done`.
    #[n(1)]
    Adopt,
    /// Kills everything, answers `Done`, and ends the guest.
    #[n(2)]
    Shutdown,
    /// Runs a command: `Event::Started`, `Data` on stdout and stderr, `Reply::Exited`. `Data` and
    /// `End` on the main channel are its input; `Control` and `Cancel` apply.
    #[n(3)]
    Exec(#[n(0)] Exec),
    /// Starts a process that outlives the call. Answers `Process`.
    #[n(4)]
    Start(#[n(0)] Exec),
    /// Answers `Processes`.
    #[n(5)]
    Processes,
    /// Answers `Process` once it has ended. With `Some(true)` the wait does not count as use of the
    /// sandbox, which may fall asleep meanwhile.
    #[n(6)]
    Wait(#[n(0)] u32, #[n(1)] Option<bool>),
    /// `Event::Log`, then `Data` on stdout and stderr, each payload led by its offset over both
    /// streams and that in its own (eight bytes each, little-endian, which count as credit like the
    /// rest). Answers `Done`.
    #[n(7)]
    Logs(#[n(0)] LogRequest),
    /// Sends a signal to a started process's group; without one, kills its tree. Answers `Done`, to
    /// a kill when nothing of the tree is left.
    #[n(8)]
    Kill(#[n(0)] u32, #[n(1)] Option<i32>),
    /// `Event::Opened`, `Data` on the main channel, `Done`. Offset, and how many bytes at the most.
    #[n(9)]
    Read(#[n(0)] Location, #[n(1)] u64, #[n(2)] Option<u64>),
    /// Takes `Data` and `End` on the main channel; answers `Size`. `Cancel` undoes it.
    #[n(10)]
    Write(#[n(0)] Location, #[n(1)] WriteParameters),
    /// Answers `Stat`.
    #[n(11)]
    Stat(#[n(0)] Location),
    /// `Event::Opened`, `Data` on the main channel whose payloads are each a `Vec<FileEntry>`;
    /// answers `Done`.
    #[n(12)]
    List(#[n(0)] Location),
    /// Answers `Bool`.
    #[n(13)]
    Exists(#[n(0)] Location),
    /// Makes a directory; with `true` its parents too. Answers `Done`.
    #[n(14)]
    CreateDir(#[n(0)] Location, #[n(1)] bool),
    /// Removes; recursive, force. Answers `Done`.
    #[n(15)]
    Remove(#[n(0)] Location, #[n(1)] bool, #[n(2)] bool),
    /// Moves the first to the second. Answers `Done`.
    #[n(16)]
    Rename(#[n(0)] Location, #[n(1)] Location),
    /// Root, pattern, hidden, the most results. Answers `Glob`.
    #[n(17)]
    Glob(#[n(0)] Location, #[n(1)] String, #[n(2)] bool, #[n(3)] u32),
    /// Answers `Grep`.
    #[n(18)]
    Grep {
        /// The directory to search.
        #[n(0)]
        root: Location,
        /// The pattern.
        #[n(1)]
        pattern: String,
        /// The pattern is literal text.
        #[n(2)]
        literal: bool,
        /// Upper and lower case are alike.
        #[n(3)]
        ignore_case: bool,
        /// Only files that match this glob.
        #[n(4)]
        include: Option<String>,
        /// The most matches.
        #[n(5)]
        max_matches: u32,
        /// The longest line.
        #[n(6)]
        max_line_bytes: u32,
    },
    /// `Event::Opened`, `Data` on the main channel, `Done`.
    #[n(19)]
    TarOut(#[n(0)] Location),
    /// Takes `Data` and `End` on the main channel; the most bytes and entries. Answers `Size`: the
    /// entries made.
    #[n(20)]
    TarIn(#[n(0)] Location, #[n(1)] u64, #[n(2)] u64),
    /// Connects to a port on loopback: `Event::Opened`, `Data` and `End` both ways on the main
    /// channel, `Done`.
    #[n(21)]
    Dial(#[n(0)] u16),
    /// Answers `Usage`.
    #[n(22)]
    Usage,
    /// Sends `Event::Opened` once all later changes are seen, then `Data` on the main channel whose
    /// payloads are each a `Vec<WatchRecord>`. Answers `Done` when the watched path is gone. The
    /// fields: the path, whether the tree below it is watched too, and the most directories of that
    /// tree.
    #[n(23)]
    Watch(#[n(0)] Location, #[n(1)] bool, #[n(2)] u32),
    /// Answers `LiveProcesses`.
    #[n(24)]
    LiveProcesses,
    /// From now on the guest ends the sandbox this many milliseconds from now, and after so many
    /// without activity. Answers `Done`.
    #[n(25)]
    SetDeadlines(#[n(0)] Option<u64>, #[n(1)] Option<u64>),
    /// Runs a command that outlives the call, and attaches to it: `Event::Kept` once it runs, then
    /// as `Attach`. This and what follows about kept commands is for guests that know protocol 1.2.
    #[n(26)]
    Keep(#[n(0)] Exec, #[n(1)] KeepTerms),
    /// Reads the output of a kept command from a position on, or from the first that is kept:
    /// `Event::Kept`, then `Data` on stdout and stderr, each payload led by its position and by
    /// that of what follows it (eight bytes each, little-endian, which count as credit like the
    /// rest). Answers `Kept` when everything was read, without an end when another call attached
    /// to the command, or the command was forgotten.
    #[n(27)]
    Attach(#[n(0)] String, #[n(1)] Option<u64>),
    /// Takes `Data` and `End` on the main channel: the input of a kept command. Answers `Done` once
    /// all of it came, or no more is taken. If it is cancelled before, the command is killed,
    /// unless it runs on a terminal.
    #[n(28)]
    KeptInput(#[n(0)] String),
    /// Kills or signals a kept command, or changes its terminal's size. Answers `Done` at once.
    #[n(29)]
    KeptControl(#[n(0)] String, #[n(1)] Control),
    /// Kills a kept command and forgets it. Answers `Done` at once.
    #[n(30)]
    Forget(#[n(0)] String),
    /// Answers `Kept` once a kept command has ended. The wait does not count as use of the sandbox.
    #[n(31)]
    KeptEnd(#[n(0)] String),
    /// Answers `KeptList`. It does not count as use of the sandbox.
    #[n(32)]
    KeptCommands,
    /// Starts a process that outlives the call, on terms. Answers `Process`. This and `ProcessInput`
    /// are for guests that know protocol 1.3.
    #[n(33)]
    StartOn(#[n(0)] Exec, #[n(1)] ProcessTerms),
    /// Gives a started process more input, and its end if that is `true`. Answers `Done` once it
    /// waits to be read.
    #[n(34)]
    ProcessInput(#[n(0)] u32, #[cbor(n(1), with = "minicbor::bytes")] Vec<u8>, #[n(2)] bool),
    /// As `Read`, but the guest may answer `Event::Passed`, together with the file's descriptor, and
    /// `Done`, without any `Data`. For guests that know protocol 1.4, on a local socket.
    #[n(35)]
    ReadPassed(#[n(0)] Location, #[n(1)] u64, #[n(2)] Option<u64>),
    /// As `Write`, but the guest first answers `Event::Opened`, or `Event::Passed` together with the
    /// descriptor of the file that is to be. The client may write the content's beginning there.
    /// `Data` goes behind that. For guests that know protocol 1.5, on a local socket.
    #[n(36)]
    WritePassed(#[n(0)] Location, #[n(1)] WriteParameters),
    /// Holds the calls of all other connections back: `Event::Opened` at once, and `Done` after `End` on the main channel. `conflict`
    /// while a process runs or a call is served that may use files. For guests that know protocol 1.6.
    #[n(37)]
    Hold,
}

/// The program to run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum CommandSpec {
    /// Shell source, by bash, else sh.
    #[n(0)]
    Shell(#[n(0)] String),
    /// A program and its arguments.
    #[n(1)]
    Argv(#[n(0)] Vec<String>),
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Exec {
    /// The command.
    #[n(0)]
    pub command: CommandSpec,
    /// The working directory.
    #[n(1)]
    pub cwd: Location,
    /// Variables layered over the guest's own.
    #[n(2)]
    pub env: Vec<(String, String)>,
    /// The user; `None` is the configured user.
    #[n(3)]
    pub user: Option<String>,
    /// The main channel is its input; without it the command reads end of file.
    #[n(4)]
    pub stdin: bool,
    /// On a terminal of this size.
    #[n(5)]
    pub terminal: Option<Terminal>,
}

/// A terminal's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Terminal {
    /// Rows.
    #[n(0)]
    pub rows: u16,
    /// Columns.
    #[n(1)]
    pub cols: u16,
}

/// The treatment of an existing file, and the attributes of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct WriteParameters {
    /// 0 replace atomically, 1 append, 2 refuse.
    #[n(0)]
    pub mode: u8,
    /// Permission bits.
    #[n(1)]
    pub permissions: Option<u32>,
    /// The largest that the file may become.
    #[n(2)]
    pub max_bytes: Option<u64>,
}

/// The requested part of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LogRequest {
    /// The process.
    #[n(0)]
    pub process: u32,
    /// `CHANNEL_STDOUT`, `CHANNEL_STDERR`, or `None` for both.
    #[n(1)]
    pub stream: Option<u8>,
    /// The offset to begin at.
    #[n(2)]
    pub offset: u64,
    /// Begin this many bytes before the end instead.
    #[n(3)]
    pub tail: Option<u64>,
    /// Go on until the process ends.
    #[n(4)]
    pub follow: bool,
    /// Begin so many lines before the end instead.
    #[n(5)]
    pub tail_lines: Option<u64>,
}

/// The part of a log that an answer covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct LogRange {
    /// The offset of its first byte.
    #[n(0)]
    pub start: u64,
    /// The offset behind the last byte that there is now.
    #[n(1)]
    pub end: u64,
    /// The number of bytes ever written to the requested streams.
    #[n(2)]
    pub total_bytes: u64,
    /// The number of those bytes that are no longer kept.
    #[n(3)]
    pub dropped_bytes: u64,
}

/// An event of a call that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Event {
    /// The command runs, with this process number inside.
    #[n(0)]
    Started(#[n(0)] u32),
    /// The requested file is open; its size, if it has one.
    #[n(1)]
    Opened(#[n(0)] Option<u64>),
    /// The log is there, and this is what the answer covers.
    #[n(2)]
    Log(#[n(0)] LogRange),
    /// About the connection, outside of a call: the guest ends and begins no more calls. Of the
    /// calls that it has not ended it had begun these. For clients that know protocol 1.1.
    #[n(3)]
    Ending(#[n(0)] Vec<u32>),
    /// The kept command is there, and its output follows.
    #[n(4)]
    Kept(#[n(0)] KeptRecord),
    /// The requested file is open, and its descriptor comes with this message; its size.
    #[n(5)]
    Passed(#[n(0)] u64),
}

/// A change to a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Control {
    /// Kill the whole tree.
    #[n(0)]
    Kill,
    /// Signal the process group, or the terminal's foreground group.
    #[n(1)]
    Signal(#[n(0)] i32),
    /// Change the terminal's size.
    #[n(2)]
    Resize(#[n(0)] Terminal),
}

/// The success that ends a call.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum Reply {
    /// It is done.
    #[n(0)]
    Done,
    /// The command ended. With `Some(true)` something that it left behind still held its output
    /// open when the guest stopped reading.
    #[n(1)]
    Exited(#[n(0)] Status, #[n(1)] Option<bool>),
    /// A started process.
    #[n(2)]
    Process(#[n(0)] ProcessRecord),
    /// Every started process.
    #[n(3)]
    Processes(#[n(0)] Vec<ProcessRecord>),
    /// A size or a count.
    #[n(4)]
    Size(#[n(0)] u64),
    /// The attributes of a file.
    #[n(5)]
    Stat(#[n(0)] StatRecord),
    /// Yes or no.
    #[n(6)]
    Bool(#[n(0)] bool),
    /// The result of glob.
    #[n(7)]
    Glob(#[n(0)] GlobMatches),
    /// The result of grep.
    #[n(8)]
    Grep(#[n(0)] GrepMatches),
    /// The resources in use.
    #[n(9)]
    Usage(#[n(0)] UsageRecord),
    /// Everything that runs.
    #[n(10)]
    LiveProcesses(#[n(0)] LiveProcessList),
    /// A kept command.
    #[n(11)]
    Kept(#[n(0)] KeptRecord),
    /// Every kept command.
    #[n(12)]
    KeptList(#[n(0)] Vec<KeptRecord>),
}

/// The failure that ends a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Failure {
    /// One of the error kinds, such as `not_found`.
    #[n(0)]
    pub kind: String,
    /// The reason, in lower case: "is a directory". The caller knows the operation, its object and
    /// the path.
    #[n(1)]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_the_wire() {
        let request = Request::Exec(Exec {
            command: CommandSpec::Argv(vec!["echo".into(), "hi".into()]),
            cwd: Location { path: "/workspace".into(), beneath: Some("/workspace".into()) },
            env: vec![("A".into(), "b\n$c".into())],
            user: None,
            stdin: true,
            terminal: Some(Terminal { rows: 24, cols: 80 }),
        });
        assert_eq!(decode::<Request>(&encode(&request)), Ok(request));
    }

    #[test]
    fn rubbish_is_refused_with_a_sentence() {
        assert!(
            decode::<Request>(&[0xff, 0x00, 0x12]).unwrap_err().starts_with("a message that can't be read")
        );
    }

    #[test]
    fn a_message_that_claims_to_be_huge_costs_nothing() {
        let huge = [0x82, 0x03, 0x81, 0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(decode::<Request>(&huge).is_err());
    }
}
