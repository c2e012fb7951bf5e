import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { EyotClient, EyotError } from "@eyot/client";
import { program, until } from "../ground.js";

const run = promisify(execFile);
const stateDir = mkdtempSync(join(tmpdir(), "eyot-ts-state-"));
// Other programs start servers, too: here are the folders of this one's.
process.env["TMPDIR"] = mkdtempSync(join(tmpdir(), "eyot-ts-tmp-"));
after(() => [stateDir, tmpdir()].forEach((folder) => rmSync(folder, { recursive: true, force: true })));

const folders = () => new Set(readdirSync(tmpdir()).filter((name) => /^eyot-[A-Za-z0-9]{6}$/.test(name)));

test("without a URL a server is started, used by all at once, and ended by close, which leaves nothing", async () => {
  const before = folders();
  const client = new EyotClient({ stateDir });
  const [one, two] = await Promise.all([client.create({ name: "one" }), client.create({ name: "two" })]);
  assert.equal((await one.exec("echo hi")).stdout, "hi\n");
  const added = [...folders()].filter((name) => !before.has(name));
  assert.equal(added.length, 1);
  await two.destroy();
  await one.destroy();
  await client.close();
  assert.deepEqual([...folders()].filter((name) => !before.has(name)), []);
});

test("the host's network is refused by a server that is started, unless its program lets specs use it", async () => {
  const spec = { network: "host" } as const;
  const held = new EyotClient({ stateDir, provider: "native" });
  await assert.rejects(held.create(spec), (error: unknown) => error instanceof EyotError && error.kind === "permission");
  await held.close();
  const open = new EyotClient({ stateDir, provider: "native", allowHostNetworks: true });
  const sandbox = await open.create(spec);
  assert.deepEqual([sandbox.info?.provider, sandbox.info?.isolation["network"]], ["native", "host"]);
  await sandbox.destroy();
  await open.close();
});

for (const [name, value, command] of [
  ["provider", "memory", "eyot --provider PROVIDER serve"],
  ["stateDir", "state", "eyot --state DIR serve"],
  ["allowHostNetworks", true, "eyot serve --allow-host-networks"],
  ["agentsDir", "agents", "eyot serve --agents DIR"],
  ["model", "ollama/qwen3", "eyot serve --model PROVIDER/MODEL"],
] as const) {
  test(`\`${name}\`, which only a server that is started has, is refused beside a URL`, () => {
    assert.throws(() => new EyotClient("http://team:7070", { [name]: value }), (error: unknown) => {
      assert.ok(error instanceof EyotError && error.kind === "invalid" && error.field === name);
      assert.equal(error.message, `\`${name}\` is for a server that the client starts, and this one is of http://team:7070`);
      assert.equal(error.hint, `start that server with it: \`${command}\`; or give no URL, and the client starts one`);
      return true;
    });
  });
}

test("an option of a server that is started is refused where the environment names one", (context) => {
  process.env["EYOT_SERVER"] = "http://team:7070";
  context.after(() => delete process.env["EYOT_SERVER"]);
  assert.throws(() => new EyotClient({ agentsDir: "agents" }), /and EYOT_SERVER names http:\/\/team:7070/);
  new EyotClient({ allowHostNetworks: false });
});

test("a relative source of a mount is of the working directory", async (context) => {
  const before = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), "mounted-"));
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, "note"), "of the host");
  await using client = new EyotClient({ stateDir });
  // The server began elsewhere.
  await client.version();
  process.chdir(folder);
  context.after(() => process.chdir(before));
  await using sandbox = await client.create({ mounts: [{ source: ".", target: "/mnt/host" }] });
  assert.equal(await sandbox.readText("/mnt/host/note"), "of the host");
  await assert.rejects(client.create({ mounts: [{ source: "nope", target: "/mnt/host" }] }), (error: unknown) => {
    assert.ok(error instanceof EyotError && error.kind === "invalid" && error.field === "mounts.source");
    assert.match(error.message, /`mounts.source` the folder `nope` of this host, from `.*`: ENOENT/);
    return true;
  });
});

test("a mount may be a text as for the command", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mounted:"));
  chmodSync(folder, 0o777);
  await using client = new EyotClient({ stateDir });
  await using sandbox = await client.create({ mounts: [`${folder}:/mnt/read`, `${folder}:/mnt/too:ro`, `${folder}:/mnt/write:rw`] });
  const { stdout } = await sandbox.exec("echo mine > /mnt/write/note; cat /mnt/read/note /mnt/too/note");
  assert.equal(stdout, "mine\nmine\n");
  assert.equal((await sandbox.exec("touch /mnt/read/x || touch /mnt/too/x")).ok, false);
});

test("a program that forgets to close its client still ends, and its server and its folder with it", async () => {
  const before = folders();
  const script = `
    import { EyotClient } from "@eyot/client";
    const client = new EyotClient({ stateDir: process.argv[1] });
    await client.version();
    const { execFileSync } = await import("node:child_process");
    console.log(execFileSync("pgrep", ["-P", String(process.pid), "-f", "serve"], { encoding: "utf8" }).trim());
  `;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script, stateDir], { timeout: 20_000 });
  const pid = Number(stdout.trim());
  assert.ok(pid > 0);
  await until(async () => !isAlive(pid));
  assert.deepEqual([...folders()].filter((name) => !before.has(name)), []);
});

test("a server ends with a program that is killed", async () => {
  const script = `
    import { EyotClient } from "@eyot/client";
    const client = new EyotClient({ stateDir: process.argv[1] });
    await client.version();
    const { execFileSync } = await import("node:child_process");
    console.log(execFileSync("pgrep", ["-P", String(process.pid), "-f", "serve"], { encoding: "utf8" }).trim());
    process.stdin.resume();
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script, stateDir], { stdio: ["pipe", "pipe", "inherit"] });
  const [said] = await once(child.stdout, "data");
  const pid = Number(String(said).trim());
  assert.ok(pid > 0);
  child.kill("SIGKILL");
  await until(async () => !isAlive(pid));
});

test("an interrupt of the terminal reaches the program and not its server, so that it can clean up", { timeout: 30_000 }, async () => {
  const script = `
    import { EyotClient } from "@eyot/client";
    const client = new EyotClient({ stateDir: process.argv[1] });
    const sandbox = await client.create({ name: "interrupted" });
    process.once("SIGINT", async () => {
      console.log((await sandbox.exec("echo still there")).stdout);
      await sandbox.destroy();
      await client.close();
      process.stdin.destroy();
    });
    console.log("ready");
    process.stdin.resume();
  `;
  // A group of its own, as a shell gives every job; the terminal interrupts the whole of it.
  const args = ["--input-type=module", "-e", script, stateDir];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const ended = once(child, "exit");
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  while (!said.includes("ready")) await once(child.stdout, "data");
  process.kill(-(child.pid as number), "SIGINT");
  assert.deepEqual([await ended, said], [[0, null], "ready\nstill there\n\n"]);
});

test("a server that does not come up is given up, with what it said, and leaves nothing", { timeout: 20_000 }, async (context) => {
  const before = folders();
  const folder = mkdtempSync(join(tmpdir(), "eyot-ts-slow-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const slow = join(folder, "eyot");
  writeFileSync(slow, `#!/bin/sh\necho "waiting for the moon" >&2\necho $$ > ${folder}/pid\nexec sleep 7779\n`, { mode: 0o755 });
  process.env["EYOT_BIN"] = slow;
  context.after(() => (process.env["EYOT_BIN"] = program0));
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const rejected = assert.rejects(new EyotClient({ stateDir }).version(), (error: unknown) => {
    assert.ok(error instanceof EyotError && error.kind === "unavailable");
    assert.match(error.message, /15 s.*waiting for the moon/);
    return true;
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  // The file is there before what is in it.
  const isTold = () => existsSync(join(folder, "pid")) && readFileSync(join(folder, "pid"), "utf8").endsWith("\n");
  while (!isTold()) await turn();
  // What was said before is in the pipe, and read within a turn.
  for (let n = 0; n < 3; n += 1) await turn();
  context.mock.timers.tick(15_000);
  await rejected;
  assert.equal(isAlive(Number(readFileSync(join(folder, "pid"), "utf8"))), false);
  assert.deepEqual([...folders()].filter((name) => !before.has(name)), []);
});

test("a server that ends on its way says why, also where that comes behind its exit", { timeout: 20_000 }, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "eyot-ts-ends-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const ends = join(folder, "eyot");
  // Until its parent has taken notice of the exit, the process is still there.
  const behind = "(while kill -0 $$ 2>/dev/null; do :; done; echo 'eyot: the state has moved' >&2) &";
  writeFileSync(ends, `#!/bin/sh\n${behind}\nexit 125\n`, { mode: 0o755 });
  process.env["EYOT_BIN"] = ends;
  context.after(() => (process.env["EYOT_BIN"] = program0));
  await assert.rejects(new EyotClient({ stateDir }).version(), /`: the state has moved$/);
});

test("what a server says at its end is the message and its hint", { timeout: 20_000 }, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "eyot-ts-ends-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const ends = join(folder, "eyot");
  process.env["EYOT_BIN"] = ends;
  context.after(() => (process.env["EYOT_BIN"] = program0));
  for (const [said, message, hint] of [
    ["no Docker Engine answers\nhint: start it", "no Docker Engine answers", "start it"],
    ["invalid value 'x'\n  [possible values: native, docker]\n\nFor more information, try '--help'.", "invalid value 'x'", "possible values: native, docker"],
    ["the state has moved", "the state has moved", undefined],
  ] as const) {
    writeFileSync(ends, `#!/bin/sh\ncat >&2 <<'END'\nserving soon\neyot: ${said}\nEND\nexit 125\n`, { mode: 0o755 });
    await assert.rejects(new EyotClient({ stateDir }).version(), (error: unknown) => {
      assert.ok(error instanceof EyotError && error.kind === "unavailable");
      assert.deepEqual([error.message, error.reason, error.hint], [`start a server with \`${ends}\`: ${message}`, message, hint]);
      return true;
    });
  }
});

test("a server of the client's own has no page for a port, and the error names forward", async () => {
  await using client = new EyotClient({ stateDir });
  await assert.rejects(client.sandbox("x").preview(8000), (error: unknown) => {
    assert.ok(error instanceof EyotError && error.kind === "unsupported", String(error));
    assert.match(error.message, /preview port 8000 of sandbox `x`: .*use forward\(8000\)/);
    assert.match(error.hint ?? "", /EYOT_SERVER/);
    return true;
  });
});

test("without a URL and without the program the error says what to do", async () => {
  const { EYOT_BIN, PATH } = process.env;
  delete process.env["EYOT_BIN"];
  process.env["PATH"] = "/nowhere";
  try {
    await assert.rejects(new EyotClient().version(), (error: unknown) => {
      assert.ok(error instanceof EyotError);
      assert.equal(error.kind, "unavailable");
      assert.match(error.hint ?? "", /EYOT_SERVER/);
      return true;
    });
  } finally {
    process.env["EYOT_BIN"] = EYOT_BIN ?? "";
    process.env["PATH"] = PATH ?? "";
  }
});

test("an error that nobody catches is printed with its hint behind the message", async () => {
  const script = 'import { EyotClient } from "@eyot/client"; await new EyotClient().version();';
  const env = { PATH: "/nowhere", HOME: tmpdir() };
  const failed = run(process.execPath, ["--input-type=module", "-e", script], { timeout: 20_000, env });
  await assert.rejects(failed, (error: { stderr: string }) => {
    assert.match(error.stderr, /EyotError: there is no server: no URL was given and `eyot` is not installed\nhint: set EYOT_SERVER to [^\n]+\n    at /);
    return true;
  });
});

test("a program that is no server is an error that says what it said", async () => {
  process.env["EYOT_BIN"] = "/bin/false";
  try {
    await assert.rejects(new EyotClient({ stateDir }).version(), (error: unknown) => error instanceof EyotError && error.kind === "unavailable");
  } finally {
    process.env["EYOT_BIN"] = program0;
  }
});

const program0 = program();

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
