/**
 * A program for `@anvia/sandbox`: nothing in it but its import says that it runs on Eyot. Each line that it prints names the rule
 * that it is about; `sample.test.ts` knows what they must be.
 */

import {
  DockerSandbox,
  SandboxDockerCommandError,
  SandboxFileSizeError,
  SandboxPathError,
  SandboxSessionDestroyedError,
  createSandboxTools,
  isSandboxPortSession,
  isSandboxProcessSession,
} from "@eyot/client/anvia";

const image = process.env["SAMPLE_IMAGE"];
const workspace = { mode: "persistent", id: process.argv[2] ?? "sample", destroyOnSessionDestroy: false } as const;
const say = (rule: string, ...facts: unknown[]): void => console.log(`rule ${rule}: ${facts.map((fact) => JSON.stringify(fact)).join(" ")}`);
const nameOf = (error: unknown): string => (error instanceof Error ? error.name : String(error));

const told: string[] = [];
const sandbox = new DockerSandbox({
  ...(image === undefined ? {} : { image }),
  pull: "never",
  network: true,
  limits: { timeoutMs: 20_000, maxOutputBytes: 65_536, maxFileBytes: 1000, maxProcesses: 2 },
  lifecycle: { ttlMs: 600_000, idleTimeoutMs: 300_000 },
  labels: { program: "sample" },
  hooks: {
    onSessionCreate: () => void told.push("create"),
    onExecStart: ({ command, args, cwd }) => void told.push(`start ${[command, ...args].join(" ")}${cwd === undefined ? "" : ` in ${cwd}`}`),
    onExecEnd: ({ result }) => void told.push(`end ${result.exitCode}`),
    onFileWrite: ({ path, size }) => void told.push(`file ${path} ${size}`),
    onDestroy: () => void told.push("destroy"),
  },
});

const session = await sandbox.createSession({
  workspace,
  ports: [8080],
  metadata: { run: "1" },
  manifest: { directories: ["out"], files: { "src/hello.js": "console.log('hello', process.env.WHO)\n" }, env: { WHO: "anvia" } },
});
try {
  say("2", session.workdir);
  say("14", (await session.listFiles()).map(({ path, type }) => `${type} ${path}`).sort());

  const hello = await session.exec({ command: "node", args: ["hello.js"], cwd: "src" });
  say("13", hello.stdout, hello.exitCode);
  const failed = await session.exec({ command: "sh", args: ["-c", "cat; echo problem >&2; exit 3"], input: "given" });
  say("18", failed.stdout, failed.stderr, failed.exitCode, failed.timedOut, failed.aborted);
  const late = await session.exec({ command: "sh", args: ["-c", "echo begun; sleep 60"], timeoutMs: 3_000 });
  say("22", late.stdout, late.timedOut, late.exitCode !== 0);
  const abort = new AbortController();
  const aborted = await session.exec({ command: "sh", args: ["-c", "echo begun; sleep 60"], signal: abort.signal, onStdout: () => abort.abort() });
  say("23", aborted.stdout, aborted.aborted);

  let text = "";
  const types: string[] = [];
  for await (const event of session.execStream({ command: "sh", args: ["-c", "for n in 1 2 3; do echo $n; done; echo e >&2"] })) {
    if (event.type !== types.at(-1)) types.push(event.type);
    if (event.type === "stdout") text += event.text;
    if (event.type === "exit") say("26", text === event.result.stdout, event.result.stdout, event.result.stderr, event.result.exitCode);
  }
  say("26", types.filter((type) => type !== "stderr"), types.includes("stderr"));

  await session.writeTextFile("out/text", "one\ntwo\nthree\n");
  say("30", await session.readTextFile("out/text"), (await session.readFile("out/text")).length);
  say("35", (await session.listFiles("out")).map(({ path, type, size }) => [path, type, size]));
  say("37", await session.readTextFilePage("out/text", { startLine: 2, lineCount: 1 }));
  say("32", await session.writeFile("large", "x".repeat(1001)).catch((error: unknown) => (error instanceof SandboxFileSizeError ? error.message : error)));
  say("27", await session.readFile("../etc/passwd").catch((error: unknown) => (error instanceof SandboxPathError ? error.message : error)));
  say("31", await session.readFile("missing").catch((error: unknown) => error instanceof SandboxDockerCommandError));

  const tools = createSandboxTools(session, {
    allow: ["exec_command", "read_file", "write_file", "list_files", "start_process", "stop_process"],
    exec: { allowedCommands: ["cat"] },
    readFile: { maxBytes: 100 },
  });
  say("56", tools.map(({ name }) => name));
  const call = async (name: string, args: object): Promise<unknown> => await tools.find((tool) => tool.name === name)?.call(args);
  say("61", await call("write_file", { path: "by/tool.txt", content: "from a tool\n" }));
  say("61", await call("exec_command", { command: "cat", args: ["by/tool.txt"] }));
  say("61", await call("read_file", { path: "by/tool.txt" }));
  say("61", await call("list_files", { path: "by" }));
  say("62", await call("exec_command", { command: "rm" }).catch((error: unknown) => (error as Error).message));

  say("55", isSandboxPortSession(session), isSandboxProcessSession(session));
  const server = "require('http').createServer((_, answer) => answer.end('served')).listen(8080, '0.0.0.0', () => console.log('up'))";
  const started = await session.startProcess({ command: "node", args: ["-e", server] });
  say("50", started.status, started.command);
  const port = await session.waitForPort(8080);
  say("48", port.containerPort, port.host, port.protocol);
  say("48", await (await fetch(`http://${port.host}:${port.hostPort}/`)).text());
  say("53", (await session.readProcessLogs(started.id)).stdout);
  say("54", (await session.stopProcess(started.id)).status, (await session.listProcesses()).map(({ status, exitCode }) => [status, exitCode]));
} finally {
  await session.destroy();
}
say("41", await session.readFile("out/text").catch((error: unknown) => error instanceof SandboxSessionDestroyedError && nameOf(error)));

const again = await sandbox.createSession({ workspace: { ...workspace, destroyOnSessionDestroy: true } });
say("16", await again.readTextFile("out/text"));
await again.destroy();
await again.destroy();
const last = await sandbox.createSession({ workspace: { ...workspace, destroyOnSessionDestroy: true } });
say("16", await last.listFiles());
await last.destroy();
for (const line of told) say("43", line.replace(/ -e .*/, ""));
