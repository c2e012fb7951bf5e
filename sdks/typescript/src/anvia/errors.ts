/** The error classes of `@anvia/sandbox`, with its messages where code reads them. Each has its class's name as its `name`. */

import type { SandboxExecResult } from "./types.js";

/** What a failed command of the engine said; Eyot has no command line behind it, so `stderr` is the server's sentence. */
export type SandboxCommandFailure = SandboxExecResult;

/** The base of them all. */
export class SandboxError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
  }
}

/** There is no Engine, or no server that could ask it. */
export class SandboxDockerUnavailableError extends SandboxError {
  constructor(message = "Docker CLI was not found.", options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SandboxDockerUnavailableError";
  }
}

/** The sandbox could not do what it was asked; `result.stderr` says why. */
export class SandboxDockerCommandError extends SandboxError {
  readonly result: SandboxCommandFailure;

  constructor(message: string, result: SandboxCommandFailure, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SandboxDockerCommandError";
    this.result = result;
  }
}

/** The session was destroyed, by a call or by one of its deadlines. */
export class SandboxSessionDestroyedError extends SandboxError {
  constructor(sessionId: string, options?: { cause?: unknown }) {
    super(`Sandbox session ${sessionId} has been destroyed.`, options);
    this.name = "SandboxSessionDestroyedError";
  }
}

/** A path that is no path of the workspace. */
export class SandboxPathError extends SandboxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SandboxPathError";
  }
}

/** Something other than a command took longer than it may: a command's deadline is a result with `timedOut`. */
export class SandboxTimeoutError extends SandboxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SandboxTimeoutError";
  }
}

/** A file is larger than `limits.maxFileBytes`. */
export class SandboxFileSizeError extends SandboxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SandboxFileSizeError";
  }
}

/** A tool's policy does not allow it. */
export class SandboxToolPolicyError extends SandboxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SandboxToolPolicyError";
  }
}

/** A port can't be published, is not, or is waited for with numbers that make no sense (0.4). */
export class SandboxPortError extends SandboxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SandboxPortError";
  }
}

/** A managed process can't be started, is unknown, or is asked for with numbers that make no sense (0.4). */
export class SandboxProcessError extends SandboxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SandboxProcessError";
  }
}
