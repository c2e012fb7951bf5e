/** Eyot's errors in the classes of `@anvia/sandbox`. */

import { EyotError } from "../error.js";
import { AbortError } from "../transport.js";
import {
  type SandboxCommandFailure,
  SandboxDockerCommandError,
  SandboxDockerUnavailableError,
  SandboxError,
  SandboxPathError,
  SandboxSessionDestroyedError,
  SandboxTimeoutError,
} from "./errors.js";

/** A failure that no program has: what it says, and the code that goes with it. */
export function failureResult(stderr: string, exitCode = 1): SandboxCommandFailure {
  const flags = { timedOut: false, aborted: false, stdoutTruncated: false, stderrTruncated: false };
  return { stdout: "", stderr, exitCode, durationMs: 0, ...flags };
}

/** A refusal with this message; `result.stderr` has the reason. */
export function refused(message: string, cause?: unknown, exitCode = 1): SandboxDockerCommandError {
  const reason = cause instanceof Error ? cause.message : message;
  return new SandboxDockerCommandError(message, failureResult(reason, exitCode), { cause });
}

/** The sandbox is not there any more. */
export function isGone(error: unknown): boolean {
  return error instanceof EyotError && (error.kind === "destroyed" || error.noSandbox);
}

/** A symbolic link of the path leads out of the workspace. */
export function leadsOut(error: unknown): boolean {
  return error instanceof EyotError && error.kind === "permission" && error.message.includes("leads out of");
}

/** What an error of the session's sandbox is thrown as. What is no error of Eyot's stays as it is. */
export function sessionError(sessionId: string, error: unknown, path?: string): unknown {
  if (!(error instanceof EyotError) || error instanceof SandboxError || error instanceof AbortError) return error;
  if (isGone(error)) return new SandboxSessionDestroyedError(sessionId, { cause: error });
  if (path !== undefined && leadsOut(error)) {
    return new SandboxPathError(`Sandbox path cannot leave the workspace: ${path}`, { cause: error });
  }
  return serverError(error);
}

/** What an error of the server is thrown as. */
export function serverError(error: unknown): unknown {
  if (!(error instanceof EyotError) || error instanceof AbortError) return error;
  if (error.kind === "unavailable") return new SandboxDockerUnavailableError(withHint(error), { cause: error });
  if (error.kind === "timeout") return new SandboxTimeoutError(error.message, { cause: error });
  return refused(`Docker command failed: ${withHint(error)}`, error);
}

function withHint({ message, hint }: EyotError): string {
  return hint === undefined ? message : `${message} (${hint})`;
}
