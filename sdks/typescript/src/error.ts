/** What went wrong: the server's problems (RFC 9457), and this client's own, as one class of errors. */

import type { components } from "./openapi.js";

/** A problem as it comes over the wire. */
export type Problem = components["schemas"]["Problem"];

/** What kind of error it is, for code to match on. */
export type EyotErrorKind =
  | "invalid"
  | "not_found"
  | "already_exists"
  | "is_directory"
  | "not_directory"
  | "permission"
  | "too_large"
  | "quota"
  | "unsupported"
  | "destroyed"
  | "unavailable"
  | "timeout"
  | "cancelled"
  | "conflict"
  | "setup"
  | "command_failed"
  | "run_failed"
  | "internal";

/** What an {@link EyotError} is made of. */
export interface EyotErrorDetails {
  kind: EyotErrorKind;
  /** Why it failed, without what was to be done. */
  reason?: string;
  /** What the reader can do about it. */
  hint?: string | undefined;
  /** The part of the request that is wrong. */
  field?: string | undefined;
  /** The status of the answer, if there was one. */
  status?: number;
  /** The sandbox sleeps. */
  sleeping?: boolean;
  /** It is the sandbox itself that is not there. */
  noSandbox?: boolean;
  /** What the provider can't do, where it is that. */
  unsupported?: { operation: string; provider: string; options: readonly string[] } | undefined;
  cause?: unknown;
}

/** The sandbox or the server could not do its part. A command that exits with 1 is no error but a result. */
export class EyotError extends Error {
  override readonly name: string = "EyotError";
  readonly kind: EyotErrorKind;
  readonly reason: string;
  readonly hint: string | undefined;
  readonly field: string | undefined;
  readonly status: number | undefined;
  readonly sleeping: boolean;
  readonly noSandbox: boolean;
  readonly unsupported: EyotErrorDetails["unsupported"];

  constructor(message: string, details: EyotErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = details.kind;
    this.reason = details.reason ?? message;
    this.hint = details.hint;
    this.field = details.field;
    this.status = details.status;
    this.sleeping = details.sleeping ?? false;
    this.noSandbox = details.noSandbox ?? false;
    this.unsupported = details.unsupported;
    if (this.stack !== undefined && this.hint) this.stack = withHint(this.stack, message, this.hint);
  }

  /** The error that a problem stands for. */
  static fromProblem(problem: Problem): EyotError {
    return new EyotError(problem.detail, {
      kind: problem.kind as EyotErrorKind,
      reason: problem.reason,
      hint: problem.hint ?? undefined,
      field: problem.field ?? undefined,
      status: problem.status,
      sleeping: problem.sleeping ?? false,
      noSandbox: problem.no_sandbox ?? false,
      unsupported: problem.unsupported ?? undefined,
    });
  }
}

/** A stack as it is printed, with the hint in a line of its own behind the message, which stays as it is. */
function withHint(stack: string, message: string, hint: string): string {
  const at = stack.indexOf(message);
  if (at < 0) return stack;
  const end = at + message.length;
  return `${stack.slice(0, end)}\nhint: ${hint}${stack.slice(end)}`;
}

/** What a status means in the answer of something else, such as a proxy. */
const KINDS_OF_OTHERS: Record<number, EyotErrorKind> = {
  401: "permission",
  403: "permission",
  404: "not_found",
  413: "too_large",
  502: "unavailable",
  503: "unavailable",
  504: "timeout",
};

/** What an answer that is no success says: its problem, or as much as can be made of it. */
export function errorOfAnswer(status: number, text: string): EyotError {
  try {
    const body = JSON.parse(text) as Problem;
    if (typeof body.kind === "string" && typeof body.detail === "string") return EyotError.fromProblem(body);
  } catch {
    // It is no problem of Eyot's: something else answered.
  }
  const kind = KINDS_OF_OTHERS[status] ?? (status >= 400 && status < 500 ? "invalid" : "internal");
  return new EyotError(`the server answered ${status}: ${text.slice(0, 200)}`, { kind, status });
}
