/** The options of the calls, by name: what is not here is refused, since it would be ignored. */

import type { ReattachOptions, RunListOptions } from "./agents.js";
import type { FollowOptions, RunOptions } from "./agent_run.js";
import type {
  CallOptions,
  GlobOptions,
  GrepOptions,
  ListDirectoryOptions,
  MkdirOptions,
  ReadOptions,
  RemoveOptions,
  WatchOptions,
  WriteOptions,
} from "./files.js";
import type { OptionsOf } from "./foreign_options.js";
import type { LogOptions, WaitOptions } from "./processes.js";

export const CALL: OptionsOf<CallOptions> = { signal: true };

export const READ: OptionsOf<ReadOptions> = { offset: true, limit: true, signal: true };
export const WRITE: OptionsOf<WriteOptions> = { mode: true, permissions: true, maxFileBytes: true, signal: true };
export const LIST_DIRECTORY: OptionsOf<ListDirectoryOptions> = { order: true, signal: true };
export const MKDIR: OptionsOf<MkdirOptions> = { recursive: true, signal: true };
export const REMOVE: OptionsOf<RemoveOptions> = { recursive: true, force: true, signal: true };
export const GLOB: OptionsOf<GlobOptions> = { path: true, hidden: true, maxResults: true, signal: true };
export const GREP: OptionsOf<GrepOptions> = {
  path: true,
  literal: true,
  ignoreCase: true,
  include: true,
  maxMatches: true,
  maxLineBytes: true,
  signal: true,
};
export const WATCH: OptionsOf<WatchOptions> = { recursive: true, readTimeoutMs: true, signal: true };

export const LOGS: OptionsOf<LogOptions> = {
  stream: true,
  offset: true,
  tailBytes: true,
  tailLines: true,
  limitBytes: true,
  follow: true,
  readTimeoutMs: true,
  signal: true,
};
export const WAIT: OptionsOf<WaitOptions> = { observe: true, signal: true };

const FOLLOW_RUN: OptionsOf<FollowOptions> = { tools: true, onText: true, onEvent: true, signal: true };
export const REATTACH: OptionsOf<ReattachOptions> = { ...FOLLOW_RUN, lastEventId: true };
export const RUN: OptionsOf<RunOptions> = {
  prompt: true,
  session: true,
  result: true,
  payload: true,
  toolTimeoutMs: true,
  pool: true,
  ...FOLLOW_RUN,
};
export const LIST_RUNS: OptionsOf<RunListOptions> = { pool: true, agent: true, instance: true, status: true, limit: true, signal: true };
