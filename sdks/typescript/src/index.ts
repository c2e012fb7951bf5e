/** Eyot from TypeScript: computers for AI agents. */

export type * from "./agent_events.js";
export type { AgentRun, FollowOptions, RunOptions } from "./agent_run.js";
export type { AgentInfo, Agents, ReattachOptions, RunListOptions, Runs } from "./agents.js";
export { EyotClient } from "./client.js";
export type { Capabilities, ClientOptions, ListOptions, ToolAnswer, ToolFormat } from "./client.js";
export type { ClientTool, ToolCallContext } from "./client_tools.js";
export { EyotError } from "./error.js";
export type { EyotErrorDetails, EyotErrorKind } from "./error.js";
export { CommandFailed } from "./exec.js";
export type { Command, ExecOptions, ExecResult, OnOutput, Outcome } from "./exec.js";
export type { ExecEvent, ExecStream, ExecStreamOptions, Output, PtySize } from "./exec_stream.js";
export type * from "./files.js";
export type { PortForward } from "./forward.js";
export type { ImageInfo, Images, ImportOptions, PullOptions, PullProgress, RemoveImageOptions, RemovedImages } from "./images.js";
export type * from "./network.js";
export type { EventOptions, PoolCreate, PoolCreated, PoolEntry, SandboxEvent, Transfer, Transferred } from "./pools.js";
export type { ExitStatus, LiveProcess, LiveProcesses, LogOptions, LogPiece, ProcessInfo, StartOptions, WaitOptions } from "./processes.js";
export { RunFailed } from "./run_info.js";
export type { AgentResult, RunInfo } from "./run_info.js";
export { Sandbox } from "./sandbox.js";
export type { Usage } from "./sandbox.js";
export type { Lifecycle, Limits, Mount, SandboxChanges, SandboxInfo, SandboxSpec } from "./spec.js";
export type {
  CommitOptions,
  ComparedFile,
  DiffOptions,
  FileChange,
  FileChanges,
  ForkOptions,
  ImageCommitted,
  RollbackOptions,
  SandboxDiffOptions,
  SnapshotInfo,
  SnapshotListOptions,
  SnapshotOptions,
  SnapshotTaken,
} from "./snapshots.js";
export type { KeepOptions, KeptCommand } from "./kept_command.js";
export type { Streamed } from "./streamed.js";
export type { Terminal, TerminalInfo, TerminalOptions } from "./terminal.js";
export type { components, paths } from "./openapi.js";
