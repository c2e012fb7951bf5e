/** Pools, what moves between their sandboxes, and what happened to them. */

import { fromWire } from "./case.js";
import type { OptionsOf } from "./foreign_options.js";

/** A sandbox of a pool. */
export interface PoolEntry {
  name: string;
  /** Its image, as it was named. */
  image: string;
  /** `sleeping`: it wakes when it is used. */
  status: "running" | "sleeping" | "damaged";
}

/** What a sandbox of a pool is made of, beside the pool's template. */
export interface PoolCreate {
  /** Its image: an alias of the pool, or what the provider knows by that name. */
  image?: string;
  /** It sleeps after this many idle milliseconds; by default the pool's number. */
  sleepAfterMs?: number;
  /** What runs in it whenever it is awake: shell lines. */
  services?: { command: string; cwd?: string; env?: Record<string, string> }[];
}

/** A sandbox of a pool that was made, or was there. */
export interface PoolCreated {
  /** Its name. */
  sandbox: string;
  /** The image it is made of, as it was named. */
  image: string;
  /** `false`: it was there already, and was left as it is. */
  created: boolean;
  /** In what the one that was there differs from what was asked for now, such as `image`. */
  differs: string[];
}

/** A file or a tree in the sandbox of one name, and where it goes in that of another. */
export interface Transfer {
  from: string;
  fromPath: string;
  /** Made if need be. */
  to: string;
  /** What it is called there; not a directory to put it in. Parents are made. */
  toPath: string;
  /** Directories are copied with everything below them. */
  recursive?: boolean;
}

/** What was copied. */
export interface Transferred {
  /** Regular files. */
  files: number;
  bytes: number;
}

/** Which events. */
export interface EventOptions {
  /** Only those of this sandbox: NAME, POOL/NAME or its id. */
  sandbox?: string;
  /** From this number on; by default from the first that is kept. */
  fromSeq?: number;
  /** And what comes, until the loop is left or the signal aborted. */
  follow?: boolean;
  /** Reading is rejected with `timeout` when nothing came for so long. */
  readTimeoutMs?: number;
  signal?: AbortSignal;
}

/** The options by name, for the error about one that there is not. */
export const EVENT_OPTIONS: OptionsOf<EventOptions> = { sandbox: true, fromSeq: true, follow: true, readTimeoutMs: true, signal: true };

/** Something that happened to a sandbox. */
export interface SandboxEvent {
  /** Counts the log's events from 1. Those of pools that the key does not open are left out. */
  seq: number;
  /** When, in milliseconds since 1970 (UTC). */
  timeMs: number;
  /** `created`, `woke`, `slept`, `destroyed`, `exec_started`, `exec_ended`, `file_written`, … */
  kind: string;
  /** Why it happened. */
  reason: string;
  pool?: string;
  /** The name of the sandbox that it is about. */
  sandbox?: string;
  sandboxId?: string;
  /** What else this kind tells, such as `command`, and the hashes that chain the log. */
  details: Record<string, unknown>;
}

type Known = Omit<SandboxEvent, "details">;

/** An event from the wire. */
export function sandboxEvent(value: unknown): SandboxEvent {
  const { seq, timeMs, kind, reason, pool, sandbox, sandboxId, ...details } = fromWire<Known & Record<string, unknown>>(value);
  const about = { ...(pool === undefined ? {} : { pool }), ...(sandbox === undefined ? {} : { sandbox }) };
  return { seq, timeMs, kind, reason, ...about, ...(sandboxId === undefined ? {} : { sandboxId }), details };
}
