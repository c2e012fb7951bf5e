/** Commands and terminals that outlive their connection. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { EyotClient, type Sandbox } from "@eyot/client";
import { type Ground, ground, lacks } from "../ground.js";

let here: Ground;
let client: EyotClient;
let sandbox: Sandbox;

before(async () => {
  here = await ground();
  client = new EyotClient({ url: here.socket, apiKey: here.key });
  sandbox = await client.create({ name: "kept" });
});
after(async () => {
  await client.close();
  await here.close();
});

test("a kept command is read on behind what was read", async () => {
  const waits = "echo first; cat; until [ -e go ]; do sleep 0.02; done; echo second >&2; exit 3";
  const command = await sandbox.keep(waits, { stdin: "typed\n", timeoutMs: 60_000 });
  let read = "";
  for await (const { text } of command) if ((read += text) === "first\ntyped\n") break;
  await assert.rejects(command.result(), { kind: "unavailable" });
  await sandbox.writeFile("go", "");
  const again = await sandbox.attach(command.id, { after: command.lastEvent });
  const rest: string[] = [];
  for await (const { type, text } of again) rest.push(type + text);
  assert.deepEqual([rest, (await again.result()).exitCode, again.id], [["stderrsecond\n"], 3, command.id]);
});

test("a kept command is killed, and one that is not there is not found", async () => {
  const command = await sandbox.keep(["sleep", "60"], { lingerMs: 60_000 });
  await command.kill();
  assert.equal((await command.result()).aborted, true);
  await assert.rejects(sandbox.attach("ex_none"), { kind: "not_found" });
  await assert.rejects(sandbox.keep(["no-such-program"]), { kind: "not_found" });
});

test("a terminal is attached to again and shows what it showed", async (context) => {
  if (await lacks(context, client, "pty")) return;
  const { id } = await sandbox.openTerminal({ command: "read line; echo got $line; read line; stty size", size: { rows: 10, cols: 40 } });
  const terminal = await sandbox.attachTerminal(id);
  await terminal.write("once\n");
  let shown = "";
  for await (const event of terminal) {
    if (event.type === "stdout") shown += event.text;
    if (shown.includes("got once")) break;
  }
  assert.deepEqual((await sandbox.terminals()).map((one) => one.id), [id]);
  const again = await sandbox.attachTerminal(id);
  again.resize({ rows: 33, cols: 99 });
  await again.write("twice\n");
  let rest = "";
  const result = await again.tell({ onStdout: (text) => void (rest += text) });
  assert.ok(rest.includes("got once") && rest.includes("33 99") && result.ok, rest);
  const shell = await sandbox.openTerminal();
  await sandbox.endTerminal(shell.id);
  await assert.rejects(sandbox.attachTerminal(shell.id), { kind: "not_found" });
});

test("a stream that is silent for too long is timed out", async () => {
  const stream = await sandbox.execStream("echo first; sleep 60", { readTimeoutMs: 2_000 });
  await assert.rejects(stream.result(), { kind: "timeout" });
});
