/** Agents: runs, their events, and tools that are defined here. A stand-in plays the model. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type AgentEvent, type AgentRun, type ClientTool, EyotClient, EyotError, RunFailed } from "@eyot/client";
import { takenUpAgain } from "../../dist/patience.js";
import { type AgentGround, agentGround } from "../agent_ground.js";
import { cuttingProxy } from "../cutting_proxy.js";

let here: AgentGround;
let client: EyotClient;

before(async () => {
  here = await agentGround();
  client = new EyotClient({ url: here.socket, apiKey: here.key });
});
after(async () => {
  await client.close();
  await here.close();
});

const weather: ClientTool<{ city: string }> = {
  name: "weather",
  description: "Tells the weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  execute: ({ city }) => ({ city, degrees: 21 }),
};

test("a run with a tool of its own completes, and tells its text and its events", async () => {
  assert.deepEqual(
    (await client.agents.list()).map(({ name, description, webhook }) => [name, description, webhook]),
    [["helper", "Helps", true], ["private", undefined, false]],
  );
  let text = "";
  const heard: AgentEvent[] = [];
  const told = { onText: (piece: string) => void (text += piece), onEvent: (event: AgentEvent) => void heard.push(event) };
  const run = await client.agents.run("helper", "weather", { prompt: 'call weather {"city":"Oslo"}', tools: [weather], ...told });
  const { text: answer, usage, value } = await run.result();
  assert.deepEqual([answer.trim(), answer, usage?.totalTokens], ['It said: {"city":"Oslo","degrees":21}', text, 30]);
  assert.deepEqual((value as { text: string }).text, answer);
  assert.deepEqual(heard.map(({ eventIndex }) => eventIndex), heard.map((_, index) => index));
  const call = heard.find((event) => event.type === "tool_call");
  assert.deepEqual([call?.toolName, call?.isError], ["weather", false]);
  assert.deepEqual([run.info.status, run.info.pool, run.lastEventId], ["completed", "default", heard.length - 1]);
});

test("calls of one turn are answered at the same time", async () => {
  let working = 0;
  let release = (): void => {};
  const both = new Promise<void>((resolve) => (release = resolve));
  const meet: ClientTool = {
    ...weather,
    name: "meet",
    execute: async ({ city }: { city: string }) => {
      if (++working === 2) release();
      await both;
      return city;
    },
  };
  const run = await client.agents.run("helper", "parallel", { prompt: 'call meet {"city":"A"}\ncall meet {"city":"B"}', tools: [meet] });
  assert.match((await run.result()).text, /It said: A \/ B/);
});

test("the model hears what a tool throws, and an answer that is too large", async () => {
  const throws: ClientTool = { ...weather, execute: () => Promise.reject(new Error("no such city")) };
  const run = await client.agents.run("helper", "throws", { prompt: 'call weather {"city":"X"}', tools: [throws] });
  const events: AgentEvent[] = [];
  for await (const event of run) events.push(event);
  assert.match((await run.result()).text, /no such city/);
  assert.ok(events.some((event) => event.type === "tool_call" && event.isError));
  const large: ClientTool = { ...weather, execute: () => "x".repeat(20_000_000) };
  const second = await client.agents.run("helper", "large", { prompt: 'call weather {"city":"X"}', tools: [large] });
  assert.match((await second.result()).text, /its answer can't be sent: .*16777216 bytes/);
});

test("a client that is killed in mid-call is an error of its tool, and the run completes", async () => {
  const script = fileURLToPath(new URL("../lost_client.js", import.meta.url));
  const child = spawn(process.execPath, [script, here.url, here.key], { stdio: ["ignore", "pipe", "inherit"] });
  const [id] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  child.kill("SIGKILL");
  await once(child, "exit");
  const run = await client.runs.follow(id.trim());
  assert.match((await run.result()).text, /did not answer within 1500 ms/);
  assert.equal(run.info.status, "completed");
});

test("another client takes over the calls of one that is lost", async () => {
  const script = fileURLToPath(new URL("../lost_client.js", import.meta.url));
  const child = spawn(process.execPath, [script, here.url, here.key], { stdio: ["ignore", "pipe", "inherit"] });
  const [id] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  child.kill("SIGKILL");
  const slow: ClientTool = { ...weather, name: "slow", execute: () => "at last" };
  const run = await client.runs.follow(id.trim(), { tools: [slow] });
  assert.match((await run.result()).text, /It said: at last/);
});

test("no event is lost or doubled when the stream is cut behind each one", async () => {
  const proxy = await cuttingProxy(here.url);
  await using through = new EyotClient({ url: proxy.url, apiKey: here.key });
  let calls = 0;
  const counted: ClientTool = { ...weather, execute: () => `call ${++calls}` };
  const run = await through.agents.run("helper", "cut", { prompt: 'call weather {"city":"Oslo"}', tools: [counted] });
  const events: AgentEvent[] = [];
  for await (const event of run) events.push(event);
  const straight: AgentEvent[] = [];
  for await (const event of await client.runs.follow(run.id)) straight.push(event);
  assert.deepEqual(events, straight);
  assert.deepEqual([calls, events.at(-1)?.type, proxy.cut() >= events.length], [1, "run_end", true]);
  proxy.close();
});

test("a run is followed over a crash of its server, which goes on with it", async () => {
  const slow: ClientTool = {
    ...weather,
    execute: async (_, { signal }) => {
      await here.crash();
      await here.restart();
      await once(signal, "abort");
    },
  };
  const run = await client.agents.run("helper", "crash", { prompt: 'call weather {"city":"X"}', tools: [slow] });
  const events: AgentEvent[] = [];
  for await (const event of run) events.push(event);
  assert.match((await run.result()).text, /interrupted/);
  assert.deepEqual(events.map(({ eventIndex }) => eventIndex), events.map((_, index) => index));
});

/** A run whose process is gone, and with which the server did not go on: it could not read the agent when it came back. */
async function interruptedRun(instance: string): Promise<AgentRun> {
  const stuck: ClientTool = { ...weather, execute: () => new Promise(() => {}) };
  const run = await client.agents.run("helper", instance, { prompt: 'call weather {"city":"X"}', tools: [stuck] });
  for await (const { type } of run) if (type === "tool_start") break;
  await here.crash();
  const file = join(here.folder, "agents", "helper.md");
  const agent = readFileSync(file);
  writeFileSync(file, "---\nno field: of an agent\n---\n");
  await here.restart("go on with a run of an agent");
  writeFileSync(file, agent);
  assert.equal((await run.refresh()).interrupted, true);
  return run;
}

test("an interrupted run is gone on with", async () => {
  const run = await interruptedRun("interrupted");
  const resumed = await run.goOn();
  assert.match((await resumed.result()).text, /interrupted/);
  assert.equal(resumed.id, run.id);
});

test("the run behind an interrupted one begins when that has ended", async () => {
  const run = await interruptedRun("behind");
  const next = await run.goOn({ prompt: "recall" });
  assert.match((await next.result()).text, /\/ recall/);
  assert.deepEqual([(await run.refresh()).status, next.id === run.id], ["completed", false]);
});

test("a loop that is left goes on behind the last event, and so does another client", async () => {
  const run = await client.agents.run("helper", "left", { prompt: "one two three" });
  const first: number[] = [];
  for await (const { eventIndex } of run) if (first.push(eventIndex) === 3) break;
  const other = await client.runs.follow(run.id, { lastEventId: run.lastEventId ?? 0 });
  const rest: number[] = [];
  for await (const { eventIndex } of run) rest.push(eventIndex);
  const others: number[] = [];
  for await (const { eventIndex } of other) others.push(eventIndex);
  assert.deepEqual([first, rest[0], others], [[0, 1, 2], 3, rest]);
  for await (const event of run) assert.fail(`${event.type} came twice`);
});

test("an abort ends the run; a signal only stops following it", async () => {
  const stop = new AbortController();
  let aborted = false;
  const stuck: ClientTool = {
    ...weather,
    execute: async (_, { signal }) => {
      const ended = once(signal, "abort");
      stop.abort();
      await ended;
      aborted = true;
    },
  };
  const options = { prompt: 'call weather {"city":"X"}', tools: [stuck], signal: stop.signal };
  const left = await client.agents.run("helper", "left-alone", options);
  await assert.rejects(left.result(), { name: "AbortError" });
  assert.deepEqual([aborted, (await left.refresh()).status], [true, "active"]);
  await left.abort();

  const run = await client.agents.run("helper", "abort", { prompt: "hang" });
  for await (const event of run) if (event.type === "text_delta") await run.abort("not needed");
  await assert.rejects(run.result(), (error) => {
    assert.ok(error instanceof RunFailed && error instanceof EyotError);
    assert.deepEqual([error.kind, error.errorName, error.reason, error.run.id], ["run_failed", "AbortError", "not needed", run.id]);
    return true;
  });
});

test("the next run of an instance knows the conversation", async () => {
  const run = await client.agents.run("helper", "talk", { prompt: "I am Ada", session: "hello", tools: [weather] });
  await run.result();
  await assert.rejects(run.goOn(), { kind: "invalid", field: "prompt" });
  await assert.rejects(run.resume(), { kind: "conflict" });
  const next = await run.goOn({ prompt: "recall" });
  assert.match((await next.result()).text, /You asked: I am Ada \/ recall/);
  assert.notEqual(next.id, run.id);
  const listed = await client.runs.list({ agent: "helper", instance: "talk" });
  assert.deepEqual(listed.map(({ id, status, payload }) => [id, status, payload]), [next, run].map(({ id }) => [id, "completed", undefined]));
  assert.deepEqual((await client.runs.list({ instance: "talk", status: "errored" })).length, 0);
  assert.deepEqual((await client.runs.list({ limit: 1 })).length, 1);
  assert.deepEqual((await client.runs.get(run.id)).payload, { prompt: "I am Ada", session: "hello" });
  const third = await next.goOn({ prompt: 'call weather {"city":"Rome"}' });
  assert.match((await third.result()).text, /Rome/);
});

test("an answer has the data of a schema", async () => {
  const result = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  const run = await client.agents.run("helper", "data", { prompt: 'call finish {"n":42}\n', result });
  assert.equal((await run.result<{ n: number }>()).data?.n, 42);
});

test("a key neither sees the runs of another pool nor starts an agent that is not for it", async () => {
  const run = await client.agents.run("helper", "mine", { prompt: "hello" });
  await run.result();
  await using other = new EyotClient({ url: here.url, apiKey: here.otherKey });
  await assert.rejects(other.runs.get(run.id), { kind: "not_found" });
  await assert.rejects(other.runs.follow(run.id), { kind: "not_found" });
  assert.deepEqual(await other.runs.list(), []);
  await assert.rejects(other.agents.run("private", "x", { prompt: "hello" }), { kind: "permission" });
  await assert.rejects(other.agents.run("nobody", "x", { prompt: "hello" }), { kind: "not_found" });
  await assert.rejects(client.agents.run("helper", "x", { prompt: "hello", payload: {} }), { kind: "invalid", field: "payload" });
  await assert.rejects(client.agents.run("helper", "x", { prompt: "hello", tools: [weather, weather] }), { kind: "invalid", field: "tools" });
});

test("a stream in which nothing came for minutes is taken up again when it breaks off", async (context) => {
  context.mock.timers.enable({ apis: ["Date"] });
  let opened = 0;
  const open = async (): Promise<never> => {
    const isFirst = ++opened === 1;
    const next = async (): Promise<unknown> => {
      if (!isFirst) return { done: false, value: { event: "log", number: 1, value: {} } };
      context.mock.timers.tick(600_000);
      return { done: true, value: undefined };
    };
    return { next, return: async () => ({ done: true, value: undefined }) } as never;
  };
  for await (const { number } of takenUpAgain(open, 0, new AbortController().signal)) {
    assert.equal(number, 1);
    break;
  }
  assert.equal(opened, 2);
});
