import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, jsonSchema, stepCountIs, type ToolSet } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import OpenAI from "openai";
import { EyotClient, EyotError } from "@eyot/client";
import { aiSdkTools, anthropicTools, openaiResponsesTools, openaiTools, toolMap } from "@eyot/client/ai";
import { type Ground, ground, until } from "../ground.js";

let here: Ground;
let client: EyotClient;

before(async () => {
  here = await ground();
  client = new EyotClient({ url: here.socket, apiKey: here.key });
});
after(async () => {
  await client.close();
  await here.close();
});

/** A stand-in for a model's HTTP API: it gives these answers in turn, and keeps what it was asked. */
async function standIn(answers: object[]) {
  const asked: any[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += String(piece);
    asked.push(JSON.parse(text));
    response.setHeader("content-type", "application/json").end(JSON.stringify(answers.shift()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, asked, close: () => server.close() };
}

test("Anthropic's SDK takes the declarations and the answers of a turn with two calls", async () => {
  const { tools, handleAll } = await anthropicTools(client, { toolset: "coding" });
  const use = (id: string, name: string, input: object) => ({ type: "tool_use", id, name, input });
  const model = await standIn([
    { type: "message", role: "assistant", content: [{ type: "text", text: "…" }, use("1", "bash", { command: "echo $((6*7))" }), use("2", "read", { path: "missing" })] },
    { type: "message", role: "assistant", content: [{ type: "text", text: "42" }] },
  ]);
  const anthropic = new Anthropic({ apiKey: "none", baseURL: model.url });
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "compute" }];
  const ask = () => anthropic.messages.create({ model: "stand-in", max_tokens: 9, tools, messages });
  const turn = await ask();
  messages.push({ role: "assistant", content: turn.content }, { role: "user", content: await handleAll(turn.content) });
  await ask();
  model.close();
  assert.deepEqual(model.asked[0].tools.map(({ name }: { name: string }) => name), ["read", "write", "edit", "bash", "grep", "glob"]);
  const [first, second] = model.asked[1].messages[2].content;
  assert.deepEqual(first, { type: "tool_result", tool_use_id: "1", content: "42", is_error: false });
  assert.equal(second.is_error, true);
  assert.match(second.content, /missing/);
});

test("OpenAI's SDK takes the declarations and the answers of a chat completion", async () => {
  const { tools, handleAll } = await openaiTools(client);
  const call = (id: string, name: string, text: string) => ({ id, type: "function", function: { name, arguments: text } });
  const calls = [call("1", "shell", '{"command":"echo hi"}'), call("2", "shell", '{"command"'), call("3", "no_such", "{}")];
  const model = await standIn([{ choices: [{ index: 0, message: { role: "assistant", content: null, tool_calls: calls } }] }, { choices: [] }]);
  const openai = new OpenAI({ apiKey: "none", baseURL: model.url });
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "greet" }];
  const ask = () => openai.chat.completions.create({ model: "stand-in", tools, messages });
  const message = (await ask()).choices[0]?.message;
  assert.ok(message);
  messages.push(message, ...(await handleAll(message.tool_calls)));
  await ask();
  model.close();
  const [one, two, three] = model.asked[1].messages.slice(2);
  assert.equal(one.tool_call_id, "1");
  assert.match(one.content, /hi/);
  assert.match(two.content, /no JSON/);
  assert.match(three.content, /there is no tool `no_such`/);
});

test("OpenAI's SDK takes the declarations and the answers of a response", async () => {
  const { tools, handleAll } = await openaiResponsesTools(client, { toolset: "coding" });
  const model = await standIn([{ output: [{ type: "function_call", id: "fc", call_id: "1", name: "bash", arguments: '{"command":"echo hi"}' }] }, { output: [] }]);
  const openai = new OpenAI({ apiKey: "none", baseURL: model.url });
  const response = await openai.responses.create({ model: "stand-in", input: "greet", tools });
  await openai.responses.create({ model: "stand-in", input: await handleAll(response.output), tools });
  model.close();
  assert.equal(model.asked[0].tools[3].name, "bash");
  assert.deepEqual(model.asked[1].input, [{ type: "function_call_output", call_id: "1", output: "hi" }]);
});

test("the AI SDK runs the tools in its own loop, and shows the model what failed", async () => {
  const tools: ToolSet = await aiSdkTools(client, { toolset: "coding", jsonSchema });
  const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
  const call = (toolCallId: string, toolName: string, input: object) => ({ type: "tool-call" as const, toolCallId, toolName, input: JSON.stringify(input) });
  let turns = 0;
  const model = new MockLanguageModelV3({
    doGenerate: async () => {
      turns += 1;
      return turns === 1
        ? { content: [call("1", "bash", { command: "echo hi" }), call("2", "read", { path: "missing" })], finishReason: { unified: "tool-calls" as const, raw: undefined }, usage, warnings: [] }
        : { content: [{ type: "text" as const, text: "done" }], finishReason: { unified: "stop" as const, raw: undefined }, usage, warnings: [] };
    },
  });
  const { text, steps } = await generateText({ model, tools, prompt: "greet", stopWhen: stepCountIs(3) });
  assert.equal(text, "done");
  const parts = steps[0]?.content ?? [];
  assert.ok(parts.some((part) => part.type === "tool-result" && part.output === "hi"));
  assert.ok(parts.some((part) => part.type === "tool-error" && /missing/.test(String(part.error))));
});

test("a map of tools has each tool's description, its schema and a handler", async () => {
  const tools = await toolMap(client);
  assert.deepEqual(Object.keys(tools).sort(), ["browse", "glob", "read_file", "sandbox_create", "sandbox_list", "shell", "transfer", "write_file"]);
  const { shell } = tools;
  assert.ok(shell);
  assert.deepEqual([typeof shell.description, (shell.inputSchema as { required: string[] }).required], ["string", ["command"]]);
  assert.equal((await shell.handler({ command: "echo hi" })).isError, false);
  const failed = await shell.handler({ command: "echo hi; exit 3" });
  assert.deepEqual([failed.isError, failed.structured], [true, { exit_code: 3, stdout: "hi\n", stderr: "" }]);
  assert.equal((await shell.handler({ command: 5 })).isError, true);
});

test("an aborted call of a tool takes its command with it", async () => {
  const { bash } = await toolMap(client, { toolset: "coding" });
  assert.ok(bash);
  const abort = new AbortController();
  const done = bash.handler({ command: "sleep 6661" }, { signal: abort.signal });
  const sleeping = async () => (await client.sandbox("default").exec("pgrep -x -f 'sleep 6661' | wc -l")).stdout.trim();
  const settled = assert.rejects(done, { name: "AbortError" });
  await until(async () => (await sleeping()) === "1");
  abort.abort();
  await settled;
  await until(async () => (await sleeping()) === "0");
});

test("a toolset that is not there is an error that names those that are", async () => {
  await assert.rejects(anthropicTools(client, { toolset: "no" }), (error: unknown) => error instanceof EyotError && /pool, coding, workspace/.test(error.message));
});
