import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { EyotClient, EyotError } from "@eyot/client";
import { type Ground, ground, lacks } from "../ground.js";

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

test("a sandbox is made from a spec, found by its name and its id, listed by its labels, and destroyed twice", async () => {
  const made = await client.create({
    name: "one",
    env: { myName: "a b", OTHER_one: "2" },
    labels: { teamName: "x", other_name: "y" },
    lifecycle: { ttlMs: 3_600_000, idleTimeoutMs: 60_000 },
    limits: { timeoutMs: 20_000 },
    manifest: { files: { "notes/a_b.txt": "hello", raw: new Uint8Array([0, 255]) } },
  });
  assert.match(made.id, /^sb_/);
  assert.equal(made.info?.name, "one");
  assert.deepEqual(made.info?.labels, { teamName: "x", other_name: "y" });
  assert.deepEqual(made.info?.envNames, ["OTHER_one", "myName"]);
  assert.equal(made.info?.idleTimeoutMs, 60_000);
  assert.ok(Date.parse(made.info?.expiresAt ?? "") > Date.now());
  assert.equal((await made.exec('printf "%s|%s" "$myName" "$OTHER_one"')).stdout, "a b|2");
  assert.equal(await made.readText("notes/a_b.txt"), "hello");
  assert.deepEqual(await made.readFile("raw"), new Uint8Array([0, 255]));
  assert.equal((await client.get("one")).id, made.id);
  assert.equal((await client.get(made.id)).info?.name, "one");
  const other = await client.create({ labels: { teamName: "z" } });
  assert.deepEqual((await client.list({ labels: { teamName: "x" } })).map(({ id }) => id), [made.id]);
  assert.equal((await client.list()).length, 2);
  await made.destroy();
  await made.destroy();
  await other.destroy();
  await assert.rejects(client.get("one"), isKind("not_found"));
});

test("an option of another library is refused with the name of ours", async () => {
  const refused = (spec: object, right: string) =>
    assert.rejects(client.create(spec), (error: EyotError) => error.kind === "invalid" && error.message.includes(right));
  await refused({ memoryMib: 1 }, "use `limits: { memoryMib }`, in MiB");
  await refused({ ttlMs: 1000 }, "use `lifecycle: { ttlMs }`");
  await refused({ template: "node:22" }, "use `image`");
  await refused({ limits: { memoryMib: 1 } }, "`limits.memory_mib` must be at least 16, not 1");
  assert.deepEqual(await client.list(), []);
});

test("get or create makes a sandbox once and then answers with the same one", async () => {
  const made = await client.getOrCreate({ name: "twice" });
  await made.writeFile("mark", "x");
  const again = await client.getOrCreate({ name: "twice" });
  assert.equal(again.id, made.id);
  assert.equal(await again.readText("mark"), "x");
  await assert.rejects(client.create({ name: "twice" }), isKind("already_exists"));
  await made.destroy();
});

test("get or create answers all who ask at the same time with one sandbox", async () => {
  const made = await Promise.all(Array.from({ length: 8 }, () => client.getOrCreate({ name: "rush" })));
  assert.equal(new Set(made.map(({ id }) => id)).size, 1);
  await made[0]?.destroy();
});

test("a wrong spec is refused with the field, and a sandbox that is not there with not_found", async () => {
  await assert.rejects(client.create({ limits: { memoryMib: 1 } }), (error: unknown) => {
    assert.ok(error instanceof EyotError);
    assert.equal(error.kind, "invalid");
    assert.equal(error.field, "spec.limits.memory_mib");
    assert.equal(error.status, 400);
    return true;
  });
  await assert.rejects(client.sandbox("nobody").exec("true"), (error: unknown) => {
    assert.ok(error instanceof EyotError && error.noSandbox);
    assert.equal(error.kind, "not_found");
    return true;
  });
});

test("a sandbox that sleeps keeps its files and is woken by any use", async () => {
  const made = await client.create({ name: "sleeper" });
  await made.writeFile("a", "1");
  await made.sleep();
  assert.equal((await made.refresh()).status, "sleeping");
  assert.equal((await made.exec("cat a")).stdout, "1");
  await made.sleep();
  assert.equal((await made.wake()).status, "running");
  assert.equal(typeof (await made.usage()).uptimeMs, "number");
  await made.destroy();
});

test("over TCP a key is needed, a wrong one is refused, and the right one opens", async () => {
  for (const apiKey of [undefined, "eyot_wrong"]) {
    const stranger = new EyotClient({ url: here.url, ...(apiKey ? { apiKey } : {}) });
    await assert.rejects(stranger.list(), (error: unknown) => error instanceof EyotError && error.status === 401);
    await stranger.close();
  }
  const friend = new EyotClient({ url: here.url, apiKey: here.key });
  assert.deepEqual(await friend.list(), []);
  assert.equal((await friend.version()).api, "1");
  assert.equal((await friend.capabilities()).provider, process.env["EYOT_PROVIDER"] ?? "native");
  await friend.close();
});

test("metadata of a spec are told again, and are no labels", async () => {
  await using sandbox = await client.create({ metadata: { userId: "ada" } });
  assert.deepEqual([sandbox.info?.spec["metadata"], sandbox.info?.labels], [{ userId: "ada" }, {}]);
});

test("a URL as a text is where the server is, with the other options behind it", async () => {
  await using named = new EyotClient(here.url, { apiKey: here.key });
  assert.deepEqual(await named.list(), []);
});

test("a server that can't be reached, a URL that is none and a closed client are errors of their kind", async () => {
  const lost = new EyotClient({ url: `unix:${here.folder}/nothing` });
  await assert.rejects(lost.list(), isKind("unavailable"));
  await assert.rejects(lost.sandbox("x").execStream("true"), isKind("unavailable"));
  assert.throws(() => new EyotClient({ url: "localhost" }), isKind("invalid"));
  await lost.close();
  await assert.rejects(lost.list(), isKind("unavailable"));
});

test("labels and deadlines are changed, and what is absent stays", async () => {
  const sandbox = await client.create({ labels: { a: "1", b: "2" }, lifecycle: { idleTimeoutMs: 3_600_000 } });
  const changed = await sandbox.update({ labels: { a: null, c: "3" }, lifecycle: { ttlMs: 86_400_000 } });
  assert.deepEqual(changed.labels, { b: "2", c: "3" });
  assert.equal(typeof changed.expiresAt, "string");
  assert.equal(changed.idleTimeoutMs, 3_600_000);
  assert.equal((await sandbox.update({ lifecycle: { ttlMs: null } })).expiresAt, null);
  await assert.rejects(sandbox.update({ labels: { x: "1" }, lifecycle: { ttlMs: 0 } }), EyotError);
  assert.deepEqual((await sandbox.refresh()).labels, { b: "2", c: "3" });
  await sandbox.destroy();
});

test("a port is a web page for whom it is made one", async (context) => {
  if (await lacks(context, client, "dial")) return;
  const sandbox = await client.create({});
  const preview = await sandbox.preview(8000, { ttlMs: 60_000 });
  assert.deepEqual([preview.port, preview.public, typeof preview.token], [8000, false, "string"]);
  assert.match(preview.pathUrl, /\/preview\/sb_[0-9a-f]{32}\/8000\//);
  assert.equal((await sandbox.preview(8001, { public: true })).token, null);
  await sandbox.endPreviews(8000);
  await assert.rejects(sandbox.preview(8000, { ttlMs: 1 }), EyotError);
  await sandbox.destroy();
});
