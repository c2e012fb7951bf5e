/** Managed processes (0.4): the server's started processes, with the original's ids, states and limits. */

import { randomUUID } from "node:crypto";
import { EyotError } from "../error.js";
import type { ExitStatus, ProcessInfo } from "../processes.js";
import type { Sandbox } from "../sandbox.js";
import { SandboxProcessError, SandboxTimeoutError } from "./errors.js";
import { isGone, leadsOut, sessionError } from "./failure.js";
import { isOfDirectory } from "./execution.js";
import type { Hooks } from "./hooks.js";
import { normalizeSandboxPath } from "./paths.js";
import type {
  SandboxExecResult,
  SandboxProcess,
  SandboxProcessLogs,
  SandboxProcessLogsOptions,
  SandboxStartProcessOptions,
  SandboxStopProcessOptions,
} from "./types.js";

const DEFAULT_GRACE_MS = 5_000;
const LAST_GRACE_MS = 1_000;
const SIGTERM = 15;

/** What processes need of their session. */
export type ProcessGround = {
  sessionId: string;
  /** Held beneath `workdir`. */
  sandbox: Sandbox;
  workdir: string;
  hooks: Hooks;
  maxProcesses: number;
  maxOutputBytes: number;
  /** How long a start may take. */
  timeoutMs: number;
};

/** One process that is known. */
type Known = {
  facts: SandboxProcess;
  /** The server's id of it. */
  serverId: string;
  isStopped: boolean;
  /** When it has ended and that was told. */
  ended: Promise<void>;
  /** When it has ended, told or not. */
  gone: Promise<void>;
};

/** The processes of one session. */
export class Processes {
  readonly #known = new Map<string, Known>();
  readonly #over = new AbortController();
  #starting = 0;

  constructor(private readonly ground: ProcessGround) {
    const { maxProcesses, maxOutputBytes, timeoutMs } = ground;
    if (!isWhole(maxProcesses)) throw new SandboxProcessError("Sandbox maxProcesses must be a non-negative integer.");
    if (!isWhole(maxOutputBytes)) throw new SandboxProcessError("Sandbox maxOutputBytes must be a non-negative integer.");
    if (!isWhole(timeoutMs) || timeoutMs === 0) {
      throw new SandboxProcessError("Sandbox process startup timeout must be a positive integer.");
    }
  }

  async start(options: SandboxStartProcessOptions): Promise<SandboxProcess> {
    const { command, args = [], cwd } = options;
    if (command.trim() === "") throw new SandboxProcessError("Sandbox process command cannot be empty.");
    const directory = cwd === undefined ? "." : normalizeSandboxPath(cwd, { allowRoot: true });
    this.#makeRoom();
    this.#starting += 1;
    try {
      const info = await this.#started(options, directory);
      const facts: SandboxProcess = {
        id: randomUUID(),
        command,
        args: [...args],
        ...(cwd === undefined ? {} : { cwd: directory }),
        status: "running",
        startedAt: new Date(info.startedMs).toISOString(),
      };
      const known = this.#remember(facts, info);
      await this.ground.hooks.execStart(facts);
      known.ended = this.#follow(known);
      // Whoever stops it is told what a hook threw.
      known.ended.catch(() => {});
      return { ...facts };
    } finally {
      this.#starting -= 1;
    }
  }

  list(): SandboxProcess[] {
    return [...this.#known.values()].map(({ facts }) => copy(facts));
  }

  async logs(id: string, options: SandboxProcessLogsOptions = {}): Promise<SandboxProcessLogs> {
    const known = this.#find(id);
    const tailBytes = options.tailBytes ?? this.ground.maxOutputBytes;
    if (!isWhole(tailBytes)) {
      throw new SandboxProcessError("Process tailBytes must be a non-negative integer.");
    }
    const most = Math.min(tailBytes, this.ground.maxOutputBytes);
    const [stdout, stderr] = await Promise.all([this.#tail(known, "stdout", most), this.#tail(known, "stderr", most)]);
    return {
      processId: id,
      stdout: stdout.text,
      stderr: stderr.text,
      stdoutTruncated: stdout.isTruncated,
      stderrTruncated: stderr.isTruncated,
    };
  }

  async stop(id: string, options: SandboxStopProcessOptions = {}): Promise<SandboxProcess> {
    const gracePeriodMs = options.gracePeriodMs ?? DEFAULT_GRACE_MS;
    if (!isWhole(gracePeriodMs)) {
      throw new SandboxProcessError("Process gracePeriodMs must be a non-negative integer.");
    }
    const known = this.#find(id);
    if (known.facts.status === "running") await this.#end(known, gracePeriodMs);
    return copy(known.facts);
  }

  /** Ends all of them, and looks after none any more. */
  async close(): Promise<void> {
    const running = [...this.#known.values()].filter(({ facts }) => facts.status === "running");
    await Promise.allSettled(running.map((known) => this.#end(known, LAST_GRACE_MS)));
    this.#over.abort();
  }

  #makeRoom(): void {
    const { maxProcesses } = this.ground;
    const finished = [...this.#known].filter(([, { facts }]) => facts.status !== "running").map(([id]) => id);
    while (this.#known.size + this.#starting >= maxProcesses && finished.length > 0) this.#known.delete(finished.shift() as string);
    const count = this.#known.size + this.#starting;
    if (count >= maxProcesses) throw new SandboxProcessError(`Sandbox process limit reached (${count} >= ${maxProcesses}).`);
  }

  async #started({ command, args = [], env }: SandboxStartProcessOptions, directory: string): Promise<ProcessInfo> {
    const { sandbox, workdir, sessionId } = this.ground;
    const where = { cwd: directory === "." ? workdir : `${workdir}/${directory}`, ...(env === undefined ? {} : { env }) };
    const starting = sandbox.start([command, ...args], where).catch((error: unknown) => {
      // The original's wrapper is a shell: what is missing runs, and ends with 127 (126 where it may not be run).
      if (!isNoProgram(error)) throw error;
      return sandbox.start(["sh", "-c", 'exec "$0" "$@"', command, ...args], where);
    });
    try {
      return await this.#inTime(starting);
    } catch (error) {
      throw startError(sessionId, error, directory);
    }
  }

  /** What starts too late is killed then: nobody knows it. */
  async #inTime(starting: Promise<ProcessInfo>): Promise<ProcessInfo> {
    const { sandbox, timeoutMs } = this.ground;
    const info = await within(timeoutMs, starting);
    if (info !== undefined) return info;
    starting.then(({ id }) => sandbox.kill(id)).catch(() => {});
    throw new SandboxTimeoutError("Starting sandbox process timed out.");
  }

  #remember(facts: SandboxProcess, info: ProcessInfo): Known {
    const gone = this.#watch(facts, info);
    const known: Known = { facts, serverId: info.id, isStopped: false, ended: gone, gone };
    this.#known.set(facts.id, known);
    return known;
  }

  /** Looks on until it has ended. That is no use of the sandbox. */
  async #watch(facts: SandboxProcess, info: ProcessInfo): Promise<void> {
    try {
      const ended = await this.ground.sandbox.wait(info.id, { observe: true, signal: this.#over.signal });
      if (ended.status === "running") return;
      facts.exitCode = exitCode(ended.status.ended);
      facts.endedAt = new Date(ended.endedMs ?? Date.now()).toISOString();
    } catch (error) {
      facts.exitCode = KILLED;
      facts.endedAt = new Date().toISOString();
      if (!isGone(error) && !this.#over.signal.aborted) facts.exitCode = LOST;
    }
    facts.status = this.#known.get(facts.id)?.isStopped ? "stopped" : "exited";
  }

  async #follow(known: Known): Promise<void> {
    await known.gone;
    if (this.#over.signal.aborted) return;
    await this.ground.hooks.execEnd(known.facts, await this.#result(known));
  }

  async #result(known: Known): Promise<SandboxExecResult> {
    const { facts, isStopped } = known;
    const logs = await this.logs(facts.id).catch(() => undefined);
    return {
      stdout: logs?.stdout ?? "",
      stderr: logs?.stderr ?? "",
      exitCode: facts.exitCode ?? LOST,
      durationMs: Date.parse(facts.endedAt ?? facts.startedAt) - Date.parse(facts.startedAt),
      timedOut: false,
      aborted: isStopped,
      stdoutTruncated: logs?.stdoutTruncated ?? false,
      stderrTruncated: logs?.stderrTruncated ?? false,
    };
  }

  /** TERM to its group, a grace, and then whatever is left of its tree is killed. */
  async #end(known: Known, gracePeriodMs: number): Promise<void> {
    const { sandbox } = this.ground;
    known.isStopped = true;
    await ignoringTheEnded(sandbox.kill(known.serverId, SIGTERM));
    await within(gracePeriodMs, known.gone);
    await ignoringTheEnded(sandbox.kill(known.serverId));
    await within(LAST_GRACE_MS, known.gone);
    await known.ended;
  }

  async #tail(known: Known, stream: "stdout" | "stderr", most: number): Promise<{ text: string; isTruncated: boolean }> {
    const pieces: Uint8Array[] = [];
    let begin: number | undefined;
    // Of nothing, too, it is to be said whether there was something.
    const tailBytes = Math.max(most, 1);
    for await (const piece of this.ground.sandbox.logs(known.serverId, { stream, tailBytes, limitBytes: tailBytes })) {
      begin ??= piece.streamOffset;
      pieces.push(piece.data);
    }
    if (most === 0) return { text: "", isTruncated: pieces.length > 0 };
    return { text: Buffer.concat(pieces).toString("utf8"), isTruncated: (begin ?? 0) > 0 };
  }

  #find(id: string): Known {
    const known = this.#known.get(id);
    if (known === undefined) throw new SandboxProcessError(`Unknown sandbox process: ${id}`);
    return known;
  }
}

function isWhole(value: number): boolean {
  return Number.isInteger(value) && value >= 0;
}

/** Killed with its sandbox. */
const KILLED = 137;
/** What became of it is not known: nobody can be asked. */
const LOST = 1;

function exitCode(status: ExitStatus): number {
  if (status === "out_of_memory") return KILLED;
  return "exited" in status ? status.exited : 128 + status.signaled;
}

function copy(facts: SandboxProcess): SandboxProcess {
  return { ...facts, args: [...facts.args] };
}

function isNoProgram(error: unknown): boolean {
  return error instanceof EyotError && (error.kind === "not_found" || error.kind === "permission") && !isGone(error) && !isOfDirectory(error);
}

function startError(sessionId: string, error: unknown, directory: string): unknown {
  if (!(error instanceof EyotError) || isGone(error) || error.kind === "unavailable" || leadsOut(error)) {
    return sessionError(sessionId, error, directory);
  }
  return new SandboxProcessError(`Sandbox process could not be started: ${error.message}`, { cause: error });
}

/** A process that ended meanwhile can't be killed any more, and need not be. */
async function ignoringTheEnded(kill: Promise<void>): Promise<void> {
  try {
    await kill;
  } catch (error) {
    if (!(error instanceof EyotError) || error.kind === "unavailable") throw error;
  }
}

/** What is promised, or `undefined` after so long. */
async function within<T>(ms: number, promised: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), ms)));
  try {
    return await Promise.race([promised, late]);
  } finally {
    clearTimeout(timer);
  }
}
