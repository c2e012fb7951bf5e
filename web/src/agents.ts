/** Agents and their runs, as the API has them. */

import { ask, json, query } from "./api.js";
import type { Agent, Run } from "./types.js";

/** What a list of runs is about. Empty: all. */
export interface RunFilters {
  agent: string;
  instance: string;
  status: string;
  pool: string;
}

export const NO_FILTERS: RunFilters = { agent: "", instance: "", status: "", pool: "" };

/** Reads the filters of an address. */
export function filtersOf(text: string): RunFilters {
  const given = new URLSearchParams(text);
  const read = (name: keyof RunFilters) => given.get(name) ?? "";
  return { agent: read("agent"), instance: read("instance"), status: read("status"), pool: read("pool") };
}

/** Returns the address of a list of runs. */
export function addressOf(filters: RunFilters): string {
  const text = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== "")).toString();
  return text ? `#/agents?${text}` : "#/agents";
}

export interface RunPage {
  runs: Run[];
  next_cursor?: string;
}

/** Lists runs, the newest first. An interrupted run is an active one for the server. */
export async function listRuns(filters: RunFilters, limit: number, cursor: string | undefined, signal?: AbortSignal): Promise<RunPage> {
  const isInterrupted = filters.status === "interrupted";
  const status = isInterrupted ? "active" : filters.status;
  const asked = query({ agent: filters.agent || undefined, instance: filters.instance || undefined, pool: filters.pool || undefined, status: status || undefined, limit, cursor });
  const page = await json<RunPage>(`/v1/runs${asked}`, { signal });
  return isInterrupted ? { ...page, runs: page.runs.filter((run) => run.interrupted) } : page;
}

export async function listAgents(signal?: AbortSignal): Promise<Agent[]> {
  return (await json<{ agents: Agent[] }>("/v1/agents", { signal })).agents;
}

export function ofRun(id: string, rest = ""): string {
  return `/v1/runs/${encodeURIComponent(id)}${rest}`;
}

export interface NewRun {
  agent: string;
  instance: string;
  pool: string | undefined;
  prompt: string;
  session: string | undefined;
}

export async function startRun({ agent, instance, pool, prompt, session }: NewRun): Promise<Run> {
  const path = `/v1/agents/${encodeURIComponent(agent)}/${encodeURIComponent(instance)}/runs${query({ pool })}`;
  return json<Run>(path, { method: "POST", json: { payload: { prompt, session } } });
}

export async function abortRun(id: string, reason: string): Promise<void> {
  await ask(ofRun(id, "/abort"), { method: "POST", json: { reason } });
}

/** How a run is, in one word. */
export type RunState = "running" | "interrupted" | "completed" | "aborted" | "failed";

export function stateOf(run: Run): RunState {
  if (run.interrupted) return "interrupted";
  if (run.status === "active") return "running";
  if (run.status === "completed") return "completed";
  return run.error?.name === "AbortError" ? "aborted" : "failed";
}
