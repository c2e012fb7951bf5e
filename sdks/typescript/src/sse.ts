/** Server-sent events: JSON values, of which an event `problem` is the last and is thrown. */

import { EyotError, type Problem } from "./error.js";

/** Reads the values of the events of one name. */
export async function* serverSentEvents(stream: AsyncIterable<Uint8Array>): AsyncGenerator<unknown, void> {
  for await (const { value } of namedEvents(stream)) yield value;
}

/** A value with the name of its event, and its number in streams that can be taken up again. */
export interface NamedEvent {
  event: string;
  number: number | undefined;
  value: unknown;
}

/** Reads the values with their names and numbers. */
export async function* namedEvents(stream: AsyncIterable<Uint8Array>): AsyncGenerator<NamedEvent, void> {
  for await (const { event, id, data } of frames(stream)) {
    if (event === "problem") throw EyotError.fromProblem(JSON.parse(data) as Problem);
    yield { event, number: /^\d+$/.test(id) ? Number(id) : undefined, value: JSON.parse(data) };
  }
}

interface Frame {
  event: string;
  id: string;
  data: string;
}

async function* frames(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Frame, void> {
  let frame: Frame = { event: "message", id: "", data: "" };
  let isEmpty = true;
  for await (const line of lines(stream)) {
    if (line === "") {
      if (!isEmpty) yield frame;
      frame = { event: "message", id: "", data: "" };
      isEmpty = true;
      continue;
    }
    const colon = line.indexOf(":");
    const [name, value] = colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
    if (name === "event") frame.event = value;
    if (name === "id") frame.id = value;
    if (name === "data") {
      frame.data = isEmpty ? value : `${frame.data}\n${value}`;
      isEmpty = false;
    }
  }
}

async function* lines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split(/\r?\n/);
    rest = parts.pop() ?? "";
    yield* parts;
  }
}
