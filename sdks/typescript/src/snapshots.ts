/** Snapshots: the files of a sandbox as they were at one moment, to go back to, to compare with, and to make others from. */

import type { CallOptions } from "./files.js";
import type { OptionsOf } from "./foreign_options.js";
import type { ImageInfo } from "./images.js";

/** A snapshot. */
export interface SnapshotInfo {
  id: string;
  /** Unique in its pool. */
  name: string | null;
  pool: string | null;
  /** The id of the sandbox that it was taken of, which may be gone. */
  sandbox: string;
  sandboxName: string;
  /** The snapshot that the sandbox's files came from, which may be gone. */
  parent: string | null;
  labels: Record<string, string>;
  createdMs: number;
  /** What it alone adds to its parent; `null`: not counted yet, or it can't be. */
  ownBytes: number | null;
  /** What it shares with those below it. */
  sharedBytes: number | null;
  /** What the sandbox was made from, without the values of variables. */
  spec: Record<string, unknown>;
}

/** A snapshot that was taken. */
export interface SnapshotTaken extends SnapshotInfo {
  /** The commands that were ended for it. */
  stopped: string[];
}

export interface SnapshotOptions extends CallOptions {
  /** Unique among the snapshots and sandboxes of the pool. */
  name?: string;
  labels?: Record<string, string>;
  /** Ends the commands that run; otherwise a sandbox that works is refused with `conflict`. */
  stop?: boolean;
}

export interface RollbackOptions extends CallOptions {
  /** Ends the commands that run; otherwise a sandbox that works is refused with `conflict`. */
  stop?: boolean;
}

export interface ForkOptions extends CallOptions {
  /** How many to make, from 1 to 64; by default one. */
  count?: number;
  /** The name of the fork; of several, the beginning of their names. */
  name?: string;
  /** Ends the commands that run; otherwise a sandbox that works is refused with `conflict`. */
  stop?: boolean;
}

export interface CommitOptions extends CallOptions {
  /** Ends the commands that run; otherwise a sandbox that works is refused with `conflict`. */
  stop?: boolean;
}

/** An image that was made of a snapshot or a sandbox. */
export interface ImageCommitted extends ImageInfo {
  /** The commands that were ended for it. */
  stopped: string[];
}

export interface DiffOptions extends CallOptions {
  /** Only what lies here and below; by default everything. */
  path?: string;
  /** Adds unified diffs of files that are text. */
  text?: boolean;
}

export interface SandboxDiffOptions extends DiffOptions {
  /** The snapshot or sandbox to compare with; by default its last snapshot or, without one, what it began with. */
  from?: string;
}

export interface SnapshotListOptions extends CallOptions {
  /** Counts the sizes that are not known yet, which takes a walk through the files. */
  sizes?: boolean;
}

/** A file, directory or link, as one side of a comparison has it. */
export interface ComparedFile {
  type: "file" | "directory" | "symlink" | "other";
  /** 0 for all but files. */
  sizeBytes: number;
  /** The permission bits. */
  mode: number;
}

/** A difference between two sides. */
export interface FileChange {
  path: string;
  change: "added" | "changed" | "removed";
  /** `null`: it was added. */
  before: ComparedFile | null;
  /** `null`: it was removed. */
  after: ComparedFile | null;
  /** A unified diff, where it was asked for and the file is text of at most 1 MiB. */
  text?: string;
}

/** The differences between two sides, by path. */
export interface FileChanges {
  changes: FileChange[];
  /** There are more than are listed. */
  truncated: boolean;
}

export const SNAPSHOT: OptionsOf<SnapshotOptions> = { name: true, labels: true, stop: true, signal: true };
export const ROLLBACK: OptionsOf<RollbackOptions> = { stop: true, signal: true };
export const FORK: OptionsOf<ForkOptions> = { count: true, name: true, stop: true, signal: true };
export const COMMIT: OptionsOf<CommitOptions> = { stop: true, signal: true };
export const DIFF: OptionsOf<DiffOptions> = { path: true, text: true, signal: true };
export const SANDBOX_DIFF: OptionsOf<SandboxDiffOptions> = { from: true, path: true, text: true, signal: true };
export const SNAPSHOT_LIST: OptionsOf<SnapshotListOptions> = { sizes: true, signal: true };
