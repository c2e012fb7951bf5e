import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { EyotClient, EyotError, type FileChanges } from "@eyot/client";
import { type Ground, ground, lacks } from "../ground.js";

let here: Ground;
let client: EyotClient;

before(async () => {
  here = await ground();
  // With a key each sandbox of a native server has a disk of its own, whose files are copied: the client starts a server instead.
  client = new EyotClient({ stateDir: `${here.folder}/own` });
});
after(async () => {
  await client.close();
  await here.close();
});

const isKind = (kind: string) => (error: unknown) => error instanceof EyotError && error.kind === kind;
const lines = (found: FileChanges): string[] => found.changes.map(({ change, path }) => `${change} ${path}`);

test("a bad step is undone, and others begin where it was good", async (context) => {
  if (await lacks(context, client, "snapshots")) return;
  await using sandbox = await client.create({ name: "dev", env: { WORD: "hello" } });
  await sandbox.writeFile("a", "one");
  assert.deepEqual(lines(await sandbox.diff({ path: "/workspace" })), ["added /workspace/a"]);
  const good = await sandbox.snapshot({ name: "good", labels: { myStep: "1" } });
  assert.deepEqual([good.name, good.sandboxName, good.labels, good.stopped], ["good", "dev", { myStep: "1" }, []]);
  await sandbox.writeFile("a", "two");
  await sandbox.writeFile("b", "new");
  const changed = ["changed /workspace/a", "added /workspace/b"];
  assert.deepEqual(lines(await sandbox.diff()), changed);
  assert.deepEqual(lines(await sandbox.diff({ from: "good" })), changed);
  const found = await client.diff("good", "dev", { path: "/workspace/b" });
  assert.deepEqual([found.changes[0]?.after?.sizeBytes, found.changes[0]?.text], [3, undefined]);
  const texts = await sandbox.diff({ text: true, path: "/workspace/a" });
  assert.match(texts.changes[0]?.text ?? "", /^--- a\/workspace\/a\n\+\+\+ b\/workspace\/a\n@@ -1,1 \+1,1 @@\n-one\n/);
  const forks = await client.fork("good", { count: 2 });
  assert.deepEqual(forks.map(({ id }) => id), ["dev-1", "dev-2"]);
  for (const fork of forks) {
    assert.equal(await fork.readText("a"), "one");
    assert.equal((await fork.exec("echo $WORD")).stdout, "hello\n");
  }
  await using small = await client.create({ snapshot: good.id, limits: { memoryMib: 128 } });
  assert.equal(await small.readText("a"), "one");
  const [third] = await sandbox.fork({ name: "third" });
  assert.equal(await third?.readText("a"), "two");
  assert.deepEqual(await sandbox.rollback("good"), []);
  assert.equal(await sandbox.readText("a"), "one");
  const [listed] = await client.snapshots({ sizes: true });
  assert.deepEqual([listed?.id, typeof listed?.ownBytes], [good.id, "number"]);
  assert.equal((await client.snapshot("good")).id, good.id);
  await client.removeSnapshot("good");
  assert.deepEqual(await client.snapshots(), []);
  for (const fork of [...forks, third]) await fork?.destroy();
});

test("a sandbox that works is refused, unless what runs may be stopped", async (context) => {
  if (await lacks(context, client, "snapshots")) return;
  await using sandbox = await client.create({ name: "busy" });
  await sandbox.start(["sleep", "1000"]);
  await assert.rejects(sandbox.snapshot(), isKind("conflict"));
  await assert.rejects(sandbox.fork(), isKind("conflict"));
  const taken = await sandbox.snapshot({ stop: true });
  assert.deepEqual(taken.stopped, ["sleep 1000"]);
  await client.removeSnapshot(taken.id);
});

test("what is not there, and an option that there is not, is refused", async (context) => {
  if (await lacks(context, client, "snapshots")) return;
  await using sandbox = await client.create({ name: "one" });
  const refused = [
    () => sandbox.rollback("nothing"),
    () => client.snapshot("nothing"),
    () => client.removeSnapshot("nothing"),
    () => client.fork("nothing"),
    () => client.diff("nothing", "one"),
  ];
  for (const call of refused) await assert.rejects(async () => void (await call()), isKind("not_found"));
  await assert.rejects(client.fork("one", { count: 65 }), isKind("invalid"));
  const wrong = { names: "x" } as object;
  await assert.rejects(sandbox.snapshot(wrong), isKind("invalid"));
  await assert.rejects(sandbox.diff({ paths: "/" } as object), isKind("invalid"));
});

test("what is made of the host's programs can't be committed, and says what can", async (context) => {
  if (await lacks(context, client, "commit", "images")) return;
  await using sandbox = await client.create({ name: "plain" });
  const isRefused = (error: unknown) => error instanceof EyotError && error.kind === "unsupported" && /--image/.test(error.hint ?? "");
  await assert.rejects(sandbox.commit("app:1"), isRefused);
  await assert.rejects(client.commit("plain", "app:1"), isRefused);
  await assert.rejects(sandbox.commit("Not A Name"), isKind("invalid"));
  await assert.rejects(sandbox.commit(""), isKind("invalid"));
  assert.deepEqual(await client.images.list(), []);
});
