/** How sessions end, what they throw and what hooks are told: rules 40 to 45. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { type SandboxExecResult, SandboxSessionDestroyedError } from "@eyot/client/anvia";
import * as anvia from "@eyot/client/anvia";
import { until } from "../ground.js";
import { container, freshId, onEach, recorded } from "./ground.js";

type Log = [string, Record<string, unknown>][];

test("rule 45: every error is a SandboxError with its class's name, and the message of its class", () => {
  const cause = new Error("why");
  const errors: [Error, string, string][] = [
    [new anvia.SandboxDockerUnavailableError(undefined, { cause }), "SandboxDockerUnavailableError", "Docker CLI was not found."],
    [new anvia.SandboxSessionDestroyedError("s1", { cause }), "SandboxSessionDestroyedError", "Sandbox session s1 has been destroyed."],
    [new anvia.SandboxPathError("m", { cause }), "SandboxPathError", "m"],
    [new anvia.SandboxTimeoutError("m", { cause }), "SandboxTimeoutError", "m"],
    [new anvia.SandboxFileSizeError("m", { cause }), "SandboxFileSizeError", "m"],
    [new anvia.SandboxToolPolicyError("m", { cause }), "SandboxToolPolicyError", "m"],
    [new anvia.SandboxPortError("m", { cause }), "SandboxPortError", "m"],
    [new anvia.SandboxProcessError("m", { cause }), "SandboxProcessError", "m"],
    [new anvia.SandboxError("m", { cause }), "SandboxError", "m"],
  ];
  for (const [error, name, message] of errors) {
    assert.ok(error instanceof anvia.SandboxError);
    assert.deepEqual([error.name, error.message, error.cause], [name, message, cause]);
  }
});

onEach("lifecycle", (ground) => {
  test("rule 40: destroy may be called twice, also at once, and tells its hook once", async () => {
    const log: Log = [];
    const session = await ground.session({ hooks: recorded(log) });
    await Promise.all([session.destroy(), session.destroy()]);
    await session.destroy();
    assert.deepEqual(log.filter(([name]) => name === "destroy").length, 1);
  });

  test("rule 40: destroy stops processes before the hook, and the sandbox is gone by then", async () => {
    const log: Log = [];
    const id = freshId();
    let namesThen: string[] = [];
    const hooks = recorded(log);
    const session = await ground.session({
      hooks: {
        ...hooks,
        onDestroy: async (event) => {
          namesThen = await ground.names();
          await hooks.onDestroy?.(event);
        },
      },
    }, { id });
    await session.startProcess({ command: "sleep", args: ["600"] });
    log.length = 0;
    await session.destroy();
    assert.deepEqual(log.map(([name]) => name), ["end", "destroy"]);
    assert.ok(!namesThen.includes(id));
  });

  test("rule 41: whatever is asked of a destroyed session is refused, before its path is looked at", async () => {
    const session = await ground.session();
    await session.destroy();
    const message = `Sandbox session ${session.id} has been destroyed.`;
    const operations: Promise<unknown>[] = [
      session.exec({ command: "true", cwd: "/bad" }),
      session.execStream({ command: "true" })[Symbol.asyncIterator]().next(),
      session.readFile("../bad"),
      session.readTextFile("x"),
      session.readTextFilePage("x"),
      session.writeFile("", ""),
      session.writeTextFile("x", ""),
      session.listFiles("/"),
      session.waitForPort(80),
      session.startProcess({ command: "" }),
      session.listProcesses(),
      session.readProcessLogs("x"),
      session.stopProcess("x"),
    ];
    for (const operation of operations) {
      await assert.rejects(operation, (error: unknown) => error instanceof SandboxSessionDestroyedError && error.message === message);
    }
  });

  test("rule 41: a session whose sandbox somebody else has removed says the same", async () => {
    const id = freshId();
    const session = await ground.session({}, { id });
    await (await ground.client.get(id)).destroy();
    await assert.rejects(session.readFile("x"), SandboxSessionDestroyedError);
    await assert.rejects(session.exec({ command: "true" }), SandboxSessionDestroyedError);
    await session.destroy();
  });

  test("rule 42: the ttl ends a session while it works, and the command that ran resolves with 137", async () => {
    const log: Log = [];
    const destroyed = resolvers();
    const hooks = { ...recorded(log), onDestroy: () => destroyed.resolve() };
    const session = await ground.session({ lifecycle: { ttlMs: 8_000 }, hooks });
    const result = await session.exec({ command: "sh", args: ["-c", "echo first; exec sleep 600"] });
    assert.deepEqual([result.exitCode, result.stdout, result.timedOut], [137, "first\n", false]);
    await destroyed.promise;
    await assert.rejects(session.exec({ command: "true" }), SandboxSessionDestroyedError);
  });

  test("rule 42: an idle session ends, one that works does not", async () => {
    const destroyed = resolvers();
    const hooks = { onDestroy: () => destroyed.resolve() };
    const session = await ground.session({ lifecycle: { idleTimeoutMs: 1000 }, hooks });
    const result = await session.exec({ command: "sleep", args: ["2"] });
    assert.equal(result.exitCode, 0);
    // A process that runs is no activity.
    await session.startProcess({ command: "sleep", args: ["600"] });
    await destroyed.promise;
    await assert.rejects(session.exec({ command: "true" }), SandboxSessionDestroyedError);
  });

  test("rule 42: autoDestroy false switches both deadlines off", async () => {
    const session = await ground.session({ lifecycle: { ttlMs: 1, idleTimeoutMs: 1, autoDestroy: false } });
    assert.equal((await session.exec({ command: "sleep", args: ["0.3"] })).exitCode, 0);
    const info = await (await ground.client.get(session.id)).refresh();
    assert.deepEqual([info.expiresAt, info.idleTimeoutMs], [null, null]);
    await session.destroy();
  });

  test("rule 43: hooks are told in order, with everything that the original tells, and are waited for", async () => {
    const log: Log = [];
    const hooks = recorded(log);
    const slow = { ...hooks, onExecStart: async (event: object) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      log.push(["start", { ...event }]);
    } };
    const session = await ground.session({ hooks: slow });
    const of = { sessionId: session.id, provider: ground.provider, workdir: "/workspace" };
    await session.writeFile("d/f", "12");
    const result = await session.exec({ command: "cat", args: ["f"], cwd: "d" });
    await session.exec({ command: "true" });
    await session.destroy();
    const [create, file, start, end, bareStart, bareEnd, destroy, ...rest] = log;
    assert.deepEqual([create, destroy, rest], [["create", of], ["destroy", of], []]);
    assert.deepEqual(file, ["file", { ...of, path: "d/f", size: 2 }]);
    const run = { ...of, command: "cat", args: ["f"], cwd: "d" };
    assert.deepEqual([start, end], [["start", run], ["end", { ...run, result }]]);
    assert.deepEqual(bareStart, ["start", { ...of, command: "true", args: [] }]);
    assert.equal(bareEnd?.[0], "end");
  });

  test("rule 43: what a hook throws, the call throws", async () => {
    const own = new Error("mine");
    const fail = () => {
      throw own;
    };
    const session = await ground.session({ hooks: { onExecStart: fail, onFileWrite: () => Promise.reject(own), onDestroy: fail } });
    for (const call of [() => session.exec({ command: "true" }), () => session.writeFile("f", ""), () => session.destroy()]) {
      await assert.rejects(call, (error) => error === own);
    }
    // The file was written, and the sandbox is gone: the hook was only told.
    assert.ok(!(await ground.names()).includes(session.id));
  });

  test("rule 44: only commands that were asked for are told, streams and processes among them", async () => {
    const log: Log = [];
    const session = await ground.session({ hooks: recorded(log) });
    log.length = 0;
    await session.writeFile("deep/f", "x");
    await session.listFiles("deep");
    await session.readTextFilePage("deep/f");
    await session.readFile("deep/f");
    assert.deepEqual(log.map(([name]) => name), ["file"]);
    log.length = 0;
    for await (const _ of session.execStream({ command: "true" })) continue;
    assert.deepEqual(log.map(([name]) => name), ["start", "end"]);
    log.length = 0;
    await assert.rejects(session.startProcess({ command: "true", cwd: "missing" }));
    assert.equal(log.length, 0);
    await session.startProcess({ command: "sh", args: ["-c", "echo out; echo err >&2; exit 5"] });
    await until(async () => log.length === 2);
    assert.deepEqual(log.map(([name]) => name), ["start", "end"]);
    const { durationMs, ...result } = log[1]?.[1]["result"] as SandboxExecResult;
    const flags = { timedOut: false, aborted: false, stdoutTruncated: false, stderrTruncated: false };
    assert.deepEqual(result, { stdout: "out\n", stderr: "err\n", exitCode: 5, ...flags });
    const { id } = await session.startProcess({ command: "sleep", args: ["600"] });
    log.length = 0;
    await session.stopProcess(id);
    const stopped = log.find(([name]) => name === "end")?.[1]["result"] as SandboxExecResult;
    assert.deepEqual([stopped.aborted, stopped.timedOut, stopped.exitCode], [true, false, 143]);
    await session.destroy();
  });
});

onEach("a sandbox that does not answer", (ground) => {
  const skip = !ground.isDocker && "only an Engine can freeze one from outside";

  test("rules 35, 49 and 50: a listing, a port and a start that take too long are SandboxTimeoutError", { skip }, async () => {
    const session = await ground.session({ network: true, limits: { timeoutMs: 3_000, maxProcesses: 1 } }, { ports: [80] });
    const engine = (verb: string) => execFileSync("docker", [verb, container(session.id)["Id"] as string], { stdio: "ignore" });
    engine("pause");
    try {
      const operations = [
        [session.listFiles("."), "Listing files timed out for .."],
        [session.waitForPort(80), "Waiting for sandbox port 80/tcp timed out."],
        [session.startProcess({ command: "sleep", args: ["600"] }), "Starting sandbox process timed out."],
      ] as const;
      await Promise.all(operations.map(([operation, message]) =>
        assert.rejects(operation, (error: unknown) => error instanceof anvia.SandboxTimeoutError && error.message === message)));
    } finally {
      engine("unpause");
    }
    // What did start then was killed, and takes no place.
    await session.startProcess({ command: "true" });
    await until(async () => (await (await ground.client.get(session.id)).liveProcesses()).processes.every(({ command }) => !command.includes("sleep")));
    await session.destroy();
  });
});

/** As `Promise.withResolvers`, which Node 20 has not. */
function resolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
