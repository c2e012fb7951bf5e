/** The agents of a server, and their runs. */

import { AgentRun, type FollowOptions, type RunOptions } from "./agent_run.js";
import { segment } from "./arguments.js";
import { toolBody } from "./client_tools.js";
import { EyotError } from "./error.js";
import type { CallOptions } from "./files.js";
import { checkOptions } from "./foreign_options.js";
import { LIST_RUNS, REATTACH, RUN } from "./known_options.js";
import type { components } from "./openapi.js";
import { type RunInfo, runInfo } from "./run_info.js";
import type { Transport } from "./transport.js";

type Schemas = components["schemas"];

/** An agent of a server. */
export interface AgentInfo {
  name: string;
  description?: string;
  /** Every key may start it. A server without keys starts all. */
  webhook: boolean;
  /** The reason why its runs can't work. */
  problem?: string;
}

/** Which runs to list. */
export interface RunListOptions extends CallOptions {
  /** By default the client's pool, else all that the key opens. */
  pool?: string;
  agent?: string;
  instance?: string;
  status?: RunInfo["status"];
  /** How many at the most; by default all. */
  limit?: number;
}

/** How to come back to a run. */
export interface ReattachOptions extends FollowOptions {
  /** The number of the last event that came; by default all events come. */
  lastEventId?: number;
}

/** How many runs a page of the list has at the most. */
const PAGE = 1_000;

/** The agents of a server. */
export class Agents {
  readonly #transport: () => Promise<Transport>;
  readonly #pool: string | undefined;

  constructor(transport: () => Promise<Transport>, pool: string | undefined) {
    this.#transport = transport;
    this.#pool = pool;
  }

  /** The agents, by name. */
  async list(options: CallOptions = {}): Promise<AgentInfo[]> {
    const asked = { method: "GET", path: "/v1/agents", ...options } as const;
    return (await (await this.#transport()).json<{ agents: AgentInfo[] }>(asked)).agents;
  }

  /** Begins a run of an agent's instance. It works by itself; tools need the run to be followed: {@link AgentRun}. */
  async run(agent: string, instance: string, options: RunOptions = {}): Promise<AgentRun> {
    checkOptions(options, RUN, "run an agent");
    const { tools, toolTimeoutMs, pool = this.#pool, signal } = options;
    const json = {
      payload: payloadOf(options),
      ...(tools === undefined ? {} : { tools: tools.map(toolBody) }),
      ...(toolTimeoutMs === undefined ? {} : { tool_timeout_ms: toolTimeoutMs }),
    };
    const path = `/v1/agents/${segment(agent, "an agent")}/${segment(instance, "an instance")}/runs`;
    const info = runInfo(await (await this.#transport()).json({ method: "POST", path, query: { pool }, json, signal }));
    return new AgentRun(this.#transport, (...next) => this.run(...next), info, options);
  }
}

/** The runs of a server's agents. */
export class Runs {
  readonly #transport: () => Promise<Transport>;
  readonly #agents: Agents;
  readonly #pool: string | undefined;

  constructor(transport: () => Promise<Transport>, agents: Agents, pool: string | undefined) {
    this.#transport = transport;
    this.#agents = agents;
    this.#pool = pool;
  }

  /** Runs, the newest first, without their input and their result. */
  async list(options: RunListOptions = {}): Promise<RunInfo[]> {
    checkOptions(options, LIST_RUNS, "list runs");
    const { pool = this.#pool, agent, instance, status, limit = Infinity, signal } = options;
    const found: RunInfo[] = [];
    let cursor: string | undefined;
    do {
      const query = { pool, agent, instance, status, cursor, limit: Math.min(limit - found.length, PAGE) };
      const page: Schemas["RunList"] = await (await this.#transport()).json({ method: "GET", path: "/v1/runs", query, signal });
      found.push(...page.runs.map(runInfo));
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined && found.length < limit);
    return found;
  }

  /** A run with its input and its result; `not_found` if there is none that the key may see. */
  async get(id: string, options: CallOptions = {}): Promise<RunInfo> {
    return runInfo(await (await this.#transport()).json({ method: "GET", path: `/v1/runs/${segment(id, "a run")}`, ...options }));
  }

  /** Comes back to a run, also from another program. Its tools are answered by who follows it with them. */
  async follow(id: string, options: ReattachOptions = {}): Promise<AgentRun> {
    checkOptions(options, REATTACH, "follow a run");
    const { lastEventId, signal, ...others } = options;
    const info = await this.get(id, { signal });
    return new AgentRun(this.#transport, (...next) => this.#agents.run(...next), info, { ...others, signal }, lastEventId);
  }
}

/** The input of a run. */
function payloadOf({ payload, prompt, session, result }: RunOptions): unknown {
  if (payload === undefined) return { prompt, session, result };
  if (prompt === undefined && session === undefined && result === undefined) return payload;
  const reason = "is the whole input, so that `prompt`, `session` and `result` belong into it";
  throw new EyotError(`\`payload\` ${reason}`, { kind: "invalid", field: "payload", reason });
}
