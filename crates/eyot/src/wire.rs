//! The data that goes over HTTP between a server and its clients: bodies, answers, messages of
//! sockets. Plain data; how they are carried is the server's and the client's.

mod about;
mod exec;
mod images;
mod page;
mod patch;
mod previews;
mod problem;
mod sandboxes;
mod snapshots;

pub use about::{Health, ToolAnswer, Version};
pub use exec::{
    ExecAnswer, ExecBody, ExecPiece, ExecStarted, LogPiece, STDERR, STDIN_WINDOW, STDOUT, SignalBody,
    SocketControl, SocketEvent, StartBody, StdinBody,
};
pub use images::ImageList;
pub use page::{PAGE_PROOF, SessionAnswer, SessionBody, TerminalAnswer, TerminalBody, TerminalList};
pub use patch::{PatchLifecycle, PatchSandbox};
pub use previews::{PREVIEW_TOKEN, PreviewAnswer, PreviewBody};
pub use problem::{PROBLEM_JSON, Problem, Unsupported};
pub use sandboxes::{
    CapabilitiesAnswer, CreateSandbox, Exists, Listing, MemberBody, PoolAnswer, PoolList, ProcessList,
    PublishedPorts, SandboxAnswer, SandboxList, TransferBody, Unpacked, UsageAnswer, Written,
};
pub use snapshots::SnapshotList;

/// The answer of a port that speaks TLS to a request that does not.
pub const SPEAKS_TLS: &str = "this port speaks TLS: use https://";

/// The header by which a client holds on to one life of a sandbox: what it asks of another one is refused as asleep.
pub const LIFE: &str = "eyot-life";
