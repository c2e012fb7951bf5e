/** What a program writes: its beginning is kept up to a limit, and every byte is told. */

/** One stream of a command. */
export class Output {
  readonly #kept: Uint8Array[] = [];
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #room: number;
  #isTruncated = false;

  constructor(maxBytes: number) {
    this.#room = maxBytes;
  }

  /** Takes what came; answers its text. A character that two pieces share comes with the second. */
  take(chunk: Uint8Array): string {
    const piece = chunk.subarray(0, this.#room);
    if (piece.length > 0) this.#kept.push(piece);
    this.#room -= piece.length;
    this.#isTruncated ||= piece.length < chunk.length;
    return this.#decoder.decode(chunk, { stream: true });
  }

  /** What was kept; a character that the limit cut in two is U+FFFD. */
  get text(): string {
    return Buffer.concat(this.#kept).toString("utf8");
  }

  /** Whether something was dropped. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }
}
