import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { EyotClient, EyotError, type SandboxEvent } from "@eyot/client";
import { type Ground, ground, lacks, program, until } from "../ground.js";

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

const isKind = (kind: string) => (error: unknown) => error instanceof EyotError && error.kind === kind;
const DIAL = "curl --silent --max-time 5 --output /dev/null http://192.0.2.1/; true";

test("a pool is listed with its sandboxes and closed with them", async () => {
  await (await client.create({ name: "b" })).sleep();
  const made = await client.create({ name: "a" });
  assert.deepEqual(await client.pools(), ["default"]);
  assert.deepEqual(await client.poolEntries("default"), [
    { name: "a", image: "host", status: "running" },
    { name: "b", image: "host", status: "sleeping" },
  ]);
  await client.closePool("default");
  assert.deepEqual(await client.poolEntries("default"), []);
  await assert.rejects(made.exec("true"), isKind("not_found"));
  await assert.rejects(client.poolEntries("of-others"), EyotError);
});

test("a sandbox of a pool is made from its template once, and then answered with what differs", async () => {
  const services = [{ command: 'echo "$myName" > served; sleep 7780', env: { myName: "x" } }];
  const made = await client.createInPool("default", "member", { services, sleepAfterMs: 3_600_000 });
  assert.deepEqual(made, { sandbox: "member", image: "host", created: true, differs: [] });
  const sandbox = client.sandbox("member");
  await until(async () => (await sandbox.exists("served")) && (await sandbox.readText("served")) === "x\n");
  const again = await client.createInPool("default", "member", { sleepAfterMs: 60_000 });
  assert.equal(again.created, false);
  await assert.rejects(client.createInPool("default", "Not a name"), isKind("invalid"));
  await client.closePool("default");
});

test("a tree goes from one sandbox to another, which is made for it", async () => {
  const source = await client.create({ name: "source" });
  await source.writeFile("tree/a", "12345");
  await source.writeFile("tree/deep/b", "678");
  const what = { from: "source", fromPath: "tree", to: "target", toPath: "copy" };
  await assert.rejects(client.transfer(what), isKind("is_directory"));
  assert.deepEqual(await client.transfer({ ...what, recursive: true }), { files: 2, bytes: 8 });
  assert.equal(await client.sandbox("target").readText("copy/deep/b"), "678");
  await assert.rejects(client.transfer({ ...what, recursive: true }), isKind("already_exists"));
  await client.closePool("default");
});

test("what the command line makes has the same name here, and what is made here there", async (context) => {
  if (await lacks(context, client, "reopen")) return;
  const state = ["--state", join(here.folder, "state")];
  const eyot = (...args: string[]) => execFileSync(program(), [...state, ...args], { encoding: "utf8", timeout: 60_000, stdio: ["ignore", "pipe", "ignore"] });
  eyot("create", "by-hand");
  const byHand = await client.get("default/by-hand");
  assert.equal((await client.get("by-hand")).id, byHand.id);
  const made = await client.create({ name: "default/by-program" });
  for (const named of ["by-program", "default/by-program", made.id]) {
    assert.equal(eyot("exec", named, "--", "hostname"), "by-program\n");
    assert.equal((await (await client.sandbox(named).exec("hostname")).stdout), "by-program\n");
    const told: SandboxEvent[] = [];
    for await (const event of client.events({ sandbox: named })) told.push(event);
    assert.ok(told.length > 0 && told.every((event) => event.sandboxId === made.id));
  }
  eyot("rm", "default/by-hand");
  await assert.rejects(client.get("by-hand"), isKind("not_found"));
  await client.closePool("default");
});

test("events are told from a number on", async () => {
  const sandbox = await client.create({ name: "told" });
  await sandbox.exec("echo counted");
  await sandbox.destroy();
  const of = async (fromSeq?: number): Promise<SandboxEvent[]> => {
    const found: SandboxEvent[] = [];
    for await (const event of client.events(fromSeq === undefined ? {} : { fromSeq })) if (event.sandboxId === sandbox.id) found.push(event);
    return found;
  };
  const events = await of();
  assert.deepEqual([events[0]?.kind, events.at(-1)?.kind], ["created", "destroyed"]);
  const started = events.find(({ kind }) => kind === "exec_started");
  assert.ok(started);
  assert.deepEqual([started.details["command"], started.pool, started.sandbox], ["echo counted", "default", "told"]);
  assert.deepEqual(await of(started.seq), events.filter(({ seq }) => seq >= started.seq));
});

test("following events tells what comes, until the signal is aborted", async () => {
  const stop = new AbortController();
  const events = client.events({ follow: true, signal: stop.signal });
  const made = await client.create({ name: "later" });
  for await (const event of events) if (event.kind === "created" && event.sandboxId === made.id) break;
  const again = client.events({ follow: true, signal: stop.signal });
  await again.next();
  stop.abort();
  await assert.rejects(async () => {
    for await (const _ of again);
  });
  await made.destroy();
});

test("egress rules are replaced, and what they refuse is told", async (context) => {
  if (await lacks(context, client, "network_egress")) return;
  const sandbox = await client.create({ network: "egress", egress: { allow: ["example.com"] } });
  assert.deepEqual(await sandbox.egressRules(), { allow: ["example.com"], deny: [] });
  await sandbox.setEgressRules({ deny: ["192.0.2.0/24"] });
  assert.deepEqual(await sandbox.egressRules(), { allow: [], deny: ["192.0.2.0/24"] });
  await sandbox.start(DIAL);
  for await (const decision of sandbox.egressDecisions({ follow: true })) {
    assert.deepEqual([decision.verdict, decision.host, decision.port], ["refused", "192.0.2.1", 80]);
    break;
  }
  await assert.rejects(sandbox.setEgressRules({ allow: ["http://not a rule"] }), isKind("invalid"));
  await sandbox.destroy();
});

test("everything that runs is listed, and ports that nobody published are none", async (context) => {
  if (await lacks(context, client, "live_processes")) return;
  const sandbox = await client.create();
  const started = await sandbox.start(["sleep", "9876"]);
  const find = async () => {
    const live = await sandbox.liveProcesses();
    assert.equal(live.truncated, false);
    return live.processes.find(({ pid }) => pid === started.pid);
  };
  // Just after its exec it has no command line yet.
  await until(async () => (await find())?.command === "sleep 9876");
  assert.equal((await find())?.user, "user");
  assert.deepEqual(await sandbox.publishedPorts(), []);
  await sandbox.destroy();
});
