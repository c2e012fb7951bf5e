/** Commands: what to run, and what came of it. */

import { checkInput, shown } from "./arguments.js";
import { EyotError } from "./error.js";
import { type OptionsOf } from "./foreign_options.js";
import type { components } from "./openapi.js";

/** A command: shell source, or a program and its arguments. */
export type Command = string | readonly string[];

/** How to run a command. */
export interface ExecOptions {
  /** Resolved against the sandbox's working directory. */
  cwd?: string;
  /** Layered over the sandbox's variables, for this command only. */
  env?: Record<string, string>;
  /** By default the sandbox's user. */
  user?: string;
  /** The deadline: then the whole process tree is killed, and `exitCode` is 124. By default the sandbox's, else none. */
  timeoutMs?: number;
  /** Kills the whole process tree; the result then has `aborted`. */
  signal?: AbortSignal | undefined;
  /** What it reads, of any size; by default end of file. What it does not read is dropped. */
  stdin?: string | Uint8Array;
  /** How many bytes of each stream are kept; by default 1 MiB. */
  maxOutputBytes?: number;
  /** Told what it writes to standard output as it comes, as text. What it throws ends the command. */
  onStdout?: OnOutput | undefined;
  /** The same of standard error. */
  onStderr?: OnOutput | undefined;
}

/** The options of a command, for the error about one that there is not. */
export const EXEC_OPTIONS: OptionsOf<ExecOptions> = {
  cwd: true,
  env: true,
  user: true,
  timeoutMs: true,
  signal: true,
  stdin: true,
  maxOutputBytes: true,
  onStdout: true,
  onStderr: true,
};

/** Told text that a command wrote; waited for. */
export type OnOutput = (text: string) => void | Promise<void>;

/** What ended a command. */
export type Outcome = { exited: number } | { signaled: number } | "timed_out" | "cancelled" | "out_of_memory";

/** What a command wrote and what came of it. */
export interface ExecResult {
  outcome: Outcome;
  /** It exited with 0. */
  ok: boolean;
  /** The code, 128 + signal, 124 for the deadline, 130 for an abort, 137 for out of memory. */
  exitCode: number;
  /** As text; what is not UTF-8 becomes U+FFFD. */
  stdout: string;
  /** As text, with a sentence where the deadline has passed. */
  stderr: string;
  /** The bytes that were kept of standard output. */
  stdoutBuffer: Uint8Array;
  /** The bytes that were kept of standard error, or its text's where that is all UTF-8. */
  stderrBuffer: Uint8Array;
  /** How many bytes it wrote in all. */
  stdoutBytes: number;
  stderrBytes: number;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
  durationMs: number;
  timedOut: boolean;
  aborted: boolean;
  /** It was to be killed, and that could not be confirmed. */
  mayStillBeRunning: boolean;
  /** A process that it left behind, such as `sleep 60 &`, still held its output open when reading stopped. */
  outputOpen: boolean;
  /** The result itself of a command that exited with 0; throws {@link CommandFailed} for any other. */
  check(): ExecResult;
}

/** How much of what a command wrote last is told by an error. */
const LAST_WORDS_CHARS = 2_000;

/** A command did not exit with 0, and its result was asked to `check` that. */
export class CommandFailed extends EyotError {
  constructor(
    /** What it wrote, and how it ended. */
    readonly result: ExecResult,
  ) {
    const words = (result.stderr.trim() || result.stdout.trim()).slice(-LAST_WORDS_CHARS);
    super(`the command ${ending(result.outcome)}${words === "" ? "" : `: ${words}`}`, { kind: "command_failed" });
  }
}

function ending(outcome: Outcome): string {
  if (typeof outcome === "object") return "exited" in outcome ? `exited with ${outcome.exited}` : `was killed by signal ${outcome.signaled}`;
  return { timed_out: "timed out", cancelled: "was cancelled", out_of_memory: "ran out of memory" }[outcome];
}

type ExecBody = components["schemas"]["ExecBody"];
type ExecAnswer = components["schemas"]["ExecAnswer"];

/** A command as it goes over the wire. */
export function commandBody(command: Command): Pick<ExecBody, "command" | "argv"> {
  if (typeof command === "string") return { command };
  if (!Array.isArray(command)) throw noCommand(shown(command));
  const wrong = command.find((word) => typeof word !== "string");
  // A hole in an array is found as `undefined`, as is a word that is that.
  if (wrong !== undefined || command.includes(undefined)) throw noCommand(`an array that has ${shown(wrong)}`);
  return { argv: [...command] };
}

function noCommand(given: string): EyotError {
  const reason = `a command is a text for the shell, or an array of words such as \`["python3", "main.py"]\`, not ${given}`;
  return new EyotError(`run a command: ${reason}`, { kind: "invalid", field: "command", reason });
}

/** The most input that goes with the request: a character may be six in JSON, and the server takes a message of 4 MiB. */
const MAX_STDIN_IN_BODY_BYTES = 512 * 1024;

/** Whether it is more input than goes with the request, so that it needs a stream. */
export function isLargeStdin(stdin: ExecOptions["stdin"]): stdin is string | Uint8Array {
  if (stdin !== undefined) checkInput(stdin, "run a command", "stdin");
  return stdin !== undefined && Buffer.byteLength(stdin) > MAX_STDIN_IN_BODY_BYTES;
}

/** A command and its options as they go over the wire. */
export function execBody(command: Command, options: ExecOptions): ExecBody {
  const { cwd, env, user, timeoutMs, stdin, maxOutputBytes } = options;
  return {
    ...commandBody(command),
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(user === undefined ? {} : { user }),
    ...(timeoutMs === undefined ? {} : { timeout_ms: Math.ceil(timeoutMs) }),
    ...(maxOutputBytes === undefined ? {} : { max_output_bytes: maxOutputBytes }),
    ...stdinBody(stdin),
  };
}

/** A command's input, on the wire. */
export function stdinBody(stdin: ExecOptions["stdin"]): Pick<ExecBody, "stdin" | "stdin_base64"> {
  if (stdin === undefined) return {};
  checkInput(stdin, "run a command", "stdin");
  return typeof stdin === "string" ? { stdin } : { stdin_base64: Buffer.from(stdin).toString("base64") };
}

/** The result of a command that was aborted before it was sent. */
export function abortedBefore(): ExecResult {
  const streams = { stdout: "", stderr: "", stdout_bytes: 0, stderr_bytes: 0, stdout_truncated: false, stderr_truncated: false };
  const facts = { exit_code: 130, duration_ms: 0, timed_out: false, aborted: true, may_still_be_running: false, output_open: false };
  return execResult({ outcome: "cancelled", ...streams, ...facts } as ExecAnswer);
}

/** A result as it comes from the wire. */
export function execResult(answer: ExecAnswer): ExecResult {
  const bytes = (text: string, base64: string | null | undefined): Uint8Array =>
    new Uint8Array(base64 == null ? Buffer.from(text) : Buffer.from(base64, "base64"));
  const result = {
    outcome: answer.outcome as unknown as Outcome,
    ok: answer.exit_code === 0,
    exitCode: answer.exit_code,
    stdout: answer.stdout,
    stderr: answer.stderr,
    stdoutBuffer: bytes(answer.stdout, answer.stdout_base64),
    stderrBuffer: bytes(answer.stderr, answer.stderr_base64),
    stdoutBytes: answer.stdout_bytes,
    stderrBytes: answer.stderr_bytes,
    stdoutTruncated: answer.stdout_truncated,
    stderrTruncated: answer.stderr_truncated,
    durationMs: answer.duration_ms,
    timedOut: answer.timed_out,
    aborted: answer.aborted,
    mayStillBeRunning: answer.may_still_be_running,
    // A server from before this field does not say.
    outputOpen: answer.output_open ?? false,
  } as ExecResult;
  const check = (): ExecResult => {
    if (result.ok) return result;
    throw new CommandFailed(result);
  };
  // No part of what is compared or sent on.
  return Object.defineProperty(result, "check", { value: check });
}
