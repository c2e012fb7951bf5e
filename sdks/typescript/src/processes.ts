/** Started processes: they outlive the call, the connection and the server. */

import { fromWire } from "./case.js";
import { type Command, commandBody, stdinBody } from "./exec.js";
import type { PtySize } from "./exec_stream.js";
import { type OptionsOf, checkCommandOptions } from "./foreign_options.js";
import type { components } from "./openapi.js";
import { StreamTexts } from "./stream_texts.js";

/** How to start a process. */
export interface StartOptions {
  cwd?: string;
  env?: Record<string, string>;
  user?: string;
  /** Its input, or the beginning of it: at most 64 KiB. By default it reads end of file. */
  stdin?: string | Uint8Array;
  /** More input comes by `writeStdin`. */
  stdinFollows?: boolean;
  /** It is killed with its whole tree when it has not ended by then; by default never. */
  timeoutMs?: number;
  /** Runs it on a terminal; standard output and error are then one stream. */
  pty?: PtySize;
}

const START_OPTIONS: OptionsOf<StartOptions> = { cwd: true, env: true, user: true, stdin: true, stdinFollows: true, timeoutMs: true, pty: true };

/** How to wait for a process. */
export interface WaitOptions {
  /** Only looks on: the sandbox may fall asleep, or be idle for too long, meanwhile. */
  observe?: boolean;
  signal?: AbortSignal | undefined;
}

/** How a process ended. */
export type ExitStatus = { exited: number } | { signaled: number } | "out_of_memory";

/** What is known of a started process. */
export interface ProcessInfo {
  /** Such as `p1`. */
  id: string;
  /** Its process number inside the sandbox. */
  pid: number;
  command: string;
  status: "running" | { ended: ExitStatus };
  startedMs: number;
  endedMs: number | null;
  /** It had not ended at its deadline, and was killed. */
  timedOut: boolean;
}

/** A process that runs in a sandbox, whoever started it. */
export interface LiveProcess {
  /** Its process number inside the sandbox. */
  pid: number;
  parentPid: number;
  user: string;
  /** By the kernel's letter: `R` runs, `S` and `D` wait, `T` is stopped, `Z` has ended. */
  state: string;
  /** The processor time so far; absent if the backend does not count it by process. */
  cpuMs?: number;
  /** The resident memory; absent if the backend does not count it by process. */
  memoryBytes?: number;
  /** Its command line, cut to 512 bytes, or its name in brackets. */
  command: string;
}

/** Everything that runs in a sandbox. */
export interface LiveProcesses {
  /** By number. */
  processes: LiveProcess[];
  /** There were more. */
  truncated: boolean;
}

/** Which part of a log to read. */
export interface LogOptions {
  /** By default both, in the order in which they came. */
  stream?: "stdout" | "stderr";
  /** Where to begin, in bytes over both streams. */
  offset?: number;
  /** Begin this many bytes before the end instead. */
  tailBytes?: number;
  /** Begin this many lines before the end instead. */
  tailLines?: number;
  /** End after this many bytes. */
  limitBytes?: number;
  /** Go on until the process ends. */
  follow?: boolean;
  /** Reading is rejected with `timeout` when nothing came for so long. */
  readTimeoutMs?: number;
  signal?: AbortSignal;
}

/** A piece of a log. */
export interface LogPiece {
  stream: "stdout" | "stderr";
  /** The offset of its first byte, over both streams. */
  offset: number;
  /** The offset of its first byte in its own stream. */
  streamOffset: number;
  data: Uint8Array;
  /** The same as text. A character whose bytes come apart is in the text of its last byte's piece. */
  text: string;
}

/** What to start and how, as it goes over the wire. */
export function startBody(command: Command, options: StartOptions): components["schemas"]["StartBody"] {
  checkCommandOptions(options, START_OPTIONS);
  const { stdin, stdinFollows, timeoutMs, pty, ...where } = options;
  return {
    ...commandBody(command),
    ...where,
    ...stdinBody(stdin),
    ...(stdinFollows ? { stdin_follows: true } : {}),
    ...(timeoutMs === undefined ? {} : { timeout_ms: Math.ceil(timeoutMs) }),
    ...(pty ? { pty } : {}),
  };
}

/** A log's pieces among the values of its events; the first value is what the answer covers. */
export async function* logPieces(values: AsyncIterable<unknown>): AsyncGenerator<LogPiece, void> {
  const texts = new StreamTexts();
  for await (const value of values) {
    if (typeof value !== "object" || value === null || !("data" in value)) continue;
    const piece = fromWire<Omit<LogPiece, "data" | "text"> & { data: string }>(value);
    const { data, text } = texts.output(piece.stream, new Uint8Array(Buffer.from(piece.data, "base64")));
    yield { ...piece, data, text };
  }
}
