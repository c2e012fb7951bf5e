/** Terminals that outlive a connection and the server. */

import { checkInput } from "./arguments.js";
import type { ExecEvent, Output, PtySize } from "./exec_stream.js";
import { ExecStream } from "./exec_stream.js";
import { StreamTexts } from "./stream_texts.js";
import type { CallOptions } from "./files.js";
import type { Transport } from "./transport.js";
import { connected } from "./websocket.js";

/** How to open a terminal. */
export interface TerminalOptions extends CallOptions {
  /** What runs in it; by default a shell. */
  command?: string;
  cwd?: string;
  /** By default 24 rows of 80. */
  size?: PtySize;
}

/** A terminal that can be attached to. */
export interface TerminalInfo {
  id: string;
  /** What runs in it; absent: a shell. */
  command?: string | null;
  startedMs: number;
  /** Somebody is attached to it. */
  attached: boolean;
}

/**
 * A terminal that is attached to, in the place of who was. Iterating tells what it shows, beginning with the last 256 KiB.
 * Leaving the loop, or `close`, lets it go on without a viewer, for 10 minutes; `kill` ends it.
 */
export class Terminal extends ExecStream implements AsyncIterable<ExecEvent> {
  readonly #text = new StreamTexts();
  /** To attach to it again. */
  id = "";

  /** Attaches to a terminal. */
  static async attach(transport: Transport, path: string, id: string, { signal }: CallOptions): Promise<Terminal> {
    const terminal = new Terminal(await connected(transport, path, signal), transport, undefined);
    terminal.id = id;
    return terminal;
  }

  protected override get lost(): string {
    return "the connection to the terminal was lost; it goes on, and can be attached to again";
  }

  protected override output(data: Buffer): Output {
    return this.#text.output("stdout", new Uint8Array(data));
  }

  /** Types. */
  override async write(data: string | Uint8Array): Promise<void> {
    checkInput(data, "write to the terminal");
    this.send(typeof data === "string" ? Buffer.from(data) : data);
  }
}
