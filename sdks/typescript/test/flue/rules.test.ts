/**
 * What an adapter owes Flue, rule by rule, on the real runtime: 2.1.0, or 0.8.1 by `runtime_v1.ts`. The numbers are those
 * of the project's reference of Flue, §1.3.
 */

import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { after, before, test } from "node:test";
import * as flue from "@flue/runtime";
import { EyotClient, EyotError, type Sandbox } from "@eyot/client";
import { EyotDriver, type EyotFactory, eyot, eyotPool, nameOfId } from "@eyot/client/flue";
import { type Ground, ground, until } from "../ground.js";

const isV1 = !("sandboxFromDriver" in flue);
const onlyIn2 = { skip: isV1 ? "0.8 has other rules here" : false };
const onlyIn1 = { skip: isV1 ? false : "2.x has other rules here" };

type Env = Awaited<ReturnType<EyotFactory["createSandbox"]>>;

let here: Ground;
let client: EyotClient;
let sandbox: Sandbox;
let env: Env;

before(async () => {
  here = await ground();
  client = new EyotClient({ url: here.socket, apiKey: here.key });
  sandbox = await client.create({ name: "flue", env: { BASE: "base" } });
  env = await eyot(sandbox).createSandbox({ id: "any" });
});
after(async () => {
  await client.close();
  await here.close();
});

/** A deadline in the words of the runtime's generation. */
const deadline = (ms: number): object => (isV1 ? { timeout: ms / 1000 } : { timeoutMs: ms });

async function running(text: string): Promise<number> {
  const { stdout } = await sandbox.exec(`cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c "[${text[0]}]${text.slice(1)}" || true`);
  return Number(stdout);
}

/** A driver whose calls are written down. */
function observed(): { env: Promise<Env>; calls: string[] } {
  const calls: string[] = [];
  const driver = new EyotDriver(sandbox, "/workspace");
  const told = new Proxy(driver, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => {
        calls.push(`${String(name)} ${String(given[0])}`);
        return (value as (...given: unknown[]) => unknown).apply(target, given);
      };
    },
  });
  const wrap = isV1 ? flue.createSandboxSessionEnv : flue.sandboxFromDriver;
  return { env: Promise.resolve(wrap(told, "/workspace")), calls };
}

test("the runtime under test is the one that was asked for", () => {
  const asked = process.execArgv.some((argument) => argument.includes("runtime_v1")) || (process.env["NODE_OPTIONS"] ?? "").includes("runtime_v1");
  assert.equal(isV1, asked);
});

test("rules 1, 2: relative, dotted and climbing paths name the files that POSIX means", async () => {
  await env.writeFile("/workspace/rules/a.txt", "1");
  for (const path of ["rules/a.txt", "./rules//a.txt", "/workspace/x/../rules/a.txt", "/../workspace/rules/a.txt"]) {
    assert.equal(await env.readFile(path), "1", path);
  }
});

test("rule 3: two spellings of one path resolve to one string", () => {
  assert.equal(env.resolvePath("rules/../rules/a.txt"), env.resolvePath("/workspace/rules/a.txt"));
});

test("rule 4: the environment's cwd is the sandbox's working directory, and a command starts there", async () => {
  assert.equal(env.cwd, "/workspace");
  assert.equal((await env.exec("pwd")).stdout, "/workspace\n");
  const other = await eyot(sandbox, { cwd: "/tmp" }).createSandbox({ id: "any" });
  assert.equal(other.cwd, "/tmp");
  assert.equal((await other.exec("pwd")).stdout, "/tmp\n");
});

test("rule 5: a relative cwd of a command is resolved against the environment's, in 0.8 too", async () => {
  await env.mkdir("/tmp/inner", { recursive: true });
  const other = await eyot(sandbox, { cwd: "/tmp" }).createSandbox({ id: "any" });
  assert.equal((await other.exec("pwd", { cwd: "inner" })).stdout, "/tmp/inner\n");
  assert.equal((await other.exec("pwd", { cwd: ".." })).stdout, "/\n");
});

test("rule 8: a write that succeeds is one call of the driver", onlyIn2, async () => {
  const { env, calls } = observed();
  await (await env).writeFile("one/two/three.txt", "x");
  assert.deepEqual(calls, ["writeFile /workspace/one/two/three.txt"]);
});

test("rule 9: the error of a write that can't succeed is thrown", async () => {
  await env.writeFile("plain", "x");
  await assert.rejects(env.writeFile("plain/below", "y"), /plain\/below/);
  assert.equal(await env.readFile("plain"), "x");
});

test("rule 11: a signal that was aborted before never reaches the sandbox", async () => {
  const { env, calls } = observed();
  const reason = new Error("not today");
  await assert.rejects((await env).exec("touch never", { signal: AbortSignal.abort(reason) }), { name: "AbortError", message: "not today", cause: reason });
  assert.deepEqual(calls, []);
  assert.equal(await sandbox.exists("never"), false);
});

test("rules 12, 26: an abort is answered at once and really kills the whole tree", onlyIn2, async () => {
  const abort = new AbortController();
  const done = env.exec("touch begun2; setsid sleep 8881 & trap '' TERM; sleep 8881", { signal: abort.signal });
  await until(() => sandbox.exists("begun2"));
  const begun = performance.now();
  abort.abort(new Error("stop"));
  await assert.rejects(done, (error: unknown) => error instanceof Error && error.name === "AbortError" && error.message.startsWith("stop"));
  // That a kill is confirmed may take 5 s.
  assert.ok(performance.now() - begun < 4_000);
  await until(async () => (await running("sleep 8881")) === 0);
});

test("rules 13, 26: an abort is answered when the whole tree is dead", onlyIn1, async () => {
  const abort = new AbortController();
  const done = env.exec("touch begun1; setsid sleep 8882 & trap '' TERM; sleep 8882", { signal: abort.signal });
  await until(() => sandbox.exists("begun1"));
  abort.abort(new Error("stop"));
  await assert.rejects(done, { name: "AbortError", message: "stop" });
  assert.equal(await running("sleep 8882"), 0);
});

test("rule 14: what became of an aborted command is told once, with its output so far", onlyIn2, async () => {
  const told: { command: string; result?: { stdout: string; exitCode: number }; error?: unknown }[] = [];
  const observedEnv = await eyot(sandbox, { onOrphanSettled: (settlement) => told.push(settlement) }).createSandbox({ id: "any" });
  const abort = new AbortController();
  const done = observedEnv.exec("echo partial; touch begun3; sleep 8883", { signal: abort.signal });
  await until(() => sandbox.exists("begun3"));
  abort.abort();
  await assert.rejects(done, { name: "AbortError" });
  await until(async () => told.length > 0);
  assert.deepEqual(told.map(({ result, error }) => [result, error]), [[{ stdout: "partial\n", stderr: "", exitCode: 130 }, undefined]]);
});

test("rule 18: a command that fails resolves, and so does one that is not found", async () => {
  assert.deepEqual(await env.exec("echo no >&2; exit 9"), { stdout: "", stderr: "no\n", exitCode: 9 });
  assert.equal((await env.exec("no-such-program")).exitCode, 127);
  assert.equal((await env.exec("kill -9 $$")).exitCode, 137);
});

test("rule 19: a deadline of half a second is neither rounded down nor up to a whole one", async () => {
  const late = await env.exec("sleep 60", deadline(500));
  assert.equal(late.exitCode, 124);
  assert.match(late.stderr, /timed out after 500 milliseconds\.\n$/);
  assert.equal((await new EyotDriver(sandbox, "/").exec("sleep 5", { timeoutMs: 0.5 })).exitCode, 124);
});

test("rule 20: a passed deadline is exit code 124 with a sentence on stderr, and keeps the output", async () => {
  const result = await env.exec("echo partial; echo warn >&2; sleep 8884", deadline(3_000));
  assert.deepEqual([result.stdout, result.exitCode], ["partial\n", 124]);
  assert.match(result.stderr, /^warn\n\[eyot\] Command timed out after 3000 milliseconds\.\n$/);
  assert.equal(await running("sleep 8884"), 0);
});

test("rule 20: both generations' words for a deadline are understood, and milliseconds win", async () => {
  const driver = new EyotDriver(sandbox, "/");
  assert.equal((await driver.exec("sleep 5", { timeout: 0.2 })).exitCode, 124);
  assert.equal((await driver.exec("sleep 5", { timeoutMs: 200, timeout: 100 })).exitCode, 124);
});

test("rule 21: the two streams stay apart, and an empty one is empty", async () => {
  assert.deepEqual(await env.exec("printf out"), { stdout: "out", stderr: "", exitCode: 0 });
});

test("rule 22: no deadline is added: a command may take its time", async () => {
  assert.equal((await env.exec("sleep 1.2; echo done")).stdout, "done\n");
});

test("rule 23: variables are layered over the sandbox's, verbatim, for one call", async () => {
  const value = "it's \"quoted\"\n$HOME `id` \\ ü";
  assert.equal((await env.exec('printf "%s|%s" "$BASE" "$X"', { env: { X: value } })).stdout, `base|${value}`);
  assert.equal((await env.exec('printf "%s|%s" "$BASE" "$X"')).stdout, "base|");
});

test("rule 24: a command is bash", async () => {
  const { stdout } = await env.exec('set -o pipefail; a=(x y); [[ ${a[1]} == y* ]] && false | true; echo "$?"');
  assert.equal(stdout, "1\n");
});

test("rule 25: standard input is at its end", async () => {
  assert.deepEqual(await env.exec("cat"), { stdout: "", stderr: "", exitCode: 0 });
});

test("rule 27: commands at the same time are independent of each other", async () => {
  const results = await Promise.all([env.exec("sleep 0.3; echo a"), env.exec("exit 3"), env.exec("sleep 9", deadline(100)), env.exec("echo d")]);
  assert.deepEqual(results.map(({ stdout, exitCode }) => [stdout, exitCode]), [["a\n", 0], ["", 3], ["", 124], ["d\n", 0]]);
});

test("rule 28: a file is read as UTF-8, and a missing one or a directory is an error with its path", async () => {
  await env.writeFile("utf8", "\ufeffä\r\n");
  assert.equal(await env.readFile("utf8"), "\ufeffä\r\n");
  await assert.rejects(env.readFile("missing"), /\/workspace\/missing/);
  await assert.rejects(env.readFile("/tmp"), /\/tmp/);
});

test("rule 29: bytes come as a plain Uint8Array", async () => {
  await env.writeFile("bin", new Uint8Array([0, 254, 255]));
  const bytes = await env.readFileBuffer("bin");
  assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype);
  assert.deepEqual(bytes, new Uint8Array([0, 254, 255]));
});

test("rule 30: a write replaces the whole file, and of a view only its window is written", async () => {
  await env.writeFile("w", "a long content");
  await env.writeFile("w", new Uint8Array([1, 2, 3, 4]).subarray(1, 3));
  assert.deepEqual(await env.readFileBuffer("w"), new Uint8Array([2, 3]));
  await env.writeFile("w", "");
  assert.equal(await env.readFile("w"), "");
});

test("rule 31: stat describes a link's target, an empty file is a file, and missing or dangling throws", async () => {
  await env.exec("rm -rf st; mkdir st; printf 12345 > st/target; ln -s target st/link; ln -s st st-link; : > st/empty; ln -s no st/dangling");
  const link = await env.stat("st/link");
  assert.deepEqual([link.isFile, link.isDirectory, link.isSymbolicLink, link.size], [true, false, true, 5]);
  assert.ok(link.mtime instanceof Date && Math.abs(link.mtime.getTime() - Date.now()) < 60_000);
  assert.deepEqual([(await env.stat("st-link")).isDirectory, (await env.stat("st/empty")).isFile], [true, true]);
  await assert.rejects(env.stat("st/dangling"));
  await assert.rejects(env.stat("st/missing"));
});

test("rule 31: what the backend does not know of a file is absent, never made up", async () => {
  const bare = { stat: () => Promise.resolve({ isFile: true, isDirectory: false }) } as unknown as Sandbox;
  assert.deepEqual(Object.keys(await new EyotDriver(bare, "/").stat("/x")), ["isFile", "isDirectory"]);
});

test("rule 32: a directory's names are all there, and nothing else", async () => {
  await env.exec("rm -rf names; mkdir -p names/sub/deep; touch names/.dot $'names/two\\nlines' 'names/a b'");
  assert.deepEqual((await env.readdir("names")).sort(), [".dot", "a b", "sub", "two\nlines"]);
  await assert.rejects(env.readdir("names/a b"));
  await assert.rejects(env.readdir("names/missing"));
});

test("rule 33: exists is false for missing, below a file and dangling, and never throws", async () => {
  await env.exec("ln -sf nowhere dangling; touch afile");
  assert.deepEqual(await Promise.all(["afile", ".", "missing", "afile/below", "dangling"].map((path) => env.exists(path))), [true, true, false, false, false]);
});

test("rule 34: mkdir is mkdir, and with recursive mkdir -p", async () => {
  await env.rm("mk", { recursive: true, force: true });
  await assert.rejects(env.mkdir("mk/one"));
  await env.mkdir("mk/one/two", { recursive: true });
  await env.mkdir("mk/one/two", { recursive: true });
  await assert.rejects(env.mkdir("mk"));
  await env.writeFile("mk/file", "");
  await assert.rejects(env.mkdir("mk/file", { recursive: true }));
});

test("rule 35: rm is Node's fs.rm", async () => {
  await env.mkdir("rm/dir", { recursive: true });
  await assert.rejects(env.rm("rm/none"));
  await env.rm("rm/none", { force: true });
  await assert.rejects(env.rm("rm/none", { recursive: true }));
  await assert.rejects(env.rm("rm/dir"));
  await assert.rejects(env.rm("rm/dir", { force: true }));
  await env.rm("rm/dir", { recursive: true });
  assert.equal(await env.exists("rm/dir"), false);
});

test("rule 36: what the provider can't do is the runtime's own error with operation, provider and options", onlyIn2, async () => {
  const unsupported = { operation: "rm", provider: "eyot", options: ["force"] };
  const cant = { remove: () => Promise.reject(new EyotError("no", { kind: "unsupported", unsupported })) } as unknown as Sandbox;
  await assert.rejects(new EyotDriver(cant, "/").rm("/x", { force: true }), (error: unknown) => {
    assert.ok(error instanceof flue.SandboxOperationUnsupportedError);
    assert.match(error.message, /eyot does not support rm with "force"/);
    return true;
  });
});

test("rule 37: an error says in one sentence what was to be done, where, and why not", async () => {
  await assert.rejects(env.readFile("no/such"), { message: "read file `/workspace/no/such` in sandbox `flue`: does not exist" });
});

test("rule 38: one id has one sandbox, however often and from however many factories it is asked for at once", async () => {
  const factories = [eyotPool(client), eyotPool(client), eyotPool(client)];
  const envs = await Promise.all([...factories, ...factories].map((factory) => factory.createSandbox({ id: "Thread/42 ü" })));
  await envs[0]?.writeFile("mark", "same");
  assert.deepEqual(await Promise.all(envs.map((env) => env.readFile("mark"))), Array.from({ length: 6 }, () => "same"));
  const other = await eyotPool(client).createSandbox({ id: "thread/42 ü" });
  assert.equal(await other.exists("mark"), false);
});

test("rule 38: a sandbox that fell asleep is woken, and one that is gone is made anew", async () => {
  const factory = eyotPool(client, { spec: { env: { FROM: "spec" } } });
  await (await factory.createSandbox({ id: "again" })).writeFile("mark", "1");
  await client.sandbox("again").sleep();
  assert.equal(await (await factory.createSandbox({ id: "again" })).readFile("mark"), "1");
  await client.sandbox("again").destroy();
  const anew = await factory.createSandbox({ id: "again" });
  assert.equal(await anew.exists("mark"), false);
  assert.equal((await anew.exec("echo $FROM")).stdout, "spec\n");
});

test("rule 38: a factory does nothing before it is asked, and different ids have different names that a sandbox may have", () => {
  eyotPool(new EyotClient({ url: "unix:/nowhere" }));
  const ids = ["a", "A", "a b", "a-b", "x".repeat(41), "x".repeat(42), "x".repeat(43), "ü", "ö", "-a", "…", "a-", "a/b/c"];
  const names = ids.map(nameOfId);
  assert.equal(new Set(names).size, ids.length);
  for (const name of names) assert.match(name, /^[a-z0-9][a-z0-9-]{0,40}$/);
});

/** The number of requests that a call makes. */
async function requestsOf(call: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const begun = () => {
    count += 1;
  };
  subscribe("http.client.request.start", begun);
  try {
    await call();
  } finally {
    unsubscribe("http.client.request.start", begun);
  }
  return count;
}

test("rule 38: a warm id costs one request, as a command does", async () => {
  const factory = eyotPool(client);
  const env = await factory.createSandbox({ id: "warm" });
  assert.equal(await requestsOf(() => factory.createSandbox({ id: "warm" })), 1);
  assert.equal(await requestsOf(() => env.exec("true")), 1);
});

test("rule 39: a sandbox that can't be made is a rejection that says why", async () => {
  const factory = eyotPool(client, { spec: { limits: { memoryMib: 1 } } });
  await assert.rejects(factory.createSandbox({ id: "bad" }), /memory_mib/);
});

test("rule 40: a factory destroys nothing", async () => {
  const once = await client.create({ name: "kept" });
  await (await eyot(once).createSandbox({ id: "x" })).exec("touch mark");
  assert.equal(await client.sandbox("kept").exists("mark"), true);
  assert.deepEqual(Object.keys(eyot(once)).sort(), ["createSandbox", "createSessionEnv"]);
});

test("rule 41: what is under way when the sandbox dies ends at once, as the runtime's own SandboxDiedError", async () => {
  for (const end of ["destroy", "sleep"] as const) {
    const mortal = await client.create({});
    const its = await eyot(mortal).createSandbox({ id: "x" });
    const calls = [its.exec("sleep 8885"), its.exec("sleep 8885", { signal: new AbortController().signal })];
    const settled = Promise.allSettled(calls);
    await until(async () => (await mortal.exec("pgrep -c -x sleep")).stdout === "2\n");
    await mortal[end]();
    for (const outcome of await settled) {
      assert.equal(outcome.status, "rejected");
      assert.ok(outcome.reason instanceof (isV1 ? EyotError : flue.SandboxDiedError), String(outcome.reason));
    }
    await mortal.destroy();
  }
});

test("rule 41: a sandbox that is gone is dead for every call", async () => {
  const mortal = await client.create({});
  const its = await eyot(mortal).createSandbox({ id: "x" });
  await mortal.destroy();
  const calls = [its.readFile("a"), its.readFileBuffer("a"), its.writeFile("a", ""), its.stat("a"), its.readdir("."), its.mkdir("b"), its.rm("a"), its.exec("true")];
  for (const outcome of await Promise.allSettled(calls)) {
    assert.ok(outcome.status === "rejected" && outcome.reason instanceof (isV1 ? EyotError : flue.SandboxDiedError));
  }
});

test("rule 42: the adapter and the application have one copy of the runtime", () => {
  const url = import.meta.resolve("@flue/runtime");
  assert.equal(url.includes("flue-v1"), isV1);
});

test("an absolute cwd of createSessionEnv is honoured, and a relative one is left to the runtime that resolves it itself", async () => {
  const factory = eyot(sandbox);
  assert.equal((await factory.createSessionEnv({ id: "x", cwd: "/tmp" })).cwd, "/tmp");
  assert.equal((await factory.createSessionEnv({ id: "x", cwd: "sub" })).cwd, "/workspace");
  assert.equal((await factory.createSessionEnv({ id: "x" })).cwd, "/workspace");
});

test("a list of tools is passed on as it is", () => {
  const tools = () => [];
  assert.equal(eyot(sandbox, { tools }).tools, tools);
});

test("output beyond the limit is cut, and stderr says so", async () => {
  const small = await eyot(sandbox, { maxOutputBytes: 10 }).createSandbox({ id: "x" });
  const result = await small.exec("seq 1000");
  assert.equal(result.stdout, "1\n2\n3\n4\n5\n");
  assert.match(result.stderr, /^\[eyot\] Standard output was longer than what is kept: 3893 bytes/);
});

test("what the runtime's own tools ask of a sandbox works: rg, grep and find as they are spelt there", async () => {
  await env.writeFile("tools/a.ts", "needle (x)\n");
  const grep = await env.exec("grep -rnH -F --include='*.ts' -- 'needle (x)' '/workspace/tools'");
  assert.equal(grep.stdout, "/workspace/tools/a.ts:1:needle (x)\n");
  assert.equal((await env.exec("find '/workspace/tools' -type f -name '*.ts' 2>/dev/null | head -1000")).stdout, "/workspace/tools/a.ts\n");
});
