/** Managed processes: rules 50 to 54. */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type DockerSandboxSession, SandboxPathError, SandboxProcessError } from "@eyot/client/anvia";
import { until } from "../ground.js";
import { onEach } from "./ground.js";

onEach("processes", (ground) => {
  let session: DockerSandboxSession;
  before(async () => {
    session = await ground.session({ limits: { maxOutputBytes: 100 } });
  });
  const start = (line: string) => session.startProcess({ command: "sh", args: ["-c", line] });
  const found = async (id: string) => (await session.listProcesses()).find((process) => process.id === id);
  const ended = (id: string) => until(async () => (await found(id))?.status !== "running");
  /** How many processes have this text in their command line. */
  const running = async (text: string) => {
    const line = `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c "[${text[0]}]${text.slice(1)}" || true`;
    return Number((await session.exec({ command: "sh", args: ["-c", line] })).stdout);
  };

  test("rule 50: a started process runs, with a UUID, its command and when it began", async () => {
    await session.writeFile("d/f", "");
    const begun = Date.now();
    const process = await session.startProcess({ command: "sh", args: ["-c", "pwd; echo $OWN; sleep 600"], cwd: "d", env: { OWN: "x" } });
    const { id, startedAt, ...facts } = process;
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    assert.deepEqual(facts, { command: "sh", args: ["-c", "pwd; echo $OWN; sleep 600"], cwd: "d", status: "running" });
    assert.ok(Math.abs(Date.parse(startedAt) - begun) < 60_000 && startedAt.endsWith("Z"));
    await until(async () => (await session.readProcessLogs(id)).stdout === "/workspace/d\nx\n");
    await session.stopProcess(id);
  });

  test("rule 50: an empty command, a bad cwd and one that leads out are refused", async () => {
    await assert.rejects(session.startProcess({ command: " " }), { name: "SandboxProcessError", message: "Sandbox process command cannot be empty." });
    await assert.rejects(session.startProcess({ command: "true", cwd: "missing" }), SandboxProcessError);
    await assert.rejects(session.startProcess({ command: "true", cwd: ".." }), SandboxPathError);
  });

  test("rule 50: an unknown program runs, and ends with 127", async () => {
    const process = await session.startProcess({ command: "no-such-program", args: ["a b"] });
    assert.deepEqual([process.status, process.command, process.args], ["running", "no-such-program", ["a b"]]);
    await ended(process.id);
    assert.deepEqual([(await found(process.id))?.status, (await found(process.id))?.exitCode], ["exited", 127]);
    assert.match((await session.readProcessLogs(process.id)).stderr, /no-such-program.*not found/);
  });

  test("rule 51: four processes may be known at once, and those that ended make room", async () => {
    const four = await ground.session();
    const sleeping = { command: "sleep", args: ["600"] };
    const [first] = await Promise.all([1, 2, 3, 4].map(() => four.startProcess(sleeping)));
    const message = "Sandbox process limit reached (4 >= 4).";
    await assert.rejects(four.startProcess(sleeping), (error: unknown) => error instanceof SandboxProcessError && error.message === message);
    await four.stopProcess(first?.id ?? "");
    const fifth = await four.startProcess(sleeping);
    const known = await four.listProcesses();
    assert.deepEqual([known.length, known.at(-1)?.id], [4, fifth.id]);
    assert.ok(!known.some(({ id }) => id === first?.id));
    await four.destroy();
    const one = await ground.session({ limits: { maxProcesses: 1 } });
    await one.startProcess(sleeping);
    await assert.rejects(one.startProcess(sleeping), { message: "Sandbox process limit reached (1 >= 1)." });
    await one.destroy();
  });

  test("rule 52: a list has those that run and those that ended, with how and when", async () => {
    const [runs, exits] = [await start("sleep 600"), await start("exit 7")];
    await ended(exits.id);
    const [running, exited] = [await found(runs.id), await found(exits.id)];
    assert.deepEqual([running?.status, running?.exitCode, running?.endedAt], ["running", undefined, undefined]);
    assert.deepEqual([exited?.status, exited?.exitCode], ["exited", 7]);
    assert.ok(Date.parse(exited?.endedAt ?? "") >= Date.parse(exited?.startedAt ?? ""));
    await session.stopProcess(runs.id);
  });

  test("rule 53: logs are the end of each stream, and say what is not there", async () => {
    const { id } = await start("seq 100; printf problem >&2");
    await ended(id);
    const logs = await session.readProcessLogs(id);
    assert.equal(logs.processId, id);
    assert.deepEqual([logs.stdout.length, logs.stdout.slice(-4), logs.stdoutTruncated], [100, "100\n", true]);
    assert.deepEqual([logs.stderr, logs.stderrTruncated], ["problem", false]);
    const tail = await session.readProcessLogs(id, { tailBytes: 4 });
    assert.deepEqual([tail.stdout, tail.stderr, tail.stdoutTruncated, tail.stderrTruncated], ["100\n", "blem", true, true]);
    const edge = await session.readProcessLogs(id, { tailBytes: 7 });
    assert.deepEqual([edge.stderr, edge.stderrTruncated], ["problem", false]);
    const none = await session.readProcessLogs(id, { tailBytes: 0 });
    assert.deepEqual([none.stdout, none.stdoutTruncated, none.stderr, none.stderrTruncated], ["", true, "", true]);
    await assert.rejects(session.readProcessLogs(id, { tailBytes: -1 }), SandboxProcessError);
    await assert.rejects(session.readProcessLogs("x"), { name: "SandboxProcessError", message: "Unknown sandbox process: x" });
  });

  test("rule 54: TERM ends a process with its whole group, and a second stop changes nothing", async () => {
    const { id } = await start("sleep 7781 & sleep 7781");
    await until(async () => (await running("sleep 7781")) > 0);
    const stopped = await session.stopProcess(id);
    assert.deepEqual([stopped.status, stopped.exitCode], ["stopped", 143]);
    assert.equal(await running("sleep 7781"), 0);
    assert.deepEqual(await session.stopProcess(id), stopped);
    await assert.rejects(session.stopProcess("x"), { message: "Unknown sandbox process: x" });
    await assert.rejects(session.stopProcess(id, { gracePeriodMs: 0.5 }), SandboxProcessError);
    await assert.rejects(session.stopProcess(id, { gracePeriodMs: -1 }), SandboxProcessError);
  });

  test("rule 54: what ignores TERM is killed after the grace, with what it has started elsewhere", async () => {
    const { id } = await start("trap '' TERM; setsid sleep 7782 & echo ready; while :; do sleep 0.1; done");
    await until(async () => (await session.readProcessLogs(id)).stdout === "ready\n");
    const stopped = await session.stopProcess(id, { gracePeriodMs: 300 });
    assert.deepEqual([stopped.status, stopped.exitCode], ["stopped", 137]);
    assert.equal(await running("sleep 7782"), 0);
  });

  test("rule 54: a process that ends by itself on TERM keeps its own code", async () => {
    const { id } = await start("trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done");
    await until(async () => (await session.readProcessLogs(id)).stdout === "ready\n");
    const stopped = await session.stopProcess(id);
    assert.deepEqual([stopped.status, stopped.exitCode], ["stopped", 9]);
  });
});
