/**
 * The nine methods that Flue asks of a backend, over a sandbox. Flue's wrapper resolves paths and answers aborts; this only
 * passes on, and makes no liveness polls: the server ends what is under way when a sandbox goes.
 */

import type { SandboxApi } from "@flue/runtime";
import type { ExecResult } from "../exec.js";
import type { Sandbox } from "../sandbox.js";
import { flueError } from "./runtime.js";

/** How a driver runs commands. */
export interface DriverOptions {
  /** How many bytes of each stream of a command are kept; by default 16 MiB. What is cut is said on standard error. */
  maxOutputBytes?: number;
}

/** What Flue asks for with a command: a deadline in milliseconds, or before 0.9 in seconds. */
interface FlueExecOptions {
  cwd?: string;
  env?: Record<string, string>;
  timeoutMs?: number;
  timeout?: number;
  signal?: AbortSignal;
}

interface ShellResult {
  stdout: string;
  stderr: string;
  exitCode: number;
}

type FileStat = Awaited<ReturnType<SandboxApi["stat"]>>;

const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** A sandbox as Flue drives it. */
export class EyotDriver implements SandboxApi {
  constructor(
    /** Eyot's own handle, for what Flue has no words for. */
    readonly sandbox: Sandbox,
    private readonly cwd: string,
    private readonly options: DriverOptions = {},
  ) {}

  readFile(path: string): Promise<string> {
    return this.#say("readFile", this.sandbox.readText(path));
  }

  readFileBuffer(path: string): Promise<Uint8Array> {
    return this.#say("readFileBuffer", this.sandbox.readFile(path));
  }

  writeFile(path: string, content: string | Uint8Array): Promise<void> {
    return this.#say("writeFile", this.sandbox.writeFile(path, content));
  }

  async stat(path: string): Promise<FileStat> {
    const { isFile, isDirectory, isSymbolicLink, size, modifiedMs } = await this.#say("stat", this.sandbox.stat(path));
    return {
      isFile,
      isDirectory,
      ...(isSymbolicLink === undefined ? {} : { isSymbolicLink }),
      ...(size === undefined ? {} : { size }),
      ...(modifiedMs === undefined ? {} : { mtime: new Date(modifiedMs) }),
    };
  }

  async readdir(path: string): Promise<string[]> {
    return (await this.#say("readdir", this.sandbox.list(path))).map(({ name }) => name);
  }

  exists(path: string): Promise<boolean> {
    return this.#say("exists", this.sandbox.exists(path));
  }

  mkdir(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    return this.#say("mkdir", this.sandbox.mkdir(path, options));
  }

  rm(path: string, options: { recursive?: boolean; force?: boolean } = {}): Promise<void> {
    return this.#say("rm", this.sandbox.remove(path, options));
  }

  async exec(command: string, options: FlueExecOptions = {}): Promise<ShellResult> {
    const { cwd, env, timeoutMs, timeout, signal } = options;
    const deadlineMs = timeoutMs ?? (timeout === undefined ? undefined : timeout * 1000);
    const asked = {
      cwd: this.#resolved(cwd),
      maxOutputBytes: this.options.maxOutputBytes ?? MAX_OUTPUT_BYTES,
      signal,
      ...(env === undefined ? {} : { env }),
      ...(deadlineMs === undefined ? {} : { timeoutMs: deadlineMs }),
    };
    return shellResult(await this.#say("exec", this.sandbox.exec(command, asked)));
  }

  /** 0.8 passes a relative one on as it is. */
  #resolved(cwd: string | undefined): string {
    if (cwd === undefined) return this.cwd;
    return cwd.startsWith("/") ? cwd : `${this.cwd}/${cwd}`;
  }

  async #say<T>(operation: string, call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      throw flueError(operation, error);
    }
  }
}

function shellResult(result: ExecResult): ShellResult {
  const { stdout, exitCode } = result;
  const cuts = [
    cut("Standard output", result.stdoutTruncated, result.stdoutBytes),
    cut("Standard error", result.stderrTruncated, result.stderrBytes),
  ];
  return { stdout, stderr: result.stderr + cuts.join(""), exitCode };
}

function cut(stream: string, isCut: boolean, bytes: number): string {
  return isCut ? `[eyot] ${stream} was longer than what is kept: ${bytes} bytes. Only its beginning is here.\n` : "";
}
