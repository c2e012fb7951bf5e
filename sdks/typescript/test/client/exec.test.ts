import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { EyotClient, EyotError, type ExecEvent, type Sandbox } from "@eyot/client";
import { type Ground, ground, lacks, until } from "../ground.js";

let here: Ground;
let client: EyotClient;
let sandbox: Sandbox;

before(async () => {
  here = await ground();
  client = new EyotClient({ url: here.socket, apiKey: here.key });
  sandbox = await client.create({ name: "exec" });
});
after(async () => {
  await client.close();
  await here.close();
});

/** How many processes of the sandbox have this text in their command line. */
async function running(text: string): Promise<number> {
  const { stdout } = await sandbox.exec(`cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c "[${text[0]}]${text.slice(1)}" || true`);
  return Number(stdout);
}

test("a command's output, its exit code and its streams are told apart", async () => {
  const result = await sandbox.exec("echo out; echo err >&2; exit 3");
  assert.deepEqual([result.stdout, result.stderr, result.exitCode, result.outcome], ["out\n", "err\n", 3, { exited: 3 }]);
  assert.equal(result.timedOut || result.aborted, false);
});

test("an argv is run without a shell", async () => {
  assert.equal((await sandbox.exec(["printf", "%s", "$HOME *"])).stdout, "$HOME *");
});

test("an option of another library is refused, not ignored", async () => {
  const refused = (work: Promise<unknown>, field: string, right: string) =>
    assert.rejects(work, (error: EyotError) => error.field === field && error.message.includes(right));
  const options: object = { timeout: 60 };
  await refused(sandbox.exec("true", options), "timeout", "use `timeoutMs`, in milliseconds");
  await refused(sandbox.execStream("true", options), "timeout", "use `timeoutMs`");
  await refused(sandbox.keep("true", options), "timeout", "use `timeoutMs`");
  await refused(sandbox.start("true", options), "timeout", "use `timeoutMs`");
  await refused(sandbox.exec("true", { envs: {} } as object), "envs", "use `env`");
});

test("cwd, env, stdin, user and the output's limit are honoured", async () => {
  await sandbox.mkdir("deep/er", { recursive: true });
  const result = await sandbox.exec('pwd; printf "%s\\n" "$TEXT"; cat; id -un', {
    cwd: "deep/er",
    env: { TEXT: "a 'b' \"c\" $d" },
    stdin: "input\n",
  });
  assert.equal(result.stdout, "/workspace/deep/er\na 'b' \"c\" $d\ninput\nuser\n");
  const bytes = await sandbox.exec("cat", { stdin: new Uint8Array([0, 200, 10]) });
  assert.deepEqual(bytes.stdoutBuffer, new Uint8Array([0, 200, 10]));
  const cut = await sandbox.exec("seq 1000", { maxOutputBytes: 10 });
  assert.deepEqual([cut.stdout.length, cut.stdoutTruncated, cut.stdoutBytes], [10, true, 3893]);
});

test("a deadline ends the whole tree with 124 and keeps what was written", async () => {
  const result = await sandbox.exec("echo first; setsid sleep 7771 & sleep 7771", { timeoutMs: 3_000 });
  assert.deepEqual([result.exitCode, result.timedOut, result.stdout], [124, true, "first\n"]);
  assert.match(result.stderr, /timed out after 3000 milliseconds/);
  assert.equal(await running("sleep 7771"), 0);
});

test("an abort kills the whole tree and keeps what was written", async () => {
  const abort = new AbortController();
  const done = sandbox.exec("echo first; touch begun; setsid sleep 7772 & sleep 7772", { signal: abort.signal });
  await until(() => sandbox.exists("begun"));
  abort.abort();
  const result = await done;
  assert.deepEqual([result.aborted, result.outcome, result.stdout], [true, "cancelled", "first\n"]);
  assert.equal(await running("sleep 7772"), 0);
});

test("a command whose signal was aborted before is never run", async () => {
  const { aborted, outcome, exitCode, ok, stdout } = await sandbox.exec("touch never", { signal: AbortSignal.abort() });
  assert.deepEqual([aborted, outcome, exitCode, ok, stdout], [true, "cancelled", 130, false, ""]);
  const refused = sandbox.execStream("touch never", { signal: AbortSignal.abort() });
  await assert.rejects(refused, (error: unknown) => error instanceof EyotError && error.kind === "cancelled" && error.name === "AbortError");
  assert.equal(await sandbox.exists("never"), false);
});

test("a signal that is not used changes nothing and leaves no listener", async () => {
  const abort = new AbortController();
  const result = await sandbox.exec("echo hi", { signal: abort.signal });
  assert.deepEqual([result.stdout, result.exitCode], ["hi\n", 0]);
  abort.abort();
});

test("commands at the same time do not wait for each other", async () => {
  const begun = Date.now();
  const results = await Promise.all(Array.from({ length: 8 }, (_, n) => sandbox.exec(`sleep 3; echo ${n}`)));
  assert.deepEqual(results.map(({ stdout }) => Number(stdout)), [0, 1, 2, 3, 4, 5, 6, 7]);
  // One after the other they would take 24 s.
  assert.ok(Date.now() - begun < 20_000);
});

test("a stream tells the output as it comes, takes input, and ends with the result", async () => {
  const stream = await sandbox.execStream("echo ready; cat; echo done >&2", { stdinFollows: true });
  const events: ExecEvent[] = [];
  let stdout = "";
  for await (const event of stream) {
    events.push(event);
    if (event.type !== "stdout") continue;
    stdout += Buffer.from(event.data).toString();
    if (stdout === "ready\n") await stream.write("hello\n");
    if (stdout === "ready\nhello\n") stream.end();
  }
  const last = events.at(-1);
  assert.ok(last?.type === "end");
  assert.deepEqual([last.result.stdout, last.result.stderr, last.result.exitCode], ["ready\nhello\n", "done\n", 0]);
});

test("input larger than the window arrives whole, and a command that reads none of it holds up only its input", async () => {
  const stream = await sandbox.execStream("wc -c", { stdinFollows: true });
  const result = stream.result();
  await stream.write(new Uint8Array(3_000_000));
  stream.end();
  assert.equal((await result).stdout.trim(), "3000000");
  const deaf = await sandbox.execStream("sleep 7773", { stdinFollows: true });
  const ended = deaf.result();
  const written = deaf.write(new Uint8Array(1_000_000));
  deaf.kill();
  assert.equal((await ended).aborted, true);
  await written;
});

test("input of any size arrives whole, with a signal and without, as text and as bytes", { timeout: 60_000 }, async () => {
  const count = async (stdin: string | Uint8Array, signal?: AbortSignal) => Number((await sandbox.exec("wc -c", { stdin, ...(signal ? { signal } : {}) })).stdout);
  const { signal } = new AbortController();
  assert.equal(await count(new Uint8Array(16_000_000)), 16_000_000);
  assert.equal(await count(new Uint8Array(5_000_000), signal), 5_000_000);
  // What JSON makes the most of.
  assert.equal(await count("\0".repeat(1_000_000), signal), 1_000_000);
  assert.equal(await count("ä".repeat(500_000)), 1_000_000);
});

test("a command that does not read its input ends all the same", { timeout: 60_000 }, async () => {
  for (const size of [500_000, 5_000_000]) {
    for (const signal of [undefined, new AbortController().signal]) {
      const result = await sandbox.exec("echo done", { stdin: new Uint8Array(size), signal });
      assert.deepEqual([result.stdout, result.exitCode], ["done\n", 0]);
    }
  }
  const both = await sandbox.execStream("cat", { stdin: new Uint8Array(5_000_000), stdinFollows: true });
  await assert.rejects(both.result(), (error: unknown) => error instanceof EyotError && error.field === "stdin_follows");
});

test("a slow reader of much output holds the command up and loses nothing", async () => {
  const stream = await sandbox.execStream("head -c 20000000 /dev/zero; touch written");
  let bytes = 0;
  for await (const event of stream) {
    if (event.type !== "stdout") continue;
    if (bytes === 0) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal(await sandbox.exists("written"), false);
    }
    bytes += event.data.length;
  }
  assert.equal(bytes, 20_000_000);
});

test("leaving a stream's loop kills the command", async () => {
  const stream = await sandbox.execStream("echo first; exec sleep 7774");
  for await (const event of stream) {
    assert.equal(event.type, "stdout");
    break;
  }
  await until(async () => (await running("sleep 7774")) === 0);
});

test("a signal is sent, and a terminal has its size", async (context) => {
  if (await lacks(context, client, "signals", "pty")) return;
  const trapped = await sandbox.execStream("trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.05; done");
  let text = "";
  for await (const event of trapped) {
    if (event.type === "stdout") text += Buffer.from(event.data).toString();
    if (text === "ready\n") trapped.signal(10);
    if (event.type === "end") assert.equal(event.result.exitCode, 7);
  }
  assert.match(text, /caught/);
  const terminal = await sandbox.execStream("stty size", { pty: { rows: 33, cols: 111 } });
  assert.equal((await terminal.result()).stdout.trim(), "33 111");
});

test("a stream of a command that can't be run is refused with its kind", async () => {
  const stream = await sandbox.execStream("true", { cwd: "/nowhere" });
  await assert.rejects(stream.result(), (error: unknown) => error instanceof EyotError);
  await assert.rejects(client.sandbox("nobody").execStream("true"), (error: unknown) => error instanceof EyotError && error.noSandbox);
});

test("a started process is listed, logged, waited for and killed", async () => {
  const started = await sandbox.start("echo one; echo two >&2; sleep 7775");
  assert.equal(started.status, "running");
  const followed = (async () => {
    let text = "";
    for await (const piece of sandbox.logs(started.id, { follow: true })) text += Buffer.from(piece.data).toString();
    return text;
  })();
  const waited = sandbox.wait(started.id);
  await until(async () => {
    for await (const piece of sandbox.logs(started.id, { stream: "stderr" })) return Buffer.from(piece.data).toString() === "two\n";
    return false;
  });
  assert.ok((await sandbox.processes()).some(({ id, status }) => id === started.id && status === "running"));
  await sandbox.kill(started.id);
  assert.deepEqual((await waited).status, { ended: { signaled: 9 } });
  assert.deepEqual((await followed).split("\n").sort(), ["", "one", "two"]);
  await assert.rejects(sandbox.wait("p999"), (error: unknown) => error instanceof EyotError && error.kind === "not_found");
});

test("a started process has input, a terminal and a deadline", async (context) => {
  if (await lacks(context, client, "pty")) return;
  const shown = async (id: string): Promise<string> => {
    let text = "";
    for await (const piece of sandbox.logs(id)) text += piece.text;
    return text;
  };
  const reader = await sandbox.start("cat; read line; echo got $line", { stdin: "one\n" });
  assert.deepEqual((await sandbox.wait(reader.id)).status, { ended: { exited: 0 } });
  assert.equal(await shown(reader.id), "one\ngot\n");
  await assert.rejects(sandbox.writeStdin(reader.id, "more", { end: true }), { kind: "conflict" });
  const typed = await sandbox.start("stty size; read line; echo got $line", { stdinFollows: true, pty: { rows: 7, cols: 33 } });
  await sandbox.writeStdin(typed.id, "typed\n");
  assert.equal((await sandbox.wait(typed.id)).timedOut, false);
  assert.match(await shown(typed.id), /7 33[^]*got typed/);
  const late = await sandbox.start("sleep 7777", { timeoutMs: 300 });
  assert.equal((await sandbox.wait(late.id)).timedOut, true);
});

test("a log and a watch in which nothing comes are timed out, and the loop's connection is let go of", async () => {
  const { id } = await sandbox.start("echo first; sleep 7778");
  let text = "";
  const reading = (async () => {
    for await (const piece of sandbox.logs(id, { follow: true, readTimeoutMs: 1_000 })) text += piece.text;
  })();
  await assert.rejects(reading, { kind: "timeout" });
  assert.equal(text, "first\n");
  const watching = await sandbox.watch(".", { readTimeoutMs: 300 });
  await assert.rejects(watching.next(), { kind: "timeout" });
  assert.deepEqual(await watching.next(), { done: true, value: undefined });
});

test("what is under way when the server dies ends as unavailable", async () => {
  const doomed = await ground();
  const lost = new EyotClient({ url: doomed.socket, apiKey: doomed.key });
  const its = await lost.create();
  const process = await its.start("sleep 7776");
  const following = (async () => {
    for await (const _ of its.logs(process.id, { follow: true })) continue;
  })();
  const calls = [its.exec("sleep 7776"), its.exec("sleep 7776", { signal: new AbortController().signal }), its.wait(process.id), following];
  const settled = Promise.allSettled(calls);
  await until(async () => (await its.exec("pgrep -c -x sleep")).stdout === "3\n");
  await doomed.crash();
  for (const outcome of await settled) {
    assert.ok(outcome.status === "rejected" && outcome.reason instanceof EyotError, String((outcome as { reason?: unknown }).reason));
    assert.equal(outcome.reason.kind, "unavailable");
  }
  await lost.close();
  await doomed.close();
});

test("output is told as it comes as text", async () => {
  const told = { out: "", err: "" };
  const command = "printf '\\303'; sleep 0.1; printf '\\274\\n'; cat >&2; printf '\\377'";
  const onStderr = async (text: string): Promise<void> => {
    told.err += text;
  };
  const result = await sandbox.exec(command, { stdin: "typed", onStdout: (text) => void (told.out += text), onStderr });
  assert.deepEqual([told, result.stdout, result.ok], [{ out: "ü\n\ufffd", err: "typed" }, told.out, true]);
  const enough = new Error("enough");
  const broken = sandbox.exec("echo once; sleep 60", { onStdout: () => Promise.reject(enough) });
  await assert.rejects(broken, enough);
});

test("a result that is checked is thrown where it failed", async () => {
  assert.equal((await sandbox.exec("echo fine")).check().stdout, "fine\n");
  const failed = await sandbox.exec("echo no luck >&2; exit 3");
  assert.throws(() => failed.check(), { kind: "command_failed", message: "the command exited with 3: no luck", result: failed });
  const late = await sandbox.exec("sleep 9", { timeoutMs: 50 });
  assert.throws(() => late.check(), /timed out/);
});

test("the result is there after the stream was read", async () => {
  const run = await sandbox.execStream("echo out; echo err >&2; exit 4");
  const seen: string[] = [];
  for await (const event of run) if (event.type === "stdout" || event.type === "stderr") seen.push(event.type + event.text);
  assert.deepEqual([seen.sort(), (await run.result()).exitCode], [["stderrerr\n", "stdoutout\n"], 4]);
  const missing = await sandbox.execStream(["no-such-program"]);
  await assert.rejects(missing.result(), { kind: "not_found" });
  await assert.rejects(missing.result(), { kind: "not_found" });
});

for (const [name, number] of [["TERM", 15], ["SIGTERM", 15], ["kill", 9], ["sigint", 2], ["15", 15]] as const) {
  test(`a signal may be named as on the command line: ${name}`, async (context) => {
    if (await lacks(context, client, "signals")) return;
    const { id } = await sandbox.start(["sleep", "600"]);
    await sandbox.kill(id, name);
    assert.deepEqual((await sandbox.wait(id)).status, { ended: { signaled: number } });
    const stream = await sandbox.execStream(["sleep", "600"]);
    stream.signal(name);
    assert.deepEqual((await stream.result()).outcome, { signaled: number });
  });
}
