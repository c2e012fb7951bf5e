/**
 * A stand-in for a model's server: it speaks OpenAI's chat completions as a stream, and does what the prompt says.
 *
 * - `call NAME JSON`, one a line: it calls these tools in one turn, and then says what they answered.
 * - `hang`: it says something, and nothing more.
 * - `recall`: it says every prompt of the conversation.
 * - `What is the weather in CITY?`: it calls the tool `weather`.
 */

import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | { text?: string }[] | null;
}

/** A stand-in, as `OPENAI_BASE_URL` names it. */
export interface ModelServer {
  url: string;
  close(): void;
}

/** Starts a stand-in. */
export async function modelServer(): Promise<ModelServer> {
  const server = http.createServer((request, response) => {
    void text(request).then((body) => answer((JSON.parse(body) as { messages: Message[] }).messages, response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, close };
}

function answer(messages: Message[], response: http.ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (value: object): void => void response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "m", ...value })}\n\n`);
  const choice = (delta: object, finish: string | null = null): void => send({ choices: [{ index: 0, delta, finish_reason: finish }] });
  const asked = textOf(messages.at(-1));
  const calls = [...weatherCall(asked).matchAll(/^call (\w+) (.*)$/gm)];
  if (messages.at(-1)?.role === "user" && asked.startsWith("hang")) return choice({ content: "I think." });
  if (messages.at(-1)?.role === "user" && calls.length > 0) {
    const tool_calls = calls.map(([, name, args], index) => ({ index, id: `call_${index}`, type: "function", function: { name, arguments: args } }));
    choice({ tool_calls });
    choice({}, "tool_calls");
  } else {
    for (const word of said(messages).split(/(?<= )/)) choice({ content: word });
    choice({}, "stop");
  }
  send({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } });
  response.end("data: [DONE]\n\n");
}

/** A question about the weather, as the call that answers it. */
function weatherCall(asked: string): string {
  return asked.replace(/^What is the weather in (\w+)\?$/, 'call weather {"city":"$1"}');
}

function said(messages: Message[]): string {
  const prompts = messages.filter(({ role }) => role === "user").map(textOf);
  if (prompts.at(-1) === "recall") return `You asked: ${prompts.join(" / ")}`;
  const answers = messages.slice(messages.findLastIndex(({ role }) => role !== "tool") + 1);
  return `It said: ${(answers.length > 0 ? answers : messages.slice(-1)).map(textOf).join(" / ")}`;
}

function textOf(message: Message | undefined): string {
  const content = message?.content ?? "";
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}
