/** Commands that outlive their connection and the server. */

import { EyotError } from "./error.js";
import { type ExecOptions, type ExecResult, execResult } from "./exec.js";
import type { Output } from "./exec_stream.js";
import type { OptionsOf } from "./foreign_options.js";
import type { components } from "./openapi.js";
import type { NamedEvent } from "./sse.js";
import { StreamTexts } from "./stream_texts.js";
import type { Streamed } from "./streamed.js";

/** How to run a command that is kept. */
export interface KeepOptions extends Omit<ExecOptions, "signal" | "maxOutputBytes" | "onStdout" | "onStderr"> {
  /** It is killed when nobody reads it for so long; by default 30 s, and 10 minutes at the most. */
  lingerMs?: number;
  /** Reading is rejected with `timeout` when nothing came for so long. */
  readTimeoutMs?: number;
}

/** The options of a kept command, for the error about one that there is not. */
export const KEEP_OPTIONS: OptionsOf<KeepOptions> = {
  cwd: true,
  env: true,
  user: true,
  timeoutMs: true,
  stdin: true,
  lingerMs: true,
  readTimeoutMs: true,
};

/**
 * A command that the sandbox keeps. Iterating tells its output, and ends with the command. Leaving the loop, or `close`, only
 * stops reading: `sandbox.attach` reads on.
 */
export class KeptCommand implements AsyncIterable<Output> {
  readonly #events: Streamed<NamedEvent>;
  readonly #kill: (id: string) => Promise<void>;
  readonly #texts = new StreamTexts();
  #lastEvent: number;
  #result: ExecResult | undefined;

  /** Use `sandbox.keep` and `sandbox.attach`. */
  constructor(
    /** To attach to it again. */
    readonly id: string,
    events: Streamed<NamedEvent>,
    kill: (id: string) => Promise<void>,
    after = 0,
  ) {
    this.#events = events;
    this.#kill = kill;
    this.#lastEvent = after;
  }

  /** The number of the last event that was read: to attach behind it. */
  get lastEvent(): number {
    return this.#lastEvent;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Output, void> {
    try {
      for await (const { event, number, value } of this.#events) {
        this.#lastEvent = number ?? this.#lastEvent;
        if (event === "stdout" || event === "stderr") yield this.#texts.output(event, bytes(value as { data: string }));
        if (event !== "end") continue;
        this.#result = execResult(value as components["schemas"]["ExecAnswer"]);
        yield* this.#texts.rest();
      }
    } finally {
      this.close();
    }
  }

  /** Waits for the end, reading what is left to read. The result has no output: that was read. */
  async result(): Promise<ExecResult> {
    if (this.#result === undefined) for await (const _ of this);
    if (this.#result !== undefined) return this.#result;
    throw new EyotError("the stream ended before the command; it goes on, and can be attached to again", { kind: "unavailable" });
  }

  /** Kills it with its whole process tree. */
  async kill(): Promise<void> {
    await this.#kill(this.id);
  }

  /** Reads no more. */
  close(): void {
    void this.#events.return();
  }
}

function bytes({ data }: { data: string }): Uint8Array {
  return new Uint8Array(Buffer.from(data, "base64"));
}
