/** The faults of the original that are mended here: F1 to F12 of the table in docs/anvia.md. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { type DockerSandboxSession, SandboxDockerCommandError, SandboxPathError, SandboxProcessError } from "@eyot/client/anvia";
import { until } from "../ground.js";
import { freshId, onEach } from "./ground.js";

onEach("mended faults", (ground) => {
  let session: DockerSandboxSession;
  before(async () => {
    session = await ground.session();
  });
  const sh = (line: string, options = {}) => session.exec({ command: "sh", args: ["-c", line], ...options });
  const running = async (text: string) => {
    const line = `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c "[${text[0]}]${text.slice(1)}" || true`;
    return Number((await sh(line)).stdout);
  };

  test("F1: a link never leads to a file of the host, and one to a file inside is read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "eyot-secret-"));
    writeFileSync(join(folder, "secret"), "of the host");
    await sh(`ln -s ${folder}/secret leak; ln -s /etc/passwd passwd; echo inside > real; ln -s real good`);
    for (const path of ["leak", "passwd"]) {
      await assert.rejects(session.readFile(path), (error: unknown) => error instanceof SandboxPathError && error.message.endsWith(`: ${path}`));
      await assert.rejects(session.readTextFilePage(path), SandboxPathError);
    }
    assert.equal(await session.readTextFile("good"), "inside\n");
    rmSync(folder, { recursive: true });
  });

  test("F2: a deadline and an abort end everything that the command started", async () => {
    const late = await sh("setsid sleep 7791 & sleep 7791", { timeoutMs: 500 });
    assert.equal(late.timedOut, true);
    assert.equal(await running("sleep 7791"), 0);
    const abort = new AbortController();
    const aborted = sh("touch begun; setsid sleep 7792 & sleep 7792", { signal: abort.signal });
    await until(async () => (await session.listFiles()).some(({ path }) => path === "begun"));
    abort.abort();
    assert.equal((await aborted).aborted, true);
    assert.equal(await running("sleep 7792"), 0);
  });

  test("F3: an id that is in use is refused, and the session that has it lives on", async () => {
    const id = freshId();
    const first = await ground.session({}, { id, workspace: { mode: "persistent", id, destroyOnSessionDestroy: true } });
    await first.writeFile("kept", "yes");
    await assert.rejects(ground.sandbox().createSession({ id }), (error: unknown) => error instanceof SandboxDockerCommandError && /in use/.test(error.message));
    assert.equal(await first.readTextFile("kept"), "yes");
    await first.destroy();
  });

  test("F4: a process that could not be started takes no slot", async () => {
    const one = await ground.session({ limits: { maxProcesses: 1 } });
    await assert.rejects(one.startProcess({ command: "sleep", args: ["600"], cwd: "missing" }), SandboxProcessError);
    await one.startProcess({ command: "sleep", args: ["600"] });
    await one.destroy();
  });

  test("F5: with a user, the workspace and what is written there are the user's", async () => {
    const user = await ground.session({ user: "1000" });
    await user.writeFile("sub/x", "mine");
    const { stdout } = await user.exec({ command: "sh", args: ["-c", "id -u; stat -c %u sub/x sub .; echo more >> sub/x; cat sub/x"] });
    assert.equal(stdout, "1000\n1000\n1000\n1000\nminemore\n");
    await user.writeFile("script", "#!/bin/sh\necho ran\n");
    await user.destroy();
  });

  test("F6: no file operation and no cwd goes through a link out of the workspace", async () => {
    await sh("ln -s /etc etcdir; ln -s / root; mkdir -p sub; ln -s sub fine");
    const operations = [
      () => session.readFile("etcdir/passwd"),
      () => session.writeFile("etcdir/new", "x"),
      () => session.writeFile("root/tmp/new", "x"),
      () => session.listFiles("etcdir"),
      () => session.readTextFilePage("etcdir/passwd"),
      () => session.exec({ command: "pwd", cwd: "etcdir" }),
      () => session.startProcess({ command: "pwd", cwd: "root/tmp" }),
    ];
    for (const operation of operations) await assert.rejects(operation(), SandboxPathError, operation.toString());
    assert.equal((await sh("ls /tmp/new /etc/new 2>/dev/null")).stdout, "");
    await session.writeFile("fine/x", "through a link that stays inside");
    assert.equal((await session.listFiles("sub"))[0]?.path, "sub/x");
  });

  test("F7: whatever a file is called, a listing has it once, and nothing else", async () => {
    const odd = ["x\nhere", "tab\there", "\u0001", " space ", "quo\"te'", "emoji 😀"];
    for (const name of odd) await session.writeFile(`odd/${name}`, "12");
    const listed = await session.listFiles("odd");
    assert.deepEqual(listed.map(({ path }) => path).sort(), odd.map((name) => `odd/${name}`).sort());
    assert.ok(listed.every(({ type, size }) => type === "file" && size === 2));
    const small = await ground.session({ limits: { maxOutputBytes: 10 } });
    await small.exec({ command: "sh", args: ["-c", "for n in $(seq 500); do : > file-$n; done"] });
    assert.equal((await small.listFiles()).length, 500);
    await small.destroy();
  });

  test("F8: pull never fetches nothing", async () => {
    // Nothing answers there: whoever asked it would say so.
    const image = "127.0.0.1:9/nobody/nothing:1";
    await assert.rejects(ground.sandbox({ image, pull: "never" }).createSession(), (error: unknown) => {
      assert.ok(error instanceof SandboxDockerCommandError);
      assert.doesNotMatch(error.message, /refused|dial|registry/);
      return true;
    });
  });

  test("F9: a deadline and an abort have codes of their own", async () => {
    assert.equal((await sh("sleep 60", { timeoutMs: 100 })).exitCode, 124);
    assert.equal((await sh("true", { signal: AbortSignal.abort() })).exitCode, 130);
    const abort = new AbortController();
    const aborted = sh("touch here; sleep 60", { signal: abort.signal });
    await until(async () => (await session.listFiles()).some(({ path }) => path === "here"));
    abort.abort();
    assert.equal((await aborted).exitCode, 130);
  });

  test("F10: a session's deadlines hold when the program that made it was killed", async () => {
    const id = freshId();
    const image = ground.isDocker ? 'image: "eyot-test-node:22",' : "";
    const script = `
      const { DockerSandbox } = await import("@eyot/client/anvia");
      const sandbox = new DockerSandbox({ provider: "${ground.provider}", ${image} eyot: { url: "${ground.url}" }, lifecycle: { ttlMs: 10_000 } });
      await sandbox.createSession({ id: "${id}" });
      console.log("made");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
    await until(async () => !(await ground.names()).includes(id));
  });

  test("F11: no file passes through a temporary file of this host", async () => {
    const folder = mkdtempSync(join(tmpdir(), "eyot-watched-"));
    const script = `
      const { DockerSandbox } = await import("@eyot/client/anvia");
      const { EyotClient } = await import("@eyot/client");
      const session = await new DockerSandbox({ ${ground.isDocker ? 'image: "eyot-test-node:22",' : ""} provider: "${ground.provider}", eyot: new EyotClient({ url: "${ground.url}" }) }).createSession();
      await session.writeFile("f", "text");
      console.log(await session.readTextFile("f"));
      await session.destroy();
      process.exit();`;
    // It could not even write one: its TMPDIR is not there.
    const env = { ...process.env, TMPDIR: join(folder, "missing") };
    assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", script], { env, encoding: "utf8" }), "text\n");
    assert.deepEqual([readdirSync(folder), existsSync(env.TMPDIR)], [[], false]);
    rmSync(folder, { recursive: true });
  });

  test("F12: rename, remove, stat and mkdir are there, by Eyot's own handle on the same sandbox", async () => {
    const own = await ground.client.get(session.id);
    await session.writeFile("from", "moved");
    await own.mkdir("made/deep", { recursive: true });
    await own.rename("from", "made/to");
    assert.equal((await own.stat("made/to")).size, 5);
    assert.equal(await session.readTextFile("made/to"), "moved");
    await own.remove("made", { recursive: true });
    assert.ok(!(await session.listFiles()).some(({ path }) => path === "made"));
  });
});
