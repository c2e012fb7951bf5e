/**
 * A command over a WebSocket: its input, its output as it comes, signals, a terminal's size. A reader that does not read
 * holds the command up; input waits for the credit that the server gives.
 */

import WebSocket from "ws";
import { checkInput, signalNumber } from "./arguments.js";
import { EyotError, type Problem } from "./error.js";
import { type Command, type ExecOptions, type ExecResult, EXEC_OPTIONS, execBody, execResult, isLargeStdin } from "./exec.js";
import { type OptionsOf, checkCommandOptions } from "./foreign_options.js";
import { Mailbox } from "./mailbox.js";
import type { components } from "./openapi.js";
import { StreamTexts } from "./stream_texts.js";
import { type Transport, abortError, closedClient } from "./transport.js";
import { connected } from "./websocket.js";

/** A terminal's size. */
export interface PtySize {
  rows: number;
  cols: number;
}

/** How to run a command over a stream. */
export interface ExecStreamOptions extends ExecOptions {
  /** Input follows: {@link ExecStream.write} and {@link ExecStream.end}. */
  stdinFollows?: boolean;
  /** Runs it on a terminal; standard output and error are then one stream. */
  pty?: PtySize;
  /** Reading is rejected with `timeout` when nothing came for so long. The command runs on until the stream is closed. */
  readTimeoutMs?: number;
}

const STREAM_OPTIONS: OptionsOf<ExecStreamOptions> = { ...EXEC_OPTIONS, stdinFollows: true, pty: true, readTimeoutMs: true };

/** Something that a command wrote. */
export interface Output {
  type: "stdout" | "stderr";
  data: Uint8Array;
  /**
   * The same as text. A character whose bytes come apart is in the text of its last byte's output; what is not UTF-8 becomes
   * U+FFFD.
   */
  text: string;
}

/** What a command tells. `end` is the last. */
export type ExecEvent =
  | Output
  | { type: "refused"; error: EyotError }
  | { type: "end"; result: ExecResult };

type SocketEvent =
  | "started"
  | { credit: number }
  | { refused: Problem }
  | { end: components["schemas"]["ExecAnswer"] }
  | { problem: Problem };

/** How many bytes of input may be under way. */
const STDIN_WINDOW_BYTES = 256 * 1024;
/** The largest piece of input that is sent at once. */
const STDIN_PIECE_BYTES = 64 * 1024;
/** How many events wait for a reader before the socket is no longer read. */
const MAX_WAITING = 64;
const STDOUT = 1;
/** How long a server may be silent about a command that is to be killed. */
const LAST_WORDS_MS = 10_000;

/** A running command. Iterate over it once, or ask for its {@link result}. */
export class ExecStream implements AsyncIterable<ExecEvent> {
  readonly #socket: WebSocket;
  readonly #events: Mailbox<ExecEvent>;
  readonly #onAbort: () => void;
  readonly #signal: AbortSignal | undefined;
  #lastWords: NodeJS.Timeout | undefined;
  #window = STDIN_WINDOW_BYTES;
  #credited: (() => void)[] = [];
  #isOver = false;
  readonly #text = new StreamTexts();
  /** What came of the command, once it was read. */
  #result: ExecResult | undefined;
  #failure: unknown;

  readonly #readTimeoutMs: number | undefined;

  /** Use `sandbox.execStream`. (The types of `ws` are not installed with this package, so they don't stand here.) */
  protected constructor(opened: object, transport: Transport, signal: AbortSignal | undefined, readTimeoutMs?: number) {
    const socket = opened as WebSocket;
    this.#socket = socket;
    this.#signal = signal;
    this.#readTimeoutMs = readTimeoutMs;
    this.#events = new Mailbox(MAX_WAITING, {
      full: () => socket.pause(),
      free: () => socket.resume(),
    });
    this.#onAbort = () => this.kill();
    socket.on("message", (data: Buffer, isBinary: boolean) => this.#take(data, isBinary));
    socket.on("close", () => this.#fail(transport.isClosed ? closedClient() : new EyotError(this.lost, { kind: "unavailable" })));
    socket.on("error", (cause) => this.#fail(new EyotError(`the connection to the command failed: ${cause.message}`, { kind: "unavailable", cause })));
    socket.resume();
  }

  /** Asks for a command. Whether it could be run shows with reading: a refusal is thrown there. */
  static async open(transport: Transport, path: string, command: Command, options: ExecStreamOptions): Promise<ExecStream> {
    const { signal } = options;
    checkCommandOptions(options, STREAM_OPTIONS);
    if (options.stdin !== undefined) checkInput(options.stdin, "run a command", "stdin");
    if (signal?.aborted) throw abortError(signal);
    const socket = await connected(transport, path, signal);
    const stream = new ExecStream(socket, transport, signal, options.readTimeoutMs);
    const { stdin, ...others } = options;
    const large = isLargeStdin(stdin) ? stdin : undefined;
    const body = {
      // Both kinds of input are refused by the server, whose sentence it is, also where one of them would not fit.
      ...execBody(command, large === undefined ? options : { ...others, ...(options.stdinFollows ? { stdin: "" } : {}) }),
      ...(options.stdinFollows || large !== undefined ? { stdin_follows: true } : {}),
      ...(options.pty ? { pty: options.pty } : {}),
    };
    socket.send(JSON.stringify(body));
    if (large !== undefined && !options.stdinFollows) void stream.write(large).then(() => stream.end());
    if (signal?.aborted) stream.kill();
    else signal?.addEventListener("abort", stream.#onAbort, { once: true });
    return stream;
  }

  /** What the command tells, as it comes. Leaving the loop early kills the command. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ExecEvent, void> {
    try {
      for await (const event of this.#inTime()) {
        if (event.type === "end") this.#result = event.result;
        yield event;
        if (event.type === "end") return;
      }
    } catch (error) {
      this.#failure = error;
      throw error;
    } finally {
      this.close();
    }
  }

  /** What is said where the connection ends before the command. */
  protected get lost(): string {
    return "the connection to the command was lost";
  }

  /** What a message of bytes tells. */
  protected output(data: Buffer): Output {
    return this.#text.output(data[0] === STDOUT ? "stdout" : "stderr", new Uint8Array(data.subarray(1)));
  }

  /** The events, each of which has to come in time. */
  async *#inTime(): AsyncGenerator<ExecEvent, void> {
    const events = this.#events[Symbol.asyncIterator]();
    for (;;) {
      const deadline = this.#readTimeoutMs === undefined ? undefined : setTimeout(() => this.#events.fail(silent(this.#readTimeoutMs)), this.#readTimeoutMs);
      let next: IteratorResult<ExecEvent, void>;
      try {
        next = await events.next();
      } finally {
        clearTimeout(deadline);
      }
      if (next.done) return;
      yield next.value;
    }
  }

  /** Waits for the end, reading what is left to read; or what came of the command, if all was read. */
  async result(): Promise<ExecResult> {
    return await this.tell({});
  }

  /** The same; what is read is told. */
  async tell({ onStdout, onStderr }: Pick<ExecOptions, "onStdout" | "onStderr">): Promise<ExecResult> {
    if (this.#result === undefined && this.#failure === undefined) {
      for await (const event of this) {
        if (event.type === "stdout") await onStdout?.(event.text);
        if (event.type === "stderr") await onStderr?.(event.text);
      }
    }
    if (this.#result !== undefined) return this.#result;
    throw this.#failure ?? new EyotError("the command was let go of before its end", { kind: "conflict" });
  }

  /** Sends input; resolves when it is under way. What a command no longer reads is dropped. */
  async write(data: string | Uint8Array): Promise<void> {
    checkInput(data, "write to the command");
    let rest = typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    while (rest.length > 0 && !this.#isOver) {
      if (this.#window === 0) {
        await new Promise<void>((resolve) => this.#credited.push(resolve));
        continue;
      }
      const piece = rest.subarray(0, Math.min(rest.length, this.#window, STDIN_PIECE_BYTES));
      this.#window -= piece.length;
      this.send(piece);
      rest = rest.subarray(piece.length);
    }
  }

  /** Ends the input. */
  end(): void {
    this.send(new Uint8Array(0));
  }

  /** Kills the command with its whole tree; its result has `aborted`. A server that does not answer is `unavailable`. */
  kill(): void {
    this.send(JSON.stringify("kill"));
    if (!this.#isOver) this.#lastWords ??= setTimeout(() => this.#giveUp(), LAST_WORDS_MS);
  }

  /** Sends its process group a signal: a name such as `TERM`, or a Linux number. What fails with that comes as an event `refused`. */
  signal(signal: number | string): void {
    this.send(JSON.stringify({ signal: signalNumber(signal, "signal the command") }));
  }

  /** Tells the command its terminal's size. */
  resize(size: PtySize): void {
    this.send(JSON.stringify({ resize: size }));
  }

  /** Lets go of the command; one that still runs is killed. */
  close(): void {
    this.#finish();
    this.#events.close();
    this.#socket.resume();
    this.#socket.close();
  }

  protected send(message: string | Uint8Array): void {
    if (!this.#isOver && this.#socket.readyState === WebSocket.OPEN) this.#socket.send(message);
  }

  /** Ends it without the server, which said nothing; unless it is the reader that does not listen. */
  #giveUp(): void {
    if (this.#socket.isPaused) return void this.#lastWords?.refresh();
    const reason = `the server did not say for ${LAST_WORDS_MS / 1000} s that it is killed, and it may still be running`;
    this.#fail(new EyotError(`kill the command: ${reason}`, { kind: "unavailable", reason }));
    this.#socket.terminate();
  }

  #take(data: Buffer, isBinary: boolean): void {
    this.#lastWords?.refresh();
    if (isBinary) {
      this.#events.put(this.output(data));
      return;
    }
    const event = JSON.parse(data.toString("utf8")) as SocketEvent;
    if (event === "started") return;
    if ("credit" in event) this.#credit(event.credit);
    else if ("refused" in event) this.#events.put({ type: "refused", error: EyotError.fromProblem(event.refused) });
    else if ("end" in event) {
      this.#finish();
      for (const output of this.#text.rest()) this.#events.put(output);
      this.#events.put({ type: "end", result: execResult(event.end) });
    } else this.#fail(EyotError.fromProblem(event.problem));
  }

  #credit(bytes: number): void {
    this.#window += bytes;
    this.#wakeWriters();
  }

  #fail(error: EyotError): void {
    if (this.#isOver) return;
    this.#finish();
    this.#events.fail(error);
  }

  #finish(): void {
    this.#isOver = true;
    clearTimeout(this.#lastWords);
    this.#lastWords = undefined;
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#wakeWriters();
  }

  #wakeWriters(): void {
    const waiting = this.#credited;
    this.#credited = [];
    for (const wake of waiting) wake();
  }
}

function silent(timeoutMs: number | undefined): EyotError {
  return new EyotError(`read the command's output: nothing came for ${timeoutMs} milliseconds`, { kind: "timeout" });
}
