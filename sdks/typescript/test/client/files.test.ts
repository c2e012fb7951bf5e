import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { EyotClient, EyotError, type Sandbox } from "@eyot/client";
import { type Ground, ground } from "../ground.js";

let here: Ground;
let client: EyotClient;
let sandbox: Sandbox;

before(async () => {
  here = await ground();
  client = new EyotClient({ url: here.socket, apiKey: here.key });
  sandbox = await client.create({ name: "files" });
});
after(async () => {
  await client.close();
  await here.close();
});

const isKind = (kind: string) => (error: unknown) => error instanceof EyotError && error.kind === kind;

test("what is written is read again, as text, as bytes and in parts", async () => {
  await sandbox.writeFile("new/folder/ä b?&#.txt", "grüße\n");
  assert.equal(await sandbox.readText("new/folder/ä b?&#.txt"), "grüße\n");
  const bytes = new Uint8Array([9, 0, 1, 255, 9]).subarray(1, 4);
  await sandbox.writeFile("bytes", bytes);
  assert.deepEqual(await sandbox.readFile("bytes"), new Uint8Array([0, 1, 255]));
  assert.deepEqual(await sandbox.readFile("bytes", { offset: 1, limit: 1 }), new Uint8Array([1]));
  assert.equal(await sandbox.readText("/workspace/bytes", { offset: 10 }), "");
});

test("a file is written from a stream and read as one", async () => {
  async function* pieces() {
    for (let n = 0; n < 100; n += 1) yield new Uint8Array(50_000).fill(n);
  }
  await sandbox.writeFile("large", pieces());
  assert.equal((await sandbox.stat("large")).size, 5_000_000);
  let size = 0;
  for await (const piece of await sandbox.readStream("large")) size += piece.length;
  assert.equal(size, 5_000_000);
});

test("a write whose source breaks changes nothing and is rejected with what broke it", async () => {
  await sandbox.writeFile("whole", "old");
  const reason = new RangeError("the source broke");
  async function* broken() {
    yield new Uint8Array(10);
    throw reason;
  }
  await assert.rejects(sandbox.writeFile("whole", broken()), (error: unknown) => error === reason);
  assert.equal(await sandbox.readText("whole"), "old");
});

test("an append adds, and a write that wants a new file refuses an old one", async () => {
  await sandbox.appendFile("log", "a");
  await sandbox.appendFile("log", "b");
  assert.equal(await sandbox.readText("log"), "ab");
  await assert.rejects(sandbox.writeFile("log", "c", { mode: "create_new" }), isKind("already_exists"));
  await assert.rejects(sandbox.writeFile("log", "longer", { maxFileBytes: 3 }), isKind("too_large"));
  await sandbox.writeFile("script", "#!/bin/sh\necho ran\n", { permissions: 0o755 });
  assert.equal((await sandbox.exec("./script")).stdout, "ran\n");
});

test("stat describes a file, a directory and a link's target", async () => {
  await sandbox.writeFile("target", "12345");
  await sandbox.exec("ln -s target link; ln -s nothing dangling");
  const stat = await sandbox.stat("link");
  assert.deepEqual([stat.isFile, stat.isDirectory, stat.isSymbolicLink, stat.size, stat.mode], [true, false, true, 5, 0o644]);
  assert.ok(Math.abs((stat.modifiedMs ?? 0) - Date.now()) < 60_000);
  assert.equal((await sandbox.stat(".")).isDirectory, true);
  await assert.rejects(sandbox.stat("dangling"), isKind("not_found"));
  assert.deepEqual(await Promise.all(["link", "dangling", "target/below", "no"].map((path) => sandbox.exists(path))), [true, false, false, false]);
});

test("directories are made, listed, renamed and removed, and what is wrong with that has its kind", async () => {
  await sandbox.mkdir("dir/sub", { recursive: true });
  await sandbox.writeFile("dir/.hidden", "");
  await sandbox.writeFile("dir/a", "1");
  assert.deepEqual((await sandbox.list("dir")).map(({ name, fileType }) => [name, fileType]), [[".hidden", "file"], ["a", "file"], ["sub", "directory"]]);
  await sandbox.rename("dir/a", "dir/b");
  assert.equal(await sandbox.readText("dir/b"), "1");
  await assert.rejects(sandbox.mkdir("dir"), isKind("already_exists"));
  await assert.rejects(sandbox.remove("dir"), isKind("is_directory"));
  await assert.rejects(sandbox.readFile("dir"), isKind("is_directory"));
  await assert.rejects(sandbox.list("dir/b"), isKind("not_directory"));
  await assert.rejects(sandbox.remove("missing"), isKind("not_found"));
  await sandbox.remove("missing", { force: true });
  await sandbox.remove("dir", { recursive: true });
  assert.equal(await sandbox.exists("dir"), false);
});

test("files are found by a pattern and lines by an expression or by their text", async () => {
  await sandbox.writeFile("src/a.ts", "one\nTwo (x)\n");
  await sandbox.writeFile("src/deep/b.ts", "two (x)\n");
  assert.deepEqual(await sandbox.glob("src/**/*.ts"), { paths: ["/workspace/src/a.ts", "/workspace/src/deep/b.ts"], truncated: false });
  assert.equal((await sandbox.glob("**/*.ts", { maxResults: 1 })).truncated, true);
  const found = await sandbox.grep("two (x)", { path: "src", literal: true, ignoreCase: true });
  assert.deepEqual(found.matches.map(({ path, lineNumber, line }) => [path, lineNumber, line]), [
    ["/workspace/src/a.ts", 2, "Two (x)"],
    ["/workspace/src/deep/b.ts", 1, "two (x)"],
  ]);
  await assert.rejects(sandbox.grep("("), isKind("invalid"));
});

test("a tree is packed as tar and unpacked elsewhere, from a stream and from bytes", async () => {
  await sandbox.writeFile("packed/deep/a", "1");
  await sandbox.writeFile("packed/large", new Uint8Array(3_000_000));
  await sandbox.mkdir("from-stream");
  await sandbox.mkdir("from-bytes");
  assert.equal(await sandbox.tarIn("from-stream", await sandbox.tarOut("packed")), 4);
  assert.equal(await sandbox.readText("from-stream/packed/deep/a"), "1");
  assert.equal((await sandbox.stat("from-stream/packed/large")).size, 3_000_000);
  const pieces: Uint8Array[] = [];
  for await (const piece of await sandbox.tarOut("packed/deep")) pieces.push(piece);
  assert.equal(await sandbox.tarIn("from-bytes", Buffer.concat(pieces)), 2);
  assert.equal(await sandbox.readText("from-bytes/deep/a"), "1");
  await assert.rejects(sandbox.tarIn("from-bytes", Buffer.concat(pieces), { maxEntries: 1 }), EyotError);
  await assert.rejects(sandbox.tarOut("nothing"), isKind("not_found"));
  await assert.rejects(sandbox.tarIn("nowhere", Buffer.concat(pieces)), isKind("not_found"));
});

test("a watch tells what happens until the loop is left", async () => {
  await sandbox.mkdir("watched");
  const events = await sandbox.watch("watched");
  await sandbox.writeFile("watched/new", "1");
  for await (const event of events) {
    if (event.kind === "created" || event.kind === "renamed" || event.path.endsWith("/new")) {
      assert.match(event.path, /^\/workspace\/watched\//);
      break;
    }
  }
});

test("a call that is aborted is rejected as aborted", async () => {
  await assert.rejects(sandbox.readFile("large", { signal: AbortSignal.abort(new Error("enough")) }), (error: unknown) => {
    assert.ok(error instanceof EyotError && error.kind === "cancelled", String(error));
    assert.deepEqual([error.name, error.message], ["AbortError", "enough"]);
    return true;
  });
});

test("a listing is sorted by name, or in the directory's own order", async () => {
  const { stdout } = await sandbox.exec("mkdir order && cd order && for n in $(seq 100); do : > $n; done; ls -U");
  const own = stdout.trim().split("\n");
  const names = async (order?: "name" | "directory") => (await sandbox.list("order", order === undefined ? {} : { order })).map(({ name }) => name);
  assert.deepEqual(await names("directory"), own);
  assert.deepEqual([await names(), await names("name")], [own.toSorted(), own.toSorted()]);
});

test("a handle beneath a directory names nothing outside of it, links included", async () => {
  await sandbox.exec("mkdir -p held && echo in > held/f && ln -s /etc/hostname held/out && ln -s f held/link");
  const held = sandbox.beneath("/workspace/held");
  assert.deepEqual([await held.readText("held/f"), await held.readText("held/link")], ["in\n", "in\n"]);
  const refused = (call: Promise<unknown>) => assert.rejects(call, (error: unknown) => error instanceof EyotError && error.kind === "permission");
  await refused(held.readText("held/out"));
  await refused(held.writeFile("other", "x"));
  await refused(held.exec("pwd", { cwd: "/tmp" }));
  assert.equal((await held.exec("pwd", { cwd: "held" })).stdout, "/workspace/held\n");
});

test("what is no content is refused, and changes no file", async () => {
  await sandbox.writeFile("keep", "kept");
  for (const wrong of [undefined, null, 5, {}, ["x"], new Blob(["x"])]) {
    const content = wrong as unknown as string;
    const says = (what: string, field: string) => (error: unknown) => {
      assert.ok(error instanceof EyotError && error.kind === "invalid" && error.field === field, String(error));
      assert.ok(error.message.startsWith(`${what}: \`${field}\` must be a text, bytes`), error.message);
      return true;
    };
    await assert.rejects(sandbox.writeFile("keep", content), says("write file `keep`", "data"));
    await assert.rejects(sandbox.appendFile("keep", content), says("append to file `keep`", "data"));
    await assert.rejects(sandbox.writeFiles({ first: "x", keep: content }), says("write files", 'files["keep"]'));
    await assert.rejects(sandbox.tarIn(".", content as unknown as Uint8Array), says("unpack", "tar"));
  }
  assert.deepEqual([await sandbox.readText("keep"), await sandbox.exists("first")], ["kept", false]);
});
