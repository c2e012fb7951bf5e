/**
 * A session that is a plain object, as the contract allows any to be: it notes what it is asked, and answers what it is told to.
 * None of Eyot's own code is in it.
 */

import type {
  SandboxExecResult,
  SandboxFileEntry,
  SandboxPortSession,
  SandboxProcess,
  SandboxProcessLogs,
  SandboxProcessSession,
  SandboxPublishedPort,
  SandboxSession,
} from "../../dist/anvia/types.js";

/** What a session was asked, in order: the method, and its arguments. */
export type Calls = [method: string, ...args: unknown[]][];

/** What a plain session answers, where it is not what {@link plainSession} says. */
export type Answers = {
  exec?: Partial<SandboxExecResult>;
  text?: string;
  entries?: SandboxFileEntry[];
};

/** A session with the seed's methods, and nothing else. */
export function plainSession(answers: Answers = {}): { session: SandboxSession; calls: Calls } {
  const calls: Calls = [];
  const note =
    <T>(method: string, answer: T) =>
    async (...args: unknown[]): Promise<T> => {
      calls.push([method, ...args]);
      return answer;
    };
  const result = { ...EXITED, ...answers.exec };
  const text = answers.text ?? "one\ntwo\n";
  const session: SandboxSession = {
    id: "plain",
    provider: "plain",
    workdir: "/workspace",
    exec: note("exec", result),
    async *execStream() {
      yield { type: "exit", result };
    },
    readFile: note("readFile", new TextEncoder().encode(text)),
    readTextFile: note("readTextFile", text),
    writeFile: note("writeFile", undefined),
    writeTextFile: note("writeTextFile", undefined),
    listFiles: note("listFiles", answers.entries ?? []),
    destroy: note("destroy", undefined),
  };
  return { session, calls };
}

/** What a managed session answers, where it is not what {@link managedSession} says. */
export type ManagedAnswers = Answers & {
  ports?: SandboxPublishedPort[];
  process?: Partial<SandboxProcess>;
  processes?: SandboxProcess[];
  logs?: Partial<SandboxProcessLogs>;
};

/** One with ports and managed processes besides. */
export function managedSession(answers: ManagedAnswers = {}): { session: SandboxPortSession & SandboxProcessSession; calls: Calls } {
  const { session, calls } = plainSession(answers);
  const note =
    <T>(method: string, answer: T) =>
    async (...args: unknown[]): Promise<T> => {
      calls.push([method, ...args]);
      return answer;
    };
  const process: SandboxProcess = { ...RUNNING, ...answers.process };
  const managed = {
    ...session,
    publishedPorts: answers.ports ?? [PORT],
    waitForPort: note("waitForPort", PORT),
    startProcess: note("startProcess", process),
    listProcesses: note("listProcesses", answers.processes ?? [process]),
    readProcessLogs: note("readProcessLogs", { ...SILENT, ...answers.logs }),
    stopProcess: note("stopProcess", { ...process, status: "stopped" as const, exitCode: 143 }),
  };
  return { session: managed, calls };
}

const EXITED: SandboxExecResult = {
  stdout: "",
  stderr: "",
  exitCode: 0,
  durationMs: 1,
  timedOut: false,
  aborted: false,
  stdoutTruncated: false,
  stderrTruncated: false,
};

const PORT: SandboxPublishedPort = { containerPort: 3000, host: "127.0.0.1", hostPort: 32_768, protocol: "tcp" };

const RUNNING: SandboxProcess = {
  id: "p1",
  command: "node",
  args: ["server.js", "--watch"],
  status: "running",
  startedAt: "2026-07-15T00:00:00.000Z",
};

const SILENT: SandboxProcessLogs = { processId: "p1", stdout: "", stderr: "", stdoutTruncated: false, stderrTruncated: false };
