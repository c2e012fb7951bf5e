// The official TypeScript SDK as a client of `eyot mcp`: `sdk.mjs CASE stdio EYOT` or `sdk.mjs CASE http URL TOKEN`.
// A case that fails throws; what is left of its sandboxes is looked at by whoever starts this.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [name, how, where, token] = process.argv.slice(2);

/** A transport as the arguments name it. */
function transport() {
  if (how === "stdio") {
    return new StdioClientTransport({ command: where, args: ["mcp"], env: process.env, stderr: "inherit" });
  }
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  return new StreamableHTTPClientTransport(new URL(where), { requestInit });
}

/** A session; `end` ends it as a client should. */
async function open() {
  const client = new Client({ name: "eyot-tests", version: "1.0.0" });
  const carrier = transport();
  await client.connect(carrier);
  const end = async () => {
    if (how === "http") await carrier.terminateSession();
    await client.close();
  };
  const call = (tool, args, options) => client.callTool({ name: tool, arguments: args }, undefined, options);
  const shell = async (command) => (await call("shell", { command })).structuredContent.stdout;
  return { client, call, shell, end };
}

/** How many `sleep 4242` the session's sandbox runs. */
const sleepers = (session) =>
  session.shell("for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep -c '^sleep 4242' || true");

const cases = {
  async lists_the_tools_and_calls_each() {
    const session = await open();
    assert.equal(session.client.getServerVersion().name, "eyot");
    const { tools } = await session.client.listTools();
    const calls = [
      ["sandbox_create", { sandbox: "other" }],
      ["write_file", { path: "a/b.txt", content: "hello" }],
      ["read_file", { path: "a/b.txt" }],
      ["glob", { pattern: "a/*.txt" }],
      ["shell", { command: "cat a/b.txt" }],
      ["transfer", { from_sandbox: "default", from_path: "a/b.txt", to_sandbox: "other", to_path: "c.txt" }],
      ["browse", { port: 8000 }],
      ["sandbox_list", {}],
    ];
    assert.deepEqual(tools.map((tool) => tool.name).sort(), calls.map(([tool]) => tool).sort());
    for (const [tool, args] of calls) {
      // The client holds each answer against the tool's output schema.
      const answer = await session.call(tool, args);
      assert.notEqual(answer.isError, true, `${tool}: ${JSON.stringify(answer)}`);
      assert.deepEqual(JSON.parse(answer.content[0].text), answer.structuredContent, tool);
    }
    await session.end();
  },

  async tells_of_progress() {
    const session = await open();
    const told = [];
    const onprogress = (progress) => told.push(progress);
    const line = "for i in 1 2 3 4; do echo step $i; sleep 1; done";
    const answer = await session.call("shell", { command: line }, { onprogress });
    assert.equal(answer.structuredContent.exit_code, 0);
    assert.ok(told.length >= 2, JSON.stringify(told));
    assert.ok(told.some(({ message }) => /^\d+\.\d s: step \d$/.test(message)), JSON.stringify(told));
    assert.ok(told.every(({ progress }, at) => at === 0 || progress > told[at - 1].progress), JSON.stringify(told));
    await session.end();
  },

  async a_cancelled_call_kills_the_command() {
    const session = await open();
    const abort = new AbortController();
    const line = "setsid sleep 4242 & echo ready > ready; sleep 4242";
    const call = session.call("shell", { command: line, timeout_ms: 600000 }, { signal: abort.signal });
    const ended = assert.rejects(call);
    while ((await session.shell("cat ready 2>/dev/null || true")) !== "ready\n");
    abort.abort("enough");
    await ended;
    while ((await sleepers(session)) !== "0\n");
    await session.end();
  },

  async what_goes_wrong_is_a_result_and_an_unknown_tool_an_error() {
    const session = await open();
    const failed = await session.call("shell", { command: "echo why >&2; exit 3" });
    assert.equal(failed.isError, true);
    assert.deepEqual(failed.structuredContent, { stdout: "", stderr: "why\n", exit_code: 3 });
    const wrong = await session.call("read_file", { path: "a", offset: "ten" });
    assert.equal(wrong.isError, true);
    assert.match(wrong.content[0].text, /`offset` must be/);
    await assert.rejects(session.call("nope", {}), /Unknown tool: nope/);
    await session.end();
  },

  async two_sessions_do_not_see_each_other() {
    const [one, two] = [await open(), await open()];
    await one.shell("echo secret > mine");
    assert.equal(await two.shell("ls"), "");
    await one.end();
    assert.equal(await two.shell("echo still here"), "still here\n");
    await two.end();
  },

  async calls_run_side_by_side() {
    const session = await open();
    await session.shell("mkfifo gate");
    const waiting = session.shell("cat gate");
    await session.shell("echo through > gate");
    assert.equal(await waiting, "through\n");
    await session.end();
  },

  async a_call_that_runs_does_not_keep_the_session() {
    const session = await open();
    await session.shell("true");
    const call = session.call("shell", { command: "sleep 4242", timeout_ms: 600000 });
    const ended = call.then(() => {}, () => {});
    await session.end();
    await ended;
  },

  async a_wrong_token_is_refused() {
    await assert.rejects(open(), /401|Unauthorized/);
  },
};

await cases[name]();
