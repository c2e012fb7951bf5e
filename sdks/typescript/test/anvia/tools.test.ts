/** Rules 56 to 66 of the contract of `@anvia/sandbox`: a session as tools, tried on plain objects with a session's shape. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ZodError } from "zod";
import { SandboxToolPolicyError } from "../../dist/anvia/errors.js";
import { createSandboxTools } from "../../dist/anvia/tools/index.js";
import type { AnyTool, SandboxSession, SandboxToolName, SandboxToolsOptions } from "../../dist/anvia/types.js";
import { managedSession, plainSession } from "./plain_session.js";

/** The definitions of 0.6.0, as they were observed. */
const GOLDEN = JSON.parse(readFileSync(new URL("../../test/anvia/tools_0_6.json", import.meta.url), "utf8")) as { name: SandboxToolName }[];
const ALL = GOLDEN.map(({ name }) => name);
const DEFAULT = ALL.slice(0, 4);
const names = (tools: AnyTool[]): string[] => tools.map(({ name }) => name);

/** The one tool of that name. */
function one(session: SandboxSession, name: SandboxToolName, options: SandboxToolsOptions = {}): AnyTool {
  const [tool] = createSandboxTools(session, { ...options, allow: [name] });
  assert.ok(tool);
  return tool;
}

const policy = (message: string) => new SandboxToolPolicyError(message);

test("rule 56: by default there are the four tools of commands and files", () => {
  assert.deepEqual(names(createSandboxTools(plainSession().session)), ["exec_command", "read_file", "write_file", "list_files"]);
  assert.deepEqual(names(createSandboxTools(managedSession().session)), DEFAULT);
});

test("rule 56: allow and include choose, allow beats include, and nothing may be chosen", () => {
  const { session } = plainSession();
  assert.deepEqual(names(createSandboxTools(session, { include: ["read_file"] })), ["read_file"]);
  assert.deepEqual(names(createSandboxTools(session, { allow: ["list_files"], include: ["read_file"] })), ["list_files"]);
  assert.deepEqual(createSandboxTools(session, { allow: [] }), []);
});

test("rules 56 and 57: the order of the tools is fixed, whatever the caller's", () => {
  const tools = createSandboxTools(managedSession().session, { allow: [...ALL].reverse() });
  assert.deepEqual(names(tools), ALL);
  assert.deepEqual(names(createSandboxTools(managedSession().session, { include: ["write_file", "read_file", "read_file"] })), [
    "read_file",
    "write_file",
  ]);
});

test("rule 57: tools of processes are refused on a session that has none, when they are made", () => {
  for (const name of ["start_process", "list_processes", "read_process_logs", "stop_process"] as const) {
    assert.throws(() => one(plainSession().session, name), policy("The sandbox session does not support managed process tools."));
  }
});

test("rule 57: tools of ports are refused on a session that has none, when they are made", () => {
  for (const name of ["list_ports", "wait_for_port"] as const) {
    assert.throws(() => one(plainSession().session, name), policy("The sandbox session does not support published port tools."));
  }
});

test("rule 57: ports do without processes", () => {
  const { session } = managedSession();
  const ports = { ...plainSession().session, publishedPorts: session.publishedPorts, waitForPort: session.waitForPort };
  assert.deepEqual(names(createSandboxTools(ports, { allow: ["wait_for_port", "list_ports"] })), ["list_ports", "wait_for_port"]);
  assert.throws(() => one(ports, "list_processes"), SandboxToolPolicyError);
});

test("rule 58: a tool has a name, a definition and a call", async () => {
  const { session, calls } = plainSession();
  const tool = one(session, "write_file");
  assert.equal((await tool.definition()).name, "write_file");
  await tool.call({ path: "a", content: "b" }, { anything: "of the agent's" });
  assert.deepEqual(calls, [["writeTextFile", "a", "b"]]);
});

/** A tool as `@anvia/core` wants one, with its types. */
type Json = string | number | boolean | null | JsonObject | Json[];
type JsonObject = { [key: string]: Json | undefined };
type CoreTool = {
  readonly name: string;
  readonly approval?: unknown;
  definition(prompt: string): CoreDefinition | Promise<CoreDefinition>;
  call(args: unknown, context?: { emitStreamEvent?(event: object): void | Promise<void> }): unknown;
  parseApprovalArgs?(args: unknown): unknown;
};
type CoreDefinition = { name: string; description: string; parameters: JsonObject };

test("rule 58: an agent takes the tools as its own: JSON text goes in, what comes out can be JSON", async () => {
  const tools: CoreTool[] = createSandboxTools(plainSession({ text: "one\n" }).session);
  const [, readFile] = tools;
  assert.ok(readFile);
  const { parameters } = await readFile.definition("a prompt");
  assert.deepEqual(parameters["required"], ["path"]);
  const answer = await readFile.call(JSON.parse('{"path":"a"}'), {});
  assert.equal(JSON.parse(JSON.stringify(answer)).content, "one\n");
});

test("rule 58: arguments that do not fit are a ZodError, and nothing is done", async () => {
  const { session, calls } = managedSession();
  const misfits: [SandboxToolName, unknown][] = [
    ["exec_command", { command: "" }],
    ["exec_command", { command: "ls", args: "-l" }],
    ["exec_command", { command: "ls", timeoutMs: 300_001 }],
    ["exec_command", { command: "ls", timeoutMs: 0 }],
    ["exec_command", { command: "ls", timeoutMs: 1.5 }],
    ["read_file", { path: "" }],
    ["read_file", { path: "a", startLine: 0 }],
    ["read_file", { path: "a", lineCount: 10_001 }],
    ["write_file", { path: "a" }],
    ["list_files", { path: 1 }],
    ["list_files", undefined],
    ["start_process", { command: "x", env: { A: 1 } }],
    ["read_process_logs", { processId: "p1", tailBytes: -1 }],
    ["read_process_logs", { processId: "p1", tailBytes: 1_048_577 }],
    ["stop_process", { processId: "" }],
    ["wait_for_port", { containerPort: 65_536 }],
    ["wait_for_port", { containerPort: 3000, timeoutMs: 300_001 }],
  ];
  for (const [name, args] of misfits) {
    await assert.rejects(one(session, name).call(args), (error) => error instanceof ZodError, `${name} ${JSON.stringify(args)}`);
  }
  assert.deepEqual(calls, []);
});

test("rule 58: what is at the edge of the schema fits", async () => {
  const { session, calls } = managedSession();
  await one(session, "exec_command").call({ command: "x", timeoutMs: 300_000 });
  await one(session, "wait_for_port").call({ containerPort: 65_535, timeoutMs: 300_000 });
  await one(session, "read_process_logs", { process: { maxLogBytes: 1_048_576 } }).call({ processId: "p", tailBytes: 1_048_576 });
  await one(session, "read_file", { readFile: { maxLineCount: 10_000 } }).call({ path: "a", lineCount: 10_000 });
  assert.equal(calls.length, 4);
});

test("rule 58: keys that the schema does not know are dropped, though it forbids them", async () => {
  const { session, calls } = managedSession();
  await one(session, "exec_command").call({ command: "ls", shell: true });
  await one(session, "start_process").call({ command: "ls", user: "root" });
  await one(session, "list_processes").call({ all: true });
  assert.deepEqual(calls, [["exec", { command: "ls" }], ["startProcess", { command: "ls" }], ["listProcesses"]]);
});

test("rule 58: what the session throws, the call throws", async () => {
  const gone = new Error("gone");
  const session = { ...plainSession().session, exec: () => Promise.reject(gone), listFiles: () => Promise.reject(gone) };
  await assert.rejects(one(session, "exec_command").call({ command: "ls" }), gone);
  await assert.rejects(one(session, "list_files").call({}), gone);
});

test("rule 59: every tool knows its session, and does not show it", () => {
  const { session } = managedSession();
  const key = Symbol.for("anvia.sandbox.tool.metadata");
  for (const tool of createSandboxTools(session, { allow: ALL })) {
    const property = Object.getOwnPropertyDescriptor(tool, key);
    assert.deepEqual([property?.value.session === session, property?.enumerable], [true, false]);
    assert.deepEqual(Object.getOwnPropertySymbols({ ...tool }), []);
  }
});

test("rule 60: what the model is told is what 0.6 tells it, to the byte", async () => {
  const tools = createSandboxTools(managedSession().session, { allow: ALL });
  const definitions = await Promise.all(tools.map((tool) => tool.definition()));
  assert.deepEqual(definitions, GOLDEN);
  assert.equal(JSON.stringify(definitions), JSON.stringify(GOLDEN));
});

test("rule 60: read_file of the seed takes a path, and says that it reads a file", async () => {
  const definition = await one(plainSession().session, "read_file", { readFile: { mode: "text" } }).definition();
  assert.deepEqual(definition, {
    name: "read_file",
    description: "Read a text file from the sandbox workspace.",
    parameters: {
      type: "object",
      properties: { path: { type: "string", minLength: 1, description: "Relative file path inside the sandbox." } },
      required: ["path"],
      additionalProperties: false,
    },
  });
});

test("rule 61: exec_command passes on what it was given, and nothing else", async () => {
  const { session, calls } = plainSession();
  const asked = { command: "cat", args: ["-n"], cwd: "src", env: { A: "1" }, timeoutMs: 5, input: "hello" };
  await one(session, "exec_command").call(asked);
  await one(session, "exec_command").call({ command: "true" });
  assert.deepEqual(calls, [
    ["exec", asked],
    ["exec", { command: "true" }],
  ]);
});

test("rule 61: exec_command says how it ended, then what was written, then what is missing", async () => {
  const exec = { exitCode: 1, timedOut: true, aborted: true, stdout: " out \n\n", stderr: "err\t\n", stdoutTruncated: true };
  const said = await one(plainSession({ exec }).session, "exec_command").call({ command: "x" });
  assert.equal(said, "exit_code: 1\n\ntimed_out: true\n\naborted: true\n\nstdout:\n out\n\nstderr:\nerr\n\noutput_truncated: true");
});

test("rule 61: exec_command leaves out what there is nothing of", async () => {
  assert.equal(await one(plainSession().session, "exec_command").call({ command: "x" }), "exit_code: 0");
  const blank = plainSession({ exec: { stdout: "\n", exitCode: 3 } }).session;
  assert.equal(await one(blank, "exec_command").call({ command: "x" }), "exit_code: 3\n\nstdout:\n");
  const cut = plainSession({ exec: { stderrTruncated: true } }).session;
  assert.equal(await one(cut, "exec_command").call({ command: "x" }), "exit_code: 0\n\noutput_truncated: true");
});

test("rule 61: read_file answers with a page", async () => {
  assert.deepEqual(await one(plainSession({ text: "one\ntwo\n" }).session, "read_file").call({ path: "a", lineCount: 1 }), {
    content: "one\n",
    startLine: 1,
    endLine: 1,
    nextStartLine: 2,
    truncated: true,
    truncatedBy: "lines",
  });
});

test("rule 61: read_file cuts a page at maxBytes, and does not refuse the file", async () => {
  const { session } = plainSession({ text: "one\ntwo\n" });
  const page = await one(session, "read_file", { readFile: { maxBytes: 4 } }).call({ path: "a" });
  assert.deepEqual([page.content, page.truncatedBy], ["one\n", "bytes"]);
});

test("rule 61: read_file of the seed answers with the text, as large as maxBytes", async () => {
  const { session, calls } = plainSession({ text: "grüße" });
  assert.equal(await one(session, "read_file", { readFile: { mode: "text" } }).call({ path: "a" }), "grüße");
  assert.equal(await one(session, "read_file", { readFile: { mode: "text", maxBytes: 7 } }).call({ path: "a" }), "grüße");
  assert.deepEqual(calls[0], ["readTextFile", "a"]);
});

test("rule 61: read_file of the seed refuses a text of more than maxBytes", async () => {
  const tool = one(plainSession({ text: "grüße" }).session, "read_file", { readFile: { mode: "text", maxBytes: 6 } });
  await assert.rejects(tool.call({ path: "a" }), policy("File content exceeds sandbox tool policy."));
});

test("rule 61: write_file names the path as it was given", async () => {
  const { session, calls } = plainSession();
  assert.equal(await one(session, "write_file").call({ path: "./a//b.txt", content: "" }), "Wrote ./a//b.txt");
  assert.deepEqual(calls, [["writeTextFile", "./a//b.txt", ""]]);
});

test("rule 61: list_files is a line for each name, with its size where it has one", async () => {
  const { session, calls } = plainSession({
    entries: [
      { path: "b.txt", type: "file", size: 0 },
      { path: "a", type: "directory" },
      { path: "l", type: "symlink", size: 12 },
    ],
  });
  assert.equal(await one(session, "list_files").call({}), "file 0b\tb.txt\ndirectory\ta\nsymlink 12b\tl");
  await one(session, "list_files").call({ path: "a" });
  assert.deepEqual(calls, [
    ["listFiles", undefined],
    ["listFiles", "a"],
  ]);
});

test("rule 61: list_files of nothing says so", async () => {
  assert.equal(await one(plainSession().session, "list_files").call({}), "No files found.");
});

test("rule 61: list_ports is a line for each port, and says where there is none", async () => {
  const port = { containerPort: 8080, host: "127.0.0.1", hostPort: 40_000, protocol: "tcp" } as const;
  const first = { containerPort: 3000, host: "127.0.0.1", hostPort: 32_768, protocol: "tcp" } as const;
  const { session } = managedSession({ ports: [first, port] });
  assert.equal(await one(session, "list_ports").call({}), "3000/tcp\t127.0.0.1:32768\n8080/tcp\t127.0.0.1:40000");
  assert.equal(await one(managedSession({ ports: [] }).session, "list_ports").call({}), "No sandbox ports are published.");
});

const RUNNING_TEXT = "process_id: p1\nstatus: running\ncommand: node server.js --watch";

test("rule 61: start_process passes on what it was given, and says what runs", async () => {
  const { session, calls } = managedSession();
  const asked = { command: "node", args: ["server.js"], cwd: "site", env: { A: "1" } };
  assert.equal(await one(session, "start_process").call(asked), RUNNING_TEXT);
  assert.deepEqual(calls, [["startProcess", asked]]);
});

test("rule 61: list_processes has a blank line between two, and says where there is none", async () => {
  const ended = { id: "p2", command: "true", args: [], status: "exited", exitCode: 0, startedAt: "" } as const;
  const { session } = managedSession();
  const [running] = await session.listProcesses();
  assert.ok(running);
  const both = managedSession({ processes: [running, { ...ended, args: [] }] }).session;
  const expected = `${RUNNING_TEXT}\n\nprocess_id: p2\nstatus: exited\ncommand: true\nexit_code: 0`;
  assert.equal(await one(both, "list_processes").call({}), expected);
  assert.equal(await one(managedSession({ processes: [] }).session, "list_processes").call({}), "No managed processes.");
});

test("rule 61: read_process_logs says what was written and what is missing, or that nothing was", async () => {
  const { session } = managedSession({ logs: { stdout: "out\n", stderr: "err\n", stderrTruncated: true } });
  const said = await one(session, "read_process_logs").call({ processId: "p1" });
  assert.equal(said, "stdout:\nout\n\nstderr:\nerr\n\noutput_truncated: true");
  assert.equal(await one(managedSession().session, "read_process_logs").call({ processId: "p1" }), "No process output.");
});

test("rule 61: stop_process says with what it ended", async () => {
  const said = await one(managedSession().session, "stop_process").call({ processId: "p1" });
  assert.equal(said, "process_id: p1\nstatus: stopped\ncommand: node server.js --watch\nexit_code: 143");
});

test("rule 61: wait_for_port says where the port is reached", async () => {
  const said = await one(managedSession().session, "wait_for_port").call({ containerPort: 3000 });
  assert.equal(said, "ready: 3000/tcp -> 127.0.0.1:32768");
});

test("rule 62: a blocked command is refused, for running and for starting, and nothing is done", async () => {
  const { session, calls } = managedSession();
  for (const name of ["exec_command", "start_process"] as const) {
    const tool = one(session, name, { exec: { blockedCommands: ["rm"], allowedCommands: ["rm"] } });
    await assert.rejects(tool.call({ command: "rm" }), policy("Command is blocked by sandbox tool policy: rm"));
  }
  assert.deepEqual(calls, []);
});

test("rule 62: where some are allowed, another is refused, for running and for starting", async () => {
  const { session, calls } = managedSession();
  for (const name of ["exec_command", "start_process"] as const) {
    const tool = one(session, name, { exec: { allowedCommands: ["node"] } });
    await assert.rejects(tool.call({ command: "sh" }), policy("Command is not allowed by sandbox tool policy: sh"));
    await tool.call({ command: "node" });
    const none = one(session, name, { exec: { allowedCommands: [] } });
    await assert.rejects(none.call({ command: "node" }), policy("Command is not allowed by sandbox tool policy: node"));
  }
  assert.equal(calls.length, 2);
});

test("rule 62: commands are compared as they stand and by the file they lead to, and arguments not at all", async () => {
  const { session, calls } = plainSession();
  const allowing = one(session, "exec_command", { exec: { allowedCommands: ["node"] } });
  await assert.rejects(allowing.call({ command: "/usr/bin/node" }), SandboxToolPolicyError);
  const blocking = one(session, "exec_command", { exec: { blockedCommands: ["node"] } });
  await blocking.call({ command: "sh", args: ["-c", "node"] });
  assert.equal(calls.length, 1);
  for (const command of ["/usr/bin/node", "./node", "../usr//bin/node"]) {
    await assert.rejects(blocking.call({ command }), policy(`Command is blocked by sandbox tool policy: ${command}`));
  }
  assert.equal(calls.length, 1);
});

test("rule 62: with an allow list a call may not change what a name means, for running and for starting", async () => {
  const { session, calls } = managedSession();
  for (const name of ["exec_command", "start_process"] as const) {
    const tool = one(session, name, { exec: { allowedCommands: ["node", "./run"] } });
    const redirected = tool.call({ command: "node", env: { PATH: "/workspace" } });
    await assert.rejects(redirected, policy("Environment variable is not allowed by sandbox tool policy: PATH"));
    const elsewhere = tool.call({ command: "./run", cwd: "sub" });
    await assert.rejects(elsewhere, policy("Command is not allowed by sandbox tool policy: ./run"));
  }
  assert.deepEqual(calls, []);
});

test("rule 63: a deadline is the call's, else the policy's, else execTimeoutMs, else the session's", async () => {
  const { session, calls } = plainSession();
  const exec = { defaultTimeoutMs: 20 };
  await one(session, "exec_command", { exec, execTimeoutMs: 30 }).call({ command: "x", timeoutMs: 10 });
  await one(session, "exec_command", { exec, execTimeoutMs: 30 }).call({ command: "x" });
  await one(session, "exec_command", { execTimeoutMs: 30 }).call({ command: "x" });
  await one(session, "exec_command").call({ command: "x" });
  const deadlines = calls.map(([, asked]) => (asked as { timeoutMs?: number }).timeoutMs);
  assert.deepEqual(deadlines, [10, 20, 30, undefined]);
});

test("rule 63: a deadline over maxTimeoutMs is refused, whoever named it", async () => {
  const { session, calls } = plainSession();
  const refused = policy("Command timeout exceeds sandbox tool policy (1001 > 1000).");
  const max = { maxTimeoutMs: 1_000 };
  await assert.rejects(one(session, "exec_command", { exec: max }).call({ command: "x", timeoutMs: 1_001 }), refused);
  await assert.rejects(one(session, "exec_command", { exec: { ...max, defaultTimeoutMs: 1_001 } }).call({ command: "x" }), refused);
  await assert.rejects(one(session, "exec_command", { exec: max, execTimeoutMs: 1_001 }).call({ command: "x" }), refused);
  assert.deepEqual(calls, []);
  await one(session, "exec_command", { exec: max }).call({ command: "x", timeoutMs: 1_000 });
});

test("rule 63: the session's own deadline is not compared with maxTimeoutMs", async () => {
  const { session, calls } = plainSession();
  await one(session, "exec_command", { exec: { maxTimeoutMs: 1 } }).call({ command: "x" });
  assert.deepEqual(calls, [["exec", { command: "x" }]]);
});

test("rule 64: a content of more bytes than maxBytes is refused, and nothing is written", async () => {
  const { session, calls } = plainSession();
  const tool = one(session, "write_file", { writeFile: { maxBytes: 7 } });
  await assert.rejects(tool.call({ path: "a", content: "grüßen" }), policy("File content exceeds sandbox tool policy."));
  assert.deepEqual(calls, []);
  await tool.call({ path: "a", content: "grüße" });
  const none = one(session, "write_file", { writeFile: { maxBytes: 0 } });
  await assert.rejects(none.call({ path: "a", content: "x" }), SandboxToolPolicyError);
  await none.call({ path: "a", content: "" });
});

/** A session that reads pages itself, and notes which it was asked for. */
function pagingSession(): { session: SandboxSession; asked: unknown[][] } {
  const asked: unknown[][] = [];
  const page = { content: "", startLine: 1, endLine: null, nextStartLine: null, truncated: false, truncatedBy: null };
  const readTextFilePage = async (...args: unknown[]): Promise<typeof page> => {
    asked.push(args);
    return page;
  };
  return { session: Object.assign(plainSession().session, { readTextFilePage }), asked };
}

test("rule 65: a session that knows pages is asked for one: 500 lines from line 1, 65 536 bytes", async () => {
  const { session, asked } = pagingSession();
  await one(session, "read_file").call({ path: "a" });
  await one(session, "read_file").call({ path: "a", startLine: 7, lineCount: 2_000 });
  await one(session, "read_file", { readFile: { defaultLineCount: 3, maxLineCount: 4, maxBytes: 5 } }).call({ path: "a" });
  assert.deepEqual(asked, [
    ["a", { startLine: 1, lineCount: 500, maxBytes: 65_536 }],
    ["a", { startLine: 7, lineCount: 2_000, maxBytes: 65_536 }],
    ["a", { startLine: 1, lineCount: 3, maxBytes: 5 }],
  ]);
});

test("rule 65: a session that knows no pages is paged in memory, to the same", async () => {
  const { session, calls } = plainSession({ text: "x\n".repeat(3_000) });
  const page = await one(session, "read_file").call({ path: "a", startLine: 2_900 });
  assert.deepEqual([page.startLine, page.endLine, page.nextStartLine, page.truncated], [2_900, 3_000, null, false]);
  assert.deepEqual([(await one(session, "read_file").call({ path: "a" })).nextStartLine], [501]);
  assert.deepEqual(calls[0], ["readTextFile", "a"]);
});

test("rule 65: more lines than maxLineCount are refused, and nothing is read", async () => {
  const { session, calls } = plainSession();
  const refused = policy("File read line count exceeds sandbox tool policy (2001 > 2000).");
  await assert.rejects(one(session, "read_file").call({ path: "a", lineCount: 2_001 }), refused);
  assert.deepEqual(calls, []);
  await one(session, "read_file", { readFile: { maxLineCount: 10_000 } }).call({ path: "a", lineCount: 2_001 });
});

test("rule 65: limits that make no sense are refused when the tool is called, not before", async () => {
  const { session, calls } = plainSession();
  const senseless = [
    { defaultLineCount: 11, maxLineCount: 10 },
    { maxLineCount: 10_001 },
    { maxLineCount: 0 },
    { defaultLineCount: 1.5 },
    { maxBytes: 1_048_577 },
    { maxBytes: 0 },
  ];
  for (const readFile of senseless) {
    const tool = one(session, "read_file", { readFile });
    await assert.rejects(tool.call({ path: "a" }), SandboxToolPolicyError, JSON.stringify(readFile));
    await assert.rejects(tool.call({ path: "a", lineCount: 1 }), SandboxToolPolicyError, JSON.stringify(readFile));
  }
  assert.deepEqual(calls, []);
  await one(session, "read_file", { readFile: { defaultLineCount: 10_000, maxLineCount: 10_000, maxBytes: 1_048_576 } }).call({ path: "a" });
});

test("rule 65: a maxLineCount below 500 needs a default of its own", async () => {
  const { session, asked } = pagingSession();
  const tool = one(session, "read_file", { readFile: { maxLineCount: 100 } });
  await assert.rejects(tool.call({ path: "a" }), policy("File defaultLineCount exceeds maxLineCount (500 > 100)."));
  assert.deepEqual(asked, []);
});

test("rule 66: logs, waits and stops have the defaults of 0.4", async () => {
  const { session, calls } = managedSession();
  await one(session, "read_process_logs").call({ processId: "p" });
  await one(session, "wait_for_port").call({ containerPort: 3000 });
  await one(session, "stop_process").call({ processId: "p" });
  assert.deepEqual(calls, [
    ["readProcessLogs", "p", { tailBytes: 65_536 }],
    ["waitForPort", 3000, { timeoutMs: 30_000 }],
    ["stopProcess", "p", { gracePeriodMs: 5_000 }],
  ]);
});

test("rule 66: logs, waits and stops go by the policy", async () => {
  const { session, calls } = managedSession();
  const options = { process: { maxLogBytes: 10, defaultWaitTimeoutMs: 20, maxWaitTimeoutMs: 30, stopGracePeriodMs: 0 } };
  await one(session, "read_process_logs", options).call({ processId: "p" });
  await one(session, "read_process_logs", options).call({ processId: "p", tailBytes: 0 });
  await one(session, "wait_for_port", options).call({ containerPort: 3000 });
  await one(session, "wait_for_port", options).call({ containerPort: 3000, timeoutMs: 30 });
  await one(session, "stop_process", options).call({ processId: "p" });
  assert.deepEqual(calls, [
    ["readProcessLogs", "p", { tailBytes: 10 }],
    ["readProcessLogs", "p", { tailBytes: 0 }],
    ["waitForPort", 3000, { timeoutMs: 20 }],
    ["waitForPort", 3000, { timeoutMs: 30 }],
    ["stopProcess", "p", { gracePeriodMs: 0 }],
  ]);
});

test("rule 66: a call over the policy's limit is refused, with both figures", async () => {
  const { session, calls } = managedSession();
  const options = { process: { maxLogBytes: 128, maxWaitTimeoutMs: 1_000 } };
  await assert.rejects(
    one(session, "read_process_logs", options).call({ processId: "p", tailBytes: 129 }),
    policy("Process log request exceeds sandbox tool policy (129 > 128)."),
  );
  await assert.rejects(
    one(session, "wait_for_port", options).call({ containerPort: 3000, timeoutMs: 1_001 }),
    policy("Port wait timeout exceeds sandbox tool policy (1001 > 1000)."),
  );
  assert.deepEqual(calls, []);
});

test("rule 66: a process policy that makes no sense is refused when the tools are made", () => {
  const { session } = managedSession();
  const senseless: [NonNullable<SandboxToolsOptions["process"]>, string][] = [
    [{ maxLogBytes: 1_048_577 }, "Process maxLogBytes must be an integer from 0 to 1048576."],
    [{ maxLogBytes: -1 }, "Process maxLogBytes must be an integer from 0 to 1048576."],
    [{ maxWaitTimeoutMs: 300_001 }, "Process maxWaitTimeoutMs must be an integer from 1 to 300000."],
    [{ maxWaitTimeoutMs: 0 }, "Process maxWaitTimeoutMs must be an integer from 1 to 300000."],
    [
      { defaultWaitTimeoutMs: 11, maxWaitTimeoutMs: 10 },
      "Process defaultWaitTimeoutMs must be positive and no greater than maxWaitTimeoutMs.",
    ],
    [{ stopGracePeriodMs: 1.5 }, "Process stopGracePeriodMs must be a non-negative integer."],
  ];
  for (const [process, message] of senseless) {
    for (const name of ALL.slice(5)) assert.throws(() => one(session, name, { process }), policy(message), name);
    one(session, "exec_command", { process });
  }
  const largest = { maxLogBytes: 1_048_576, maxWaitTimeoutMs: 300_000, defaultWaitTimeoutMs: 300_000, stopGracePeriodMs: 0 };
  assert.equal(createSandboxTools(session, { allow: ALL, process: largest }).length, ALL.length);
});

test("rule 66: a maxWaitTimeoutMs below 30 000 is for calls that name a time, where no default is", async () => {
  const { session, calls } = managedSession();
  const tool = one(session, "wait_for_port", { process: { maxWaitTimeoutMs: 1_000 } });
  const refused = policy("Port wait timeout exceeds sandbox tool policy (30000 > 1000).");
  await assert.rejects(tool.call({ containerPort: 3000 }), refused);
  await tool.call({ containerPort: 3000, timeoutMs: 1_000 });
  assert.deepEqual(calls, [["waitForPort", 3000, { timeoutMs: 1_000 }]]);
});
