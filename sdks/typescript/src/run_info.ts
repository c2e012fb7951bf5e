/** Runs of agents as the server lists them, and what came of them. */

import type { AgentFailure, TokenUsage } from "./agent_events.js";
import { EyotError } from "./error.js";
import type { components } from "./openapi.js";

/** A run of an agent. */
export interface RunInfo {
  id: string;
  agent: string;
  /** The agent's instance. Runs of one instance share its sandbox and its conversations. */
  instance: string;
  pool?: string;
  /** The name of the sandbox that the agent works in, which is in the run's pool. */
  sandbox?: string;
  status: "active" | "completed" | "errored";
  /** The run is active, and its process is gone: {@link AgentRun.resume} goes on with it. */
  interrupted: boolean;
  /** In milliseconds since 1970 (UTC). */
  startedMs: number;
  endedMs?: number;
  /** The input. Lists leave it out. */
  payload?: unknown;
  /** What the agent gave, as it is. Lists leave it out. */
  result?: unknown;
  error?: AgentFailure;
}

/** The answer of an agent. */
export interface AgentResult<T = unknown> {
  /** What the agent wrote last; empty if it gave something else. */
  text: string;
  /** The data that the schema `result` asked for. */
  data?: T;
  /** The tokens that the run took. */
  usage?: TokenUsage;
  /** What the agent gave, as it is. */
  value: unknown;
}

/** The run ended with a failure. */
export class RunFailed extends EyotError {
  /** The kind of failure: `ModelError`, `AbortError`, … */
  readonly errorName: string;

  constructor(
    /** The run that failed. */
    readonly run: RunInfo,
  ) {
    const { name, message } = run.error ?? { name: "Error", message: "the server does not say why" };
    super(`run \`${run.id}\` of the agent \`${run.agent}\` failed: ${message}`, { kind: "run_failed", reason: message });
    this.errorName = name;
  }
}

/** A run from the wire. Its input and its result have names that are not ours. */
export function runInfo(answer: components["schemas"]["RunAnswer"]): RunInfo {
  const { started_ms: startedMs, ended_ms: endedMs, pool, sandbox, payload, result, error, status, ...others } = answer;
  const given = { pool, sandbox, endedMs, payload, result, error };
  const there = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  return { ...others, status: status as RunInfo["status"], startedMs, ...Object.fromEntries(there) };
}

/** What a run that has ended gave; throws {@link RunFailed} if it failed. */
export function runResult<T>(run: RunInfo): AgentResult<T> {
  if (run.status === "errored") throw new RunFailed(run);
  const value = run.result ?? null;
  if (typeof value === "string") return { text: value, value };
  const { text, data, usage } = (typeof value === "object" ? (value ?? {}) : {}) as Partial<AgentResult<T>>;
  const others = { ...(data === undefined ? {} : { data }), ...(usage === undefined ? {} : { usage }) };
  return { text: typeof text === "string" ? text : "", ...others, value };
}
