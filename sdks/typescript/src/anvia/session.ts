/** A live session: the original's operations over one sandbox of Eyot's, with its hooks, limits and deadlines. */

import { EyotError } from "../error.js";
import type { DirEntry } from "../files.js";
import type { Sandbox } from "../sandbox.js";
import { Activity } from "./activity.js";
import { SandboxFileSizeError, SandboxSessionDestroyedError, SandboxTimeoutError } from "./errors.js";
import { type Listener, execute } from "./execution.js";
import { isGone, leadsOut, refused, sessionError } from "./failure.js";
import { Hooks } from "./hooks.js";
import type { SessionLimits } from "./options.js";
import { normalizeSandboxPath, parentSandboxPath } from "./paths.js";
import { Ports } from "./ports.js";
import { Processes } from "./processes.js";
import { EventQueue } from "./event_queue.js";
import { readPage } from "./page_reader.js";
import { textPageBounds } from "./text_page.js";
import type {
  DockerSandboxSession,
  SandboxExecOptions,
  SandboxExecResult,
  SandboxExecStreamEvent,
  SandboxFileEntry,
  SandboxHooks,
  SandboxProcess,
  SandboxProcessLogs,
  SandboxProcessLogsOptions,
  SandboxPublishedPort,
  SandboxStartProcessOptions,
  SandboxStopProcessOptions,
  SandboxTextFilePage,
  SandboxTextFilePageOptions,
  SandboxWaitForPortOptions,
} from "./types.js";

/** What a session is made of. */
export type SessionParts = {
  id: string;
  provider: string;
  sandbox: Sandbox;
  workdir: string;
  ports: Ports;
  limits: SessionLimits;
  deadlines: { ttlMs?: number; idleTimeoutMs?: number };
  hooks: SandboxHooks;
};

/** What `createSession` answers. */
export class Session implements DockerSandboxSession {
  readonly id: string;
  readonly provider: string;
  readonly workdir: string;
  readonly #sandbox: Sandbox;
  /** The same, beneath `workdir`. */
  readonly #workspace: Sandbox;
  readonly #ports: Ports;
  readonly #limits: SessionLimits;
  readonly #hooks: Hooks;
  readonly #processes: Processes;
  readonly #activity: Activity;
  #destroyed: Promise<void> | undefined;

  /** Its deadlines begin now. */
  constructor({ id, provider, sandbox, workdir, ports, limits, deadlines, hooks }: SessionParts) {
    this.id = id;
    this.provider = provider;
    this.workdir = workdir;
    this.#sandbox = sandbox;
    this.#workspace = sandbox.beneath(workdir);
    this.#ports = ports;
    this.#limits = limits;
    this.#hooks = new Hooks(hooks, { sessionId: id, provider, workdir });
    this.#processes = new Processes({ ...limits, sessionId: id, sandbox: this.#workspace, workdir, hooks: this.#hooks });
    this.#activity = new Activity(deadlines, () => void this.destroy().catch(() => {}));
  }

  get publishedPorts(): readonly SandboxPublishedPort[] {
    return this.#ports.published.map((port) => ({ ...port }));
  }

  exec(options: SandboxExecOptions): Promise<SandboxExecResult> {
    return this.#operate(() => this.#exec(options), options.cwd);
  }

  async *execStream(options: SandboxExecOptions): AsyncGenerator<SandboxExecStreamEvent, void> {
    const events = new EventQueue<SandboxExecStreamEvent>();
    const listener: Listener = (type, chunk, text) => events.put({ type, chunk, text });
    const done = this.#operate(() => this.#exec(options, listener), options.cwd).then(
      (result) => events.end({ type: "exit", result }),
      (error: unknown) => events.fail(error),
    );
    try {
      yield* events;
    } finally {
      // Leaving the loop early does not end the command: it is waited for, as the original does.
      await done;
    }
  }

  readFile(path: string): Promise<Uint8Array> {
    return this.#operate(() => this.#read(normalizeSandboxPath(path)), path);
  }

  async readTextFile(path: string): Promise<string> {
    return new TextDecoder().decode(await this.readFile(path));
  }

  readTextFilePage(path: string, options: SandboxTextFilePageOptions = {}): Promise<SandboxTextFilePage> {
    return this.#operate(async () => {
      const bounds = textPageBounds(options);
      const place = this.#absolute(normalizeSandboxPath(path));
      const message = `Unable to read sandbox text file: ${path}`;
      return await this.#explained(message, readPage(this.#workspace, place, bounds), NO_TEXT_FILE);
    }, path);
  }

  writeFile(path: string, data: string | Uint8Array): Promise<void> {
    return this.#operate(async () => {
      const normal = normalizeSandboxPath(path);
      const bytes = typeof data === "string" ? Buffer.from(data) : data;
      this.#checkSize(bytes.byteLength, path);
      await this.#write(normal, bytes);
      await this.#hooks.fileWrite(normal, bytes.byteLength);
    }, path);
  }

  writeTextFile(path: string, content: string): Promise<void> {
    return this.writeFile(path, content);
  }

  listFiles(path = "."): Promise<SandboxFileEntry[]> {
    return this.#operate(async () => {
      const directory = normalizeSandboxPath(path, { allowRoot: true });
      const entries = await this.#explained(`Unable to list sandbox path: ${path}`, this.#list(directory, path));
      return entries.map((entry) => fileEntry(directory, entry));
    }, path);
  }

  waitForPort(port: number, options: SandboxWaitForPortOptions = {}): Promise<SandboxPublishedPort> {
    return this.#operate(() => this.#ports.wait(port, options, this.#limits.timeoutMs));
  }

  startProcess(options: SandboxStartProcessOptions): Promise<SandboxProcess> {
    return this.#operate(() => this.#processes.start(options), options.cwd);
  }

  listProcesses(): Promise<SandboxProcess[]> {
    return this.#operate(() => Promise.resolve(this.#processes.list()));
  }

  readProcessLogs(processId: string, options: SandboxProcessLogsOptions = {}): Promise<SandboxProcessLogs> {
    return this.#operate(() => this.#processes.logs(processId, options));
  }

  stopProcess(processId: string, options: SandboxStopProcessOptions = {}): Promise<SandboxProcess> {
    return this.#operate(() => this.#processes.stop(processId, options));
  }

  async destroy(): Promise<void> {
    // What the hook throws, the first call throws; any other only waits.
    if (this.#destroyed !== undefined) return await this.#destroyed.catch(() => {});
    this.#destroyed = this.#destroy();
    await this.#destroyed;
  }

  /** What the manifest asks for: directories, then files. */
  async fill(directories: readonly string[] = [], files: Record<string, string | Uint8Array> = {}): Promise<void> {
    for (const directory of directories) await this.#operate(() => this.#makeDirectory(directory), directory);
    for (const [path, data] of Object.entries(files)) await this.writeFile(path, data);
  }

  /** Tells that the session is there. */
  async announce(): Promise<void> {
    await this.#hooks.sessionCreate();
  }

  /** Removes what a create that failed has made, and tells nobody. */
  async rollBack(): Promise<void> {
    this.#destroyed ??= Promise.resolve();
    await this.#remove(() => this.#sandbox.abandon());
  }

  async #destroy(): Promise<void> {
    await this.#remove(() => this.#sandbox.destroy());
    await this.#hooks.destroy();
  }

  async #remove(end: () => Promise<void>): Promise<void> {
    this.#activity.stop();
    await this.#processes.close();
    this.#ports.close();
    // As with the original, nobody is told when it can't be removed: its deadlines, where it has some, still hold.
    await end().catch(() => {});
  }

  async #operate<T>(operation: () => Promise<T>, path?: string): Promise<T> {
    if (this.#destroyed !== undefined) throw new SandboxSessionDestroyedError(this.id);
    const end = this.#activity.begin();
    try {
      return await operation();
    } catch (error) {
      throw sessionError(this.id, error, path);
    } finally {
      end();
    }
  }

  async #exec(options: SandboxExecOptions, listener?: Listener): Promise<SandboxExecResult> {
    await this.#hooks.execStart(options);
    if (options.command.trim() === "") throw refused("Sandbox command cannot be empty.");
    const { maxOutputBytes } = this.#limits;
    const timeoutMs = options.timeoutMs ?? this.#limits.timeoutMs;
    const cwd = options.cwd === undefined ? this.workdir : this.#absolute(normalizeSandboxPath(options.cwd, { allowRoot: true }));
    const result = await execute(this.#workspace, options, { cwd, timeoutMs, maxOutputBytes }, listener);
    await this.#hooks.execEnd(options, result);
    return result;
  }

  /** The size is asked for before: what is too large is not carried here. */
  async #read(path: string): Promise<Uint8Array> {
    const place = this.#absolute(path);
    const { maxFileBytes } = this.#limits;
    if (maxFileBytes === undefined) return await this.#workspace.readFile(place);
    const { size = 0 } = await this.#workspace.stat(place);
    this.#checkSize(size, path);
    const bytes = await this.#workspace.readFile(place, { limit: maxFileBytes + 1 });
    this.#checkSize(bytes.byteLength, path);
    return bytes;
  }

  async #list(directory: string, path: string): Promise<DirEntry[]> {
    const place = this.#absolute(directory);
    const signal = AbortSignal.timeout(this.#limits.timeoutMs);
    try {
      return await this.#workspace.list(place, { order: "directory", signal });
    } catch (error) {
      if (signal.aborted) throw new SandboxTimeoutError(`Listing files timed out for ${path}.`, { cause: error });
      const isFile = await this.#workspace.stat(place).then(({ isDirectory }) => !isDirectory, () => false);
      if (isFile) return [];
      throw error;
    }
  }

  /** A parent that can't be made is said apart, as the original makes it apart. */
  async #write(path: string, bytes: Uint8Array): Promise<void> {
    try {
      await this.#workspace.writeFile(this.#absolute(path), bytes);
    } catch (error) {
      if (!(error instanceof EyotError) || error.kind !== "not_directory") throw error;
      throw refused(`Unable to create sandbox directory: ${parentSandboxPath(path)}`, error);
    }
  }

  async #makeDirectory(path: string): Promise<void> {
    const place = this.#absolute(normalizeSandboxPath(path, { allowRoot: true }));
    const made = this.#workspace.mkdir(place, { recursive: true });
    await this.#explained(`Unable to create sandbox directory: ${path}`, made);
  }

  /** The promise, with this message where it is the path that is wrong. */
  async #explained<T>(message: string, promise: Promise<T>, exitCode?: number): Promise<T> {
    try {
      return await promise;
    } catch (error) {
      throw isGone(error) || leadsOut(error) || !isOfPath(error) ? error : refused(message, error, exitCode);
    }
  }

  #absolute(path: string): string {
    return path === "." ? this.workdir : `${this.workdir}/${path}`;
  }

  #checkSize(bytes: number, path: string): void {
    const { maxFileBytes } = this.#limits;
    if (maxFileBytes === undefined || bytes <= maxFileBytes) return;
    throw new SandboxFileSizeError(`Sandbox file exceeds maxFileBytes (${bytes} > ${maxFileBytes}): ${path}`);
  }
}

/** What the original's reader exits with for what is no text file. */
const NO_TEXT_FILE = 66;

const OF_A_PATH = new Set(["not_found", "already_exists", "not_directory", "is_directory", "invalid", "permission"]);

function isOfPath(error: unknown): boolean {
  return error instanceof Error && "kind" in error && OF_A_PATH.has(String(error.kind));
}

function fileEntry(directory: string, { name, fileType = "other", size }: DirEntry): SandboxFileEntry {
  const path = directory === "." ? name : `${directory.replace(/\/$/, "")}/${name}`;
  return { path, type: fileType, ...(size === undefined ? {} : { size }) };
}
