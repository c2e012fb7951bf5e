//! Eyot: computers for AI agents.
//!
//! A [`Sandbox`] is one live isolated world. It is made from a [`SandboxSpec`] by a [`SandboxProvider`] and driven
//! through a [`SandboxDriver`]; every rule that does not depend on the backend (deadlines, cancellation, output caps,
//! parent creation, path rules) is written here once, in the handle.
#![forbid(unsafe_code)]

mod apply;
mod capabilities;
mod command;
#[cfg(feature = "conformance")]
pub mod conformance;
mod create;
mod created;
mod driver;
mod error;
mod exec;
mod files;
mod forward;
mod image_name;
mod images;
#[doc(hidden)]
pub mod internal;
mod isolation;
mod kept;
mod keyed_turns;
pub mod linux_capability;
mod nearest;
mod network;
mod now;
mod observer;
mod outcome;
mod path;
mod pool_entry;
mod process;
mod provider;
mod provider_tools;
mod published;
mod sandbox;
mod search;
mod snapshot;
mod spec;
mod tasks;
mod text_diff;
mod watch;
pub mod wire;
mod workspace;

pub use apply::{ApplyConflict, ApplyConflictReason, ApplyOptions, ApplyReport, SandboxCowMounts};
pub use bytes::Bytes;
pub use capabilities::{Capabilities, Capability};
pub use created::{Created, SandboxInfo, SandboxKeeper, SandboxStatus};
pub use driver::{
    ByteStream, ExecRequest, Execution, ExecutionControl, ExecutionEvent, ExecutionInput, KeepRequest,
    KeptAttachment, SandboxDriver, TcpStream,
};
pub use error::{Error, ErrorKind, Result, SandboxOperationUnsupported, SandboxSleeping};
pub use exec::{
    Command, CommandFailed, ExecControl, ExecEvent, ExecOptions, ExecResult, ExecStream, ExitStatus,
    FlatResult, Outcome, PtySize, Signal, Stdin,
};
pub use eyot_egress::{EgressDecision, EgressProtocol, EgressRule, EgressRules, EgressVerdict};
pub use files::{
    ByteRange, CreateDirOptions, DirEntry, FileStat, FileType, RemoveOptions, TarInOptions, WriteMode,
    WriteOptions,
};
pub use forward::PortForward;
pub use image_name::ImageName;
pub use images::{ImageInfo, PruneReport, PullObserver, PullProgress, SandboxImages, SandboxNamer};
pub use isolation::{DiskEnforcement, Enforcement, IdentityMap, Isolation, LimitsEnforced, UserCounts};
pub use kept::{KeepOptions, KeptControl, KeptEvent, KeptInfo, KeptPiece};
pub use observer::{
    DestroyEvent, EgressDecisionEvent, ExecEndEvent, ExecStartEvent, FileWriteEvent, Observer,
    OrphanSettlement, SandboxEvent,
};
pub use path::{ConfinedPath, MAX_NAME_BYTES, MAX_PATH_BYTES, SandboxPath, WorkspacePath};
pub use pool_entry::{PoolEntry, PoolStatus, Service};
pub use process::{
    LiveProcess, LiveProcesses, Log, LogChunk, LogQuery, LogRange, LogStream, MAX_STDIN_BYTES, ProcessId,
    ProcessInfo, ProcessStatus, StartTerms, Usage,
};
pub use provider::SandboxProvider;
pub use provider_tools::{ProviderTool, ProviderToolAnswer, ProviderTools};
pub use published::PublishedPort;
pub use sandbox::{ANSWER_MS, KILL_CONFIRM_MS, MAX_BUFFERED_READ_BYTES, Sandbox, StartOptions};
pub use search::{GlobOptions, GlobResult, GrepMatch, GrepOptions, GrepResult};
pub use snapshot::{
    AwakeSnapshot, BranchPoint, ChangeKind, CompareOptions, ComparedFile, ComparedFileType, FileChange,
    FileChanges, NewImage, NewSnapshot, SandboxSnapshots, SnapshotInfo,
};
pub use spec::{
    ContainerSpec, IdleAction, ImageDefaults, Lifecycle, Limits, Manifest, Mount, NetworkMode, PullPolicy,
    Requirement, SandboxId, SandboxName, SandboxSpec, Security, SnapshotId, ValidSpec, WorkspaceSpec,
};
pub use tokio_util::sync::CancellationToken;
pub use watch::{MAX_WATCHED_DIRECTORIES, WatchEvent, WatchEventKind, WatchOptions};
pub use workspace::{
    DEFAULT_TIMEOUT_MS, OutputCallback, PageOptions, TextPage, TruncatedBy, Workspace, WorkspaceEntry,
    WorkspaceExec, WorkspaceExecEvent, WorkspaceExecResult, WorkspaceExecStream, WorkspaceStart,
};

/// Compiles the examples of the page about providers.
#[cfg(all(doctest, feature = "conformance"))]
#[doc = include_str!("../../../docs/writing-a-provider.md")]
struct ProviderGuide;
