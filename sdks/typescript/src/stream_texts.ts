/** Text of what a command writes to its two streams, in pieces that may end within a character. */

type StreamName = "stdout" | "stderr";

/** Makes text of pieces. */
export class StreamTexts {
  readonly #decoders = { stdout: new TextDecoder("utf-8", { ignoreBOM: true }), stderr: new TextDecoder("utf-8", { ignoreBOM: true }) };

  /** A piece with its text. */
  output(type: StreamName, data: Uint8Array): { type: StreamName; data: Uint8Array; text: string } {
    return { type, data, text: this.#decoders[type].decode(data, { stream: true }) };
  }

  /** At the end: what stands for characters that were never completed. */
  *rest(): Generator<{ type: StreamName; data: Uint8Array; text: string }, void> {
    for (const type of ["stdout", "stderr"] as const) {
      const text = this.#decoders[type].decode();
      if (text !== "") yield { type, data: new Uint8Array(0), text };
    }
  }
}
