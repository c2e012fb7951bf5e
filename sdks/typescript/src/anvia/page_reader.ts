/** Reads as much of a text file as a page needs, in bounded memory: what is before the page is read and let go. */

import type { Sandbox } from "../sandbox.js";
import { type TextPageBounds, createTextFilePage } from "./text_page.js";
import type { SandboxTextFilePage } from "./types.js";

const LINE_END = 10;
/** The longest character of UTF-8: with so many bytes more than may be shown, the cut is known. */
const LONGEST_CHARACTER = 4;

/** A page of a file. `maxFileBytes` is not for pages. */
export async function readPage(sandbox: Sandbox, path: string, bounds: TextPageBounds): Promise<SandboxTextFilePage> {
  const window = new Window(bounds);
  for await (const piece of await sandbox.readStream(path)) {
    // Leaving the loop ends the reading over there.
    if (window.take(piece)) break;
  }
  return createTextFilePage(window.text, { ...bounds, contentStartLine: bounds.startLine });
}

/** The lines that were asked for, and a little of what follows. */
class Window {
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;
  #before: number;
  #lines: number;
  readonly #most: number;

  constructor({ startLine, lineCount, maxBytes }: TextPageBounds) {
    this.#before = startLine - 1;
    this.#lines = lineCount;
    this.#most = maxBytes + LONGEST_CHARACTER;
  }

  get text(): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(this.#pieces));
  }

  /** Whether nothing that follows can matter. */
  take(piece: Uint8Array): boolean {
    const start = this.#skip(piece);
    let end = start;
    while (end < piece.length && this.#lines > 0) {
      const lineEnd = piece.indexOf(LINE_END, end);
      end = lineEnd < 0 ? piece.length : lineEnd + 1;
      if (lineEnd >= 0) this.#lines -= 1;
    }
    // One byte behind the last line says that there is more.
    const isMore = this.#lines === 0 && end < piece.length;
    this.#keep(piece.subarray(start, isMore ? end + 1 : end));
    return isMore || this.#bytes >= this.#most;
  }

  #skip(piece: Uint8Array): number {
    let at = 0;
    while (this.#before > 0 && at < piece.length) {
      const lineEnd = piece.indexOf(LINE_END, at);
      if (lineEnd < 0) return piece.length;
      this.#before -= 1;
      at = lineEnd + 1;
    }
    return at;
  }

  #keep(bytes: Uint8Array): void {
    const kept = bytes.subarray(0, this.#most - this.#bytes);
    this.#pieces.push(kept);
    this.#bytes += kept.length;
  }
}
