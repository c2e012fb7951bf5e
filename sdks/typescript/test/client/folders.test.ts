/** Folders that are uploaded and downloaded. */

import assert from "node:assert/strict";
import { accessSync, chmodSync, constants, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { EyotClient, type Sandbox } from "@eyot/client";
import { type Ground, ground } from "../ground.js";

let here: Ground;
let client: EyotClient;
let sandbox: Sandbox;
let folder: string;

before(async () => {
  here = await ground();
  client = new EyotClient({ url: here.socket, apiKey: here.key });
  sandbox = await client.create({ name: "folders" });
});
after(async () => {
  await client.close();
  await here.close();
});
beforeEach((context) => {
  folder = mkdtempSync(join(tmpdir(), "eyot-folders-"));
  (context as { after(end: () => void): void }).after(() => rmSync(folder, { recursive: true, force: true }));
});

function fill(from: string): string {
  mkdirSync(join(from, "deep/empty"), { recursive: true });
  writeFileSync(join(from, "@a.txt"), "grün");
  writeFileSync(join(from, "deep/run.sh"), "#!/bin/sh\necho ran\n");
  chmodSync(join(from, "deep/run.sh"), 0o755);
  symlinkSync("deep/run.sh", join(from, "link"));
  return from;
}

test("a folder is uploaded and comes back as it was", async () => {
  await sandbox.upload(fill(join(folder, "from")), "new/project");
  assert.equal((await sandbox.exec(["new/project/link"])).stdout, "ran\n");
  assert.equal((await sandbox.exec("stat -c %U new/project/@a.txt; touch new/project/deep/mine")).stdout, "user\n");
  const back = join(folder, "parents/back");
  await sandbox.download("new/project", back);
  assert.equal(readFileSync(join(back, "@a.txt"), "utf8"), "grün");
  assert.deepEqual([readdirSync(join(back, "deep/empty")), readlinkSync(join(back, "link"))], [[], "deep/run.sh"]);
  accessSync(join(back, "deep/run.sh"), constants.X_OK);
  assert.deepEqual(readdirSync(join(folder, "parents")), ["back"]);
});

test("a file is uploaded and downloaded with its permissions", async () => {
  writeFileSync(join(folder, "run.sh"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
  await sandbox.upload(join(folder, "run.sh"), "bin/run.sh");
  assert.equal((await sandbox.exec(["bin/run.sh"])).stdout, "ran\n");
  await sandbox.writeFile("plot.png", new Uint8Array([1, 255]));
  writeFileSync(join(folder, "plot.png"), "old");
  await sandbox.download("plot.png", join(folder, "plot.png"));
  await sandbox.writeFile("nothing", "");
  await sandbox.download("nothing", join(folder, "nothing"));
  assert.deepEqual([...readFileSync(join(folder, "plot.png"))], [1, 255]);
  assert.equal(readFileSync(join(folder, "nothing"), "utf8"), "");
});

test("an empty folder is uploaded, and a folder that is there is not overwritten", async () => {
  await sandbox.upload(folder, "empty");
  assert.deepEqual(await sandbox.list("empty"), []);
  mkdirSync(join(folder, "out"));
  await sandbox.writeFile("out/a", "1");
  await sandbox.download("out", join(folder, "out"));
  assert.deepEqual(readdirSync(join(folder, "out")), ["a"]);
  await assert.rejects(sandbox.download("out", join(folder, "out")), { kind: "already_exists" });
  assert.deepEqual(readdirSync(folder), ["out"]);
});

test("links out of a downloaded folder are refused", async () => {
  for (const target of ["/etc/passwd", "../outside", "inner/../../outside", "a/../.."]) {
    (await sandbox.exec(["sh", "-c", 'rm -rf bad && mkdir bad && ln -s "$1" bad/link', "sh", target])).check();
    await assert.rejects(sandbox.download("bad", join(folder, "bad")), { kind: "invalid", message: /not safe/ }, target);
    assert.deepEqual(readdirSync(folder), [], target);
  }
});

test("several files are written at once", async () => {
  await sandbox.writeFiles({ "a.txt": "1", "deep/b": new Uint8Array([255]), "/tmp/c": "3" });
  assert.deepEqual([await sandbox.readText("a.txt"), [...(await sandbox.readFile("deep/b"))], await sandbox.readText("/tmp/c")], ["1", [255], "3"]);
});

test("an error of this machine's files names the path that was given", async () => {
  const folder = mkdtempSync(join(tmpdir(), "eyot-ts-"));
  mkdirSync(join(folder, "full", "inner"), { recursive: true });
  writeFileSync(join(folder, "file"), "");
  await sandbox.writeFile("plot", "x");
  // Not even root can make a file in /proc.
  for (const target of ["/proc/plot", join(folder, "full"), join(folder, "file", "plot")]) {
    await assert.rejects(sandbox.download("plot", target), (error: NodeJS.ErrnoException) => {
      assert.ok(error.message.endsWith(`, download to '${target}'`) && !error.message.includes(".eyot-"), error.message);
      assert.deepEqual([error.path, typeof error.code], [target, "string"]);
      return true;
    });
  }
  rmSync(folder, { recursive: true });
});
