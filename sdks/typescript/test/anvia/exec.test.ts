/** Commands: rules 17 to 26. */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import {
  type DockerSandboxSession,
  SandboxDockerCommandError,
  type SandboxExecStreamEvent,
  SandboxPathError,
} from "@eyot/client/anvia";
import { until } from "../ground.js";
import { onEach, recorded } from "./ground.js";

onEach("commands", (ground) => {
  let session: DockerSandboxSession;
  before(async () => {
    session = await ground.session({ limits: { maxOutputBytes: 1000 } });
  });
  const sh = (line: string, options = {}) => session.exec({ command: "sh", args: ["-c", line], ...options });

  test("rule 17: no shell reads a command's arguments, and without input it reads end of file", async () => {
    const { stdout } = await session.exec({ command: "printf", args: ["%s|", "$HOME", "a b", "*"] });
    assert.equal(stdout, "$HOME|a b|*|");
    assert.equal((await session.exec({ command: "cat" })).stdout, "");
    assert.equal((await session.exec({ command: "cat", input: "text\n" })).stdout, "text\n");
    assert.equal((await session.exec({ command: "wc", args: ["-c"], input: new Uint8Array([0, 255, 10]) })).stdout.trim(), "3");
  });

  test("rule 18: a result has exactly eight fields, and what a command exits with is no error", async () => {
    const result = await sh("echo out; echo err >&2; exit 3");
    assert.deepEqual(Object.keys(result).sort(), [
      "aborted",
      "durationMs",
      "exitCode",
      "stderr",
      "stderrTruncated",
      "stdout",
      "stdoutTruncated",
      "timedOut",
    ]);
    const { durationMs, ...facts } = result;
    assert.ok(durationMs >= 0);
    const flags = { timedOut: false, aborted: false, stdoutTruncated: false, stderrTruncated: false };
    assert.deepEqual(facts, { stdout: "out\n", stderr: "err\n", exitCode: 3, ...flags });
    assert.equal((await sh("kill -9 $$")).exitCode, 137);
  });

  test("rule 19: an empty command is refused after onExecStart, and onExecEnd is never told", async () => {
    const log: [string, Record<string, unknown>][] = [];
    const hooked = await ground.session({ hooks: recorded(log) });
    log.length = 0;
    for (const command of ["", "  \t"]) {
      await assert.rejects(hooked.exec({ command }), (error: unknown) => {
        assert.ok(error instanceof SandboxDockerCommandError);
        assert.deepEqual([error.message, error.result.exitCode], ["Sandbox command cannot be empty.", 1]);
        return true;
      });
    }
    await assert.rejects(hooked.exec({ command: "true", cwd: "../x" }), SandboxPathError);
    assert.deepEqual(log.map(([name]) => name), ["start", "start", "start"]);
    await hooked.destroy();
  });

  test("rule 20: cwd is relative to the workspace, and a missing one is a result with 126", async () => {
    await session.writeFile("deep/er/file", "");
    assert.equal((await session.exec({ command: "pwd", cwd: "deep/er" })).stdout, "/workspace/deep/er\n");
    assert.equal((await session.exec({ command: "pwd", cwd: "." })).stdout, "/workspace\n");
    for (const cwd of ["/tmp", "../..", "a/../../b"]) {
      await assert.rejects(session.exec({ command: "pwd", cwd }), SandboxPathError);
    }
    const missing = await session.exec({ command: "pwd", cwd: "missing" });
    assert.deepEqual([missing.exitCode, missing.stdout], [126, ""]);
    assert.match(missing.stderr, /working directory .*not found/);
  });

  test("rule 21: an unknown command is a result, with the shell's 127, and what may not be run with 126", async () => {
    assert.equal((await session.exec({ command: "no-such-program" })).exitCode, 127);
    await session.writeFile("data", "x");
    assert.equal((await session.exec({ command: "./data" })).exitCode, 126);
  });

  test("rule 22: a deadline is a result that keeps the output so far; 0 ends a command at once", async () => {
    const late = await sh("echo first; echo problem >&2; sleep 60", { timeoutMs: 3_000 });
    assert.deepEqual([late.timedOut, late.aborted, late.stdout, late.stderr], [true, false, "first\n", "problem\n"]);
    const atOnce = await sh("sleep 60", { timeoutMs: 0 });
    assert.equal(atOnce.timedOut, true);
    const limited = await ground.session({ limits: { timeoutMs: 300 } });
    assert.equal((await limited.exec({ command: "sleep", args: ["60"] })).timedOut, true);
    const longer = await limited.exec({ command: "sleep", args: ["0.5"], timeoutMs: 60_000 });
    assert.deepEqual([longer.timedOut, longer.exitCode], [false, 0]);
    await limited.destroy();
  });

  test("rule 23: an abort is a result, also one from before, and never thrown", async () => {
    const abort = new AbortController();
    const running = sh("echo first; touch begun; sleep 60", { signal: abort.signal });
    await until(async () => (await session.listFiles()).some(({ path }) => path === "begun"));
    abort.abort();
    const result = await running;
    assert.deepEqual([result.aborted, result.timedOut, result.stdout], [true, false, "first\n"]);
    assert.notEqual(result.exitCode, 0);
    const never = await sh("touch never", { signal: AbortSignal.abort() });
    assert.equal(never.aborted, true);
    assert.ok(!(await session.listFiles()).some(({ path }) => path === "never"));
  });

  test("rule 24: each stream is cut at exactly its limit, and the callbacks are told every byte", async () => {
    const exactly = await sh("head -c 1000 /dev/zero | tr '\\0' a");
    assert.deepEqual([exactly.stdout.length, exactly.stdoutTruncated], [1000, false]);
    const told = { stdout: 0, stderr: 0 };
    const beyond = await sh("head -c 1001 /dev/zero | tr '\\0' a; head -c 5000 /dev/zero | tr '\\0' b >&2", {
      onStdout: (chunk: Uint8Array) => (told.stdout += chunk.length),
      onStderr: (chunk: Uint8Array) => (told.stderr += chunk.length),
    });
    assert.deepEqual([beyond.stdout.length, beyond.stderr.length], [1000, 1000]);
    assert.deepEqual([beyond.stdoutTruncated, beyond.stderrTruncated], [true, true]);
    assert.deepEqual(told, { stdout: 1001, stderr: 5000 });
    const split = await session.exec({ command: "printf", args: [`${"a".repeat(999)}é`] });
    assert.deepEqual([split.stdout.slice(-2), split.stdoutTruncated], ["a\uFFFD", true]);
  });

  test("rule 25, mended: a child in the background that holds the output does not delay the result", async () => {
    const begun = performance.now();
    const result = await sh("sleep 30 & echo x");
    assert.deepEqual([result.stdout, result.exitCode], ["x\n", 0]);
    assert.ok(performance.now() - begun < 25_000);
  });

  test("rule 26: a stream tells the output as it comes and then one exit, with the same result", async () => {
    const events: SandboxExecStreamEvent[] = [];
    const ready = session.execStream({ command: "sh", args: ["-c", "printf ready; while [ ! -e go ]; do sleep 0.02; done; printf done >&2; exit 4"] });
    for await (const event of ready) {
      events.push(event);
      // It is told while the command waits for us.
      if (event.type === "stdout") await session.writeFile("go", "");
    }
    assert.deepEqual(events.map(({ type }) => type), ["stdout", "stderr", "exit"]);
    const [first, , last] = events;
    assert.ok(first?.type === "stdout" && last?.type === "exit");
    assert.deepEqual([Buffer.from(first.chunk).toString(), first.text], ["ready", "ready"]);
    assert.deepEqual([last.result.stdout, last.result.stderr, last.result.exitCode], ["ready", "done", 4]);
  });

  test("rule 26: an error comes behind the events that were there, and the command is ended", async () => {
    const own = new Error("mine");
    const onStdout = () => {
      throw own;
    };
    const told: string[] = [];
    const failing = session.execStream({ command: "sh", args: ["-c", "echo first; sleep 600"], onStdout });
    await assert.rejects(async () => {
      for await (const event of failing) told.push(event.type);
    }, (error) => error === own);
    assert.deepEqual(told, ["stdout"]);
  });

  test("rule 26: a stream throws what is wrong with the request, and a loop left early waits for the command", async () => {
    const wrong = session.execStream({ command: "true", cwd: "/" });
    await assert.rejects(async () => {
      for await (const _ of wrong) continue;
    }, SandboxPathError);
    for await (const event of session.execStream({ command: "sh", args: ["-c", "echo first; sleep 0.5; touch finished"] })) {
      assert.equal(event.type, "stdout");
      break;
    }
    assert.ok((await session.listFiles()).some(({ path }) => path === "finished"));
  });
});
