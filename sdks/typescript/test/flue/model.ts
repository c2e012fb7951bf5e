/** A stand-in for a model behind OpenAI's HTTP API for chat completions, streamed: it makes the calls that it is told to make. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A call of a tool. */
export interface Call {
  name: string;
  input: object;
}

/** What a turn of the model is: calls, or the last words. */
export type Turn = Call[] | string;

/** A message as the runtime sends it. */
export interface Message {
  role: string;
  content: unknown;
}

/** A model that says these turns, and keeps what it was asked. */
export async function standInModel(turns: Turn[]) {
  const asked: { messages: Message[]; tools?: { function: { name: string } }[] }[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += String(piece);
    asked.push(JSON.parse(text));
    const turn = turns[asked.length - 1] ?? "nothing more";
    response.setHeader("content-type", "text/event-stream");
    for (const chunk of chunks(turn)) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked, close: () => server.close() };
}

function chunks(turn: Turn): object[] {
  const chunk = (delta: object, finish_reason: string | null) => ({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] });
  const usage = { id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } };
  if (typeof turn === "string") return [chunk({ role: "assistant", content: turn }, null), chunk({}, "stop"), usage];
  const calls = turn.map(({ name, input }, index) => ({ index, id: `call_${name}_${index}`, type: "function", function: { name, arguments: JSON.stringify(input) } }));
  return [chunk({ role: "assistant", content: null, tool_calls: calls }, null), chunk({}, "tool_calls"), usage];
}
