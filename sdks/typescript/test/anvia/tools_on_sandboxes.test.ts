/** The tools over real sessions, on docker and on native: what a model is answered when something really runs. */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import {
  type AnyTool,
  type DockerSandboxSession,
  SandboxPathError,
  SandboxSessionDestroyedError,
  type SandboxToolName,
  type SandboxToolsOptions,
  createSandboxTools,
} from "@eyot/client/anvia";
import { onEach } from "./ground.js";

const SERVER = `require("http").createServer((q, a) => a.end("hello")).listen(3000, "0.0.0.0", () => console.log("up"))`;
const ALL: SandboxToolName[] = [
  "exec_command",
  "read_file",
  "write_file",
  "list_files",
  "list_ports",
  "start_process",
  "list_processes",
  "read_process_logs",
  "stop_process",
  "wait_for_port",
];

onEach("the tools", (ground) => {
  let session: DockerSandboxSession;
  before(async () => {
    session = await ground.session({ network: true }, { ports: [3000], manifest: { env: { GREETING: "hi" } } });
  });

  const call = async (name: SandboxToolName, args: object, options: SandboxToolsOptions = {}): Promise<any> => {
    const tools: AnyTool[] = createSandboxTools(session, { ...options, allow: ALL });
    return tools.find((tool) => tool.name === name)?.call(args);
  };

  test("a command's code, output and input come back as text", async () => {
    const script = "read line; echo $line $GREETING $MORE; echo oops >&2; exit 3";
    const asked = { command: "sh", args: ["-c", script], env: { MORE: "there" }, input: "oh\n" };
    assert.equal(await call("exec_command", asked), "exit_code: 3\n\nstdout:\noh hi there\n\nstderr:\noops");
  });

  test("a deadline ends a command, and its output is kept", async () => {
    const asked = { command: "sh", args: ["-c", "echo begun; exec sleep 60"], timeoutMs: 3_000 };
    assert.match(await call("exec_command", asked), /^exit_code: \d+\n\ntimed_out: true\n\nstdout:\nbegun$/);
  });

  test("output past the limit is cut, and that is said", async () => {
    const said = await call("exec_command", { command: "sh", args: ["-c", "head -c 2000000 /dev/zero | tr '\\0' x"] });
    assert.match(said, /\n\noutput_truncated: true$/);
    assert.ok(said.length < 1_100_000 && said.length > 1_000_000);
  });

  test("a file is written, listed and read page by page", async () => {
    assert.equal(await call("write_file", { path: "deep/er/lines.txt", content: "one\ntwo\nthree" }), "Wrote deep/er/lines.txt");
    assert.equal(await call("list_files", { path: "deep/er" }), "file 13b\tdeep/er/lines.txt");
    const first = { content: "one\ntwo\n", startLine: 1, endLine: 2, nextStartLine: 3, truncated: true, truncatedBy: "lines" };
    assert.deepEqual(await call("read_file", { path: "deep/er/lines.txt", lineCount: 2 }), first);
    const rest = { content: "three", startLine: 3, endLine: 3, nextStartLine: null, truncated: false, truncatedBy: null };
    assert.deepEqual(await call("read_file", { path: "deep/er/lines.txt", startLine: 3 }), rest);
    assert.equal(await call("read_file", { path: "deep/er/lines.txt" }, { readFile: { mode: "text" } }), "one\ntwo\nthree");
    await session.exec({ command: "mkdir", args: ["none"] });
    assert.equal(await call("list_files", { path: "none" }), "No files found.");
  });

  test("a path that leads out is refused", async () => {
    await assert.rejects(call("read_file", { path: "../etc/passwd" }), SandboxPathError);
    await assert.rejects(call("write_file", { path: "/etc/x", content: "" }), SandboxPathError);
    await assert.rejects(call("list_files", { path: "" }), SandboxPathError);
  });

  test("a server is started, waited for, reached, read and stopped", async () => {
    const [port] = session.publishedPorts;
    assert.ok(port);
    assert.equal(await call("list_ports", {}), `3000/tcp\t127.0.0.1:${port.hostPort}`);
    assert.equal(await call("list_processes", {}), "No managed processes.");
    const started: string = await call("start_process", { command: "node", args: ["-e", SERVER] });
    const [, processId] = /^process_id: (\S+)\nstatus: running\ncommand: node -e /.exec(started) ?? [];
    assert.ok(processId, started);
    assert.equal(await call("wait_for_port", { containerPort: 3000 }), `ready: 3000/tcp -> 127.0.0.1:${port.hostPort}`);
    assert.equal(await (await fetch(`http://127.0.0.1:${port.hostPort}/`)).text(), "hello");
    assert.equal(await call("read_process_logs", { processId }), "stdout:\nup");
    assert.match(await call("list_processes", {}), new RegExp(`^process_id: ${processId}\nstatus: running\n`));
    assert.match(await call("stop_process", { processId }), /\nstatus: stopped\n[^]*\nexit_code: 143$/);
    assert.match(await call("list_processes", {}), /\nstatus: stopped\n/);
  });

  test("what the policy forbids is not run", async () => {
    await assert.rejects(call("exec_command", { command: "touch", args: ["forbidden"] }, { exec: { blockedCommands: ["touch"] } }));
    assert.doesNotMatch(await call("list_files", {}), /forbidden/);
  });

  test("the tools of a session that is gone say so", async () => {
    const gone = await ground.session();
    const [exec] = createSandboxTools(gone);
    await gone.destroy();
    await assert.rejects(exec!.call({ command: "true" }), SandboxSessionDestroyedError);
  });
});
