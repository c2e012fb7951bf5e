/**
 * A command of a session: run over a stream, its output kept up to the limit. A program that is missing, or may not be run, is
 * the result that a shell would make of it; so is one whose session was destroyed meanwhile.
 */

import { EyotError } from "../error.js";
import type { ExecStream } from "../exec_stream.js";
import type { Sandbox } from "../sandbox.js";
import { isGone, leadsOut } from "./failure.js";
import { Output } from "./output.js";
import type { SandboxExecOptions, SandboxExecResult } from "./types.js";

/** The code of what was killed with its sandbox: 128 + SIGKILL. */
const KILLED = 137;
const ABORTED = 130;
const TIMED_OUT = 124;

/** How a command is run, beside what its caller says. */
export type Execution = {
  /** Absolute. */
  cwd: string;
  timeoutMs: number;
  maxOutputBytes: number;
};

/** Told each piece, with its text. */
export type Listener = (type: "stdout" | "stderr", chunk: Uint8Array, text: string) => void;

/** Runs a command to its end. */
export async function execute(
  sandbox: Sandbox,
  options: SandboxExecOptions,
  execution: Execution,
  listener: Listener = () => {},
): Promise<SandboxExecResult> {
  const run = new Run(options, execution.maxOutputBytes, listener);
  // One that was aborted before is never run.
  if (options.signal?.aborted) return run.result(ABORTED, { aborted: true });
  try {
    return await run.follow(await started(sandbox, options, execution));
  } catch (error) {
    return run.settled(error);
  }
}

async function started(sandbox: Sandbox, options: SandboxExecOptions, execution: Execution): Promise<ExecStream> {
  const { command, args = [], env, input, signal } = options;
  const stream = await sandbox.execStream([command, ...args], {
    cwd: execution.cwd,
    timeoutMs: execution.timeoutMs,
    // It is kept here, and not there as well.
    maxOutputBytes: 0,
    ...(env === undefined ? {} : { env }),
    ...(input === undefined ? {} : { stdinFollows: true }),
    ...(signal === undefined ? {} : { signal }),
  });
  if (input !== undefined) void stream.write(input).then(() => stream.end());
  return stream;
}

/** One command on its way. */
class Run {
  readonly #stdout: Output;
  readonly #stderr: Output;
  readonly #begunMs = Date.now();
  #isRunning = false;

  constructor(
    private readonly options: SandboxExecOptions,
    maxOutputBytes: number,
    private readonly listener: Listener,
  ) {
    this.#stdout = new Output(maxOutputBytes);
    this.#stderr = new Output(maxOutputBytes);
  }

  async follow(stream: ExecStream): Promise<SandboxExecResult> {
    this.#isRunning = true;
    for await (const event of stream) {
      if (event.type === "end") {
        const { exitCode, durationMs, timedOut, aborted } = event.result;
        return this.result(exitCode, { durationMs, timedOut, aborted });
      }
      if (event.type !== "refused") this.#take(event.type, event.data);
    }
    throw new EyotError("the command's end did not come", { kind: "internal" });
  }

  result(exitCode: number, facts: Partial<SandboxExecResult> = {}): SandboxExecResult {
    return {
      stdout: this.#stdout.text,
      stderr: this.#stderr.text,
      exitCode,
      durationMs: Date.now() - this.#begunMs,
      timedOut: false,
      aborted: false,
      stdoutTruncated: this.#stdout.isTruncated,
      stderrTruncated: this.#stderr.isTruncated,
      ...facts,
    };
  }

  /** What an error means for the result, or the error itself. */
  settled(error: unknown): SandboxExecResult {
    if (this.options.signal?.aborted && isAbort(error)) return this.result(ABORTED, { aborted: true });
    if (!(error instanceof EyotError)) throw error;
    if (isGone(error) && this.#isRunning) return this.result(KILLED);
    if (error.kind === "timeout") return this.result(TIMED_OUT, { timedOut: true });
    const exitCode = refusalCode(error);
    if (exitCode === undefined) throw error;
    this.#take("stderr", Buffer.from(`${error.message}\n`));
    return this.result(exitCode);
  }

  #take(type: "stdout" | "stderr", chunk: Uint8Array): void {
    const [output, told] = type === "stdout" ? [this.#stdout, this.options.onStdout] : [this.#stderr, this.options.onStderr];
    this.listener(type, chunk, output.take(chunk));
    told?.(chunk);
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

/** 126 for what may not be run and for a bad working directory, 127 for a program that is missing. */
function refusalCode(error: EyotError): number | undefined {
  if (isGone(error) || leadsOut(error)) return undefined;
  if (error.kind === "not_found") return isOfDirectory(error) ? 126 : 127;
  return error.kind === "not_directory" || error.kind === "permission" ? 126 : undefined;
}

/** It is the working directory that is wrong, not the program. */
export function isOfDirectory(error: EyotError): boolean {
  return error.reason.includes("working directory `");
}
