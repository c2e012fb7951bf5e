/** What of the runtime is used, whichever generation of it is there: 0.8 has other names and no error classes. */

import * as flue from "@flue/runtime";
import type { SandboxApi, SessionEnv } from "@flue/runtime";
import { EyotError } from "../error.js";

/** What became of a command whose caller was let go by an abort. */
export type OrphanObserver = (settlement: {
  command: string;
  startedAt: Date;
  abortedAt: Date;
  settledAt: Date;
  result?: { stdout: string; stderr: string; exitCode: number };
  error?: unknown;
}) => void;

/** The runtime's exports that a generation may lack. */
const runtime: {
  sandboxFromDriver?: typeof flue.sandboxFromDriver;
  createSandboxSessionEnv?: typeof flue.createSandboxSessionEnv;
  SandboxDiedError?: typeof flue.SandboxDiedError;
  SandboxOperationUnsupportedError?: typeof flue.SandboxOperationUnsupportedError;
} = flue;

/** The runtime's own wrapper of a driver, which resolves paths and owns aborts. */
export function envFromDriver(driver: SandboxApi, cwd: string, onOrphanSettled: OrphanObserver | undefined): SessionEnv {
  const wrap = runtime.sandboxFromDriver ?? runtime.createSandboxSessionEnv;
  if (!wrap) throw new EyotError("this version of @flue/runtime can't wrap a sandbox; use 0.8.1 or later", { kind: "unsupported" });
  return wrap(driver, cwd, onOrphanSettled ? { onOrphanSettled } : undefined);
}

/** An error in the runtime's own classes, where it has one for it. */
export function flueError(operation: string, error: unknown): unknown {
  if (!(error instanceof EyotError)) return error;
  if (isDeath(error) && runtime.SandboxDiedError) {
    return withCause(new runtime.SandboxDiedError({ operation, reason: "stopped" }), error);
  }
  if (error.unsupported && runtime.SandboxOperationUnsupportedError) {
    return withCause(new runtime.SandboxOperationUnsupportedError(error.unsupported), error);
  }
  return error;
}

/** The sandbox stopped: it was destroyed or fell asleep during the call, or is not there any more. */
function isDeath(error: EyotError): boolean {
  return error.kind === "destroyed" || error.noSandbox || (error.kind === "unavailable" && error.sleeping);
}

function withCause<E extends Error>(error: E, cause: unknown): E {
  Object.defineProperty(error, "cause", { value: cause, configurable: true, writable: true });
  return error;
}
