//! Eyot: computers for AI agents.
//!
//! A [`Sandbox`] is one live isolated world. It is made from a [`SandboxSpec`] by a [`SandboxProvider`] and driven
//! through a [`SandboxDriver`]; every rule that does not depend on the backend (deadlines, cancellation, output caps,
//! parent creation, path rules) is written here once, in the handle.
#![forbid(unsafe_code)]

mod blocking;
mod capabilities;
#[cfg(feature = "conformance")]
pub mod conformance;
mod driver;
mod engine;
mod error;
pub mod events;
mod exec;
mod files;
mod folder_changes;
mod forward;
#[doc(hidden)]
pub mod internal;
mod isolation;
pub mod linux_capability;
mod network;
mod now;
mod observer;
mod path;
mod pool;
mod pool_options;
mod process;
mod provider;
mod published;
mod records;
mod sandbox;
mod search;
mod spec;
pub mod store;
mod tasks;
mod transfer;
mod watch;
pub mod wire;
mod workspace;

pub use bytes::Bytes;
pub use capabilities::{Capabilities, Capability};
pub use driver::{
    ByteStream, ExecRequest, Execution, ExecutionControl, ExecutionEvent, ExecutionInput, SandboxDriver,
    TcpStream,
};
pub use engine::{Engine, Reconciled};
pub use error::{Error, ErrorKind, Result, SandboxOperationUnsupported, SandboxSleeping};
pub use exec::{
    Command, ExecEvent, ExecOptions, ExecResult, ExecStream, ExitStatus, FlatResult, Outcome, PtySize,
    Signal, Stdin,
};
pub use eyot_egress::{EgressDecision, EgressProtocol, EgressRule, EgressRules, EgressVerdict};
pub use files::{
    ByteRange, CreateDirOptions, DirEntry, FileStat, FileType, RemoveOptions, TarInOptions, WriteMode,
    WriteOptions,
};
pub use folder_changes::FolderChanges;
pub use forward::PortForward;
pub use isolation::{DiskEnforcement, Enforcement, IdentityMap, Isolation, LimitsEnforced, UserCounts};
pub use observer::{
    DestroyEvent, EgressDecisionEvent, ExecEndEvent, ExecStartEvent, FileWriteEvent, Observer,
    OrphanSettlement, SandboxEvent,
};
pub use path::{ConfinedPath, MAX_NAME_BYTES, MAX_PATH_BYTES, SandboxPath, WorkspacePath};
pub use pool::{Changes, MAX_OPEN_PORTS, PoolProvider, Preview, SandboxPool};
pub use pool_options::{
    DEFAULT_SANDBOX, DEFAULT_SLEEP_AFTER_MS, DefaultLimits, POOL_WORKDIR, PoolCreate, PoolCreated, PoolEntry,
    PoolOptions, PoolQuotas, PoolStatus, Service,
};
pub use process::{
    LiveProcess, LiveProcesses, Log, LogChunk, LogQuery, LogRange, LogStream, ProcessId, ProcessInfo,
    ProcessStatus, Usage,
};
pub use provider::{Created, SandboxInfo, SandboxKeeper, SandboxProvider, SandboxStatus};
pub use published::PublishedPort;
pub use records::FindProvider;
pub use sandbox::{ANSWER_MS, ExecControl, KILL_CONFIRM_MS, MAX_BUFFERED_READ_BYTES, Sandbox, StartOptions};
pub use search::{GlobOptions, GlobResult, GrepMatch, GrepOptions, GrepResult};
pub use spec::{
    ContainerSpec, IdleAction, ImageDefaults, Lifecycle, Limits, Manifest, Mount, NetworkMode, PullPolicy,
    Requirement, SandboxId, SandboxName, SandboxSpec, Security, ValidSpec, WorkspaceSpec,
};
pub use tokio_util::sync::CancellationToken;
pub use transfer::{Transfer, Transferred, transfer};
pub use watch::{MAX_WATCHED_DIRECTORIES, WatchEvent, WatchEventKind, WatchOptions};
pub use workspace::{
    DEFAULT_TIMEOUT_MS, OutputCallback, PageOptions, TextPage, TruncatedBy, Workspace, WorkspaceEntry,
    WorkspaceExec, WorkspaceExecEvent, WorkspaceExecResult, WorkspaceExecStream, WorkspaceStart,
};
