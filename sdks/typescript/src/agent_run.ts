/** A run of an agent: its events as they come, its tools, and what comes of it. */

import type { AgentEvent } from "./agent_events.js";
import { segment } from "./arguments.js";
import { type ClientTool, ToolCalls, type ToolRequest } from "./client_tools.js";
import { EyotError } from "./error.js";
import type { CallOptions } from "./files.js";
import { patiently, takenUpAgain } from "./patience.js";
import { type AgentResult, RunFailed, type RunInfo, runInfo, runResult } from "./run_info.js";
import { namedEvents } from "./sse.js";
import type { Request, Transport } from "./transport.js";

/** How a run is followed. */
export interface FollowOptions {
  /** The tools that this program answers. */
  tools?: readonly ClientTool[];
  /** Is told the pieces of the agent's text, without those of its tasks. What it returns is awaited. */
  onText?: (text: string) => unknown;
  /** Is told every event. What it returns is awaited. */
  onEvent?: (event: AgentEvent) => unknown;
  /**
   * Ends following, and aborts the `signal` of the tools that work. The run goes on: {@link AgentRun.abort} ends it, and
   * `client.runs.follow` comes back to it.
   */
  signal?: AbortSignal | undefined;
}

/** The options of a new run. */
export interface RunOptions extends FollowOptions {
  /** The text for an agent that is a file. */
  prompt?: string;
  /** The name of the conversation; by default the instance has one. */
  session?: string;
  /** The JSON Schema of the data that the answer is to have. */
  result?: object;
  /** The whole input instead, as the agent wants it. */
  payload?: unknown;
  /** How long the server waits for the answer of a tool, at most an hour; by default 5 minutes. Then the model is told of an error. */
  toolTimeoutMs?: number;
  /** The pool of the run and its sandbox; by default the client's, else the key's own. */
  pool?: string;
}

/** Begins a run of an agent. */
export type BeginRun = (agent: string, instance: string, options: RunOptions) => Promise<AgentRun>;

/**
 * A run of an agent. It is followed while it is read, by a loop or by {@link result}: then tools are called, and what comes is
 * told. A connection that breaks off is made again, behind what was read. Leaving the loop ends nothing: the next loop goes on
 * behind the last event.
 */
export class AgentRun implements AsyncIterable<AgentEvent> {
  readonly #transport: () => Promise<Transport>;
  readonly #begin: BeginRun;
  readonly #options: FollowOptions;
  readonly #calls: ToolCalls;
  readonly #stop = new AbortController();
  readonly #onAbort: () => void;
  #info: RunInfo;
  #lastEventId: number | undefined;
  #isRead = false;

  /** Use `client.agents.run` and `client.runs.follow`. */
  constructor(transport: () => Promise<Transport>, begin: BeginRun, info: RunInfo, options: FollowOptions, lastEventId?: number) {
    this.#transport = transport;
    this.#begin = begin;
    this.#info = info;
    this.#options = options;
    this.#lastEventId = lastEventId;
    const post = (call: string, answer: object): Promise<void> => this.#patiently("POST", `/tool_calls/${segment(call, "a call")}`, answer);
    this.#calls = new ToolCalls(options.tools ?? [], post, this.#stop.signal);
    const { signal } = options;
    this.#onAbort = () => this.#stop.abort(signal?.reason);
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** The id, to come back to the run. */
  get id(): string {
    return this.#info.id;
  }

  /** The last known state; {@link refresh} asks again. */
  get info(): RunInfo {
    return this.#info;
  }

  /** The number of the last event that was read. */
  get lastEventId(): number | undefined {
    return this.#lastEventId;
  }

  /** The events, as they come, to the last one. A loop whose body takes long holds up the calls of tools. */
  async *[Symbol.asyncIterator](): AsyncGenerator<AgentEvent, void> {
    if (this.#isRead) return;
    const { signal } = this.#stop;
    const open = async (last: number | undefined) => {
      const headers: Record<string, string> = last === undefined ? {} : { "last-event-id": String(last) };
      const stream = await (await this.#transport()).stream({ ...this.#request("GET", "/stream"), headers, signal });
      return stream.through(namedEvents);
    };
    for await (const { event, value } of takenUpAgain(open, this.#lastEventId, signal)) {
      if (event === "tool_request") {
        this.#calls.take(value as ToolRequest);
        continue;
      }
      const told = value as AgentEvent;
      await this.#tell(told);
      yield told;
      if (told.type === "run_end") return;
    }
  }

  /**
   * Waits for its end, reading what is left to read. A run that failed throws `RunFailed`. An interrupted one goes on when
   * somebody resumes it.
   */
  async result<T = unknown>(): Promise<AgentResult<T>> {
    const tells = this.#options.onText !== undefined || this.#options.onEvent !== undefined;
    if (this.#info.status === "active" || tells) for await (const _ of this);
    if (this.#info.status === "active") this.#info = await patiently(this.#stop.signal, () => this.#asked("GET", ""));
    this.#finish();
    return runResult(this.#info);
  }

  /** Asks how it is. */
  async refresh(options: CallOptions = {}): Promise<RunInfo> {
    this.#info = await this.#asked("GET", "", options);
    return this.#info;
  }

  /** Ends its work; then it fails with `AbortError` and this reason. One that has ended is left as it is. */
  async abort(reason?: string, options: CallOptions = {}): Promise<void> {
    const json = reason === undefined ? {} : { reason };
    await (await this.#transport()).nothing({ ...this.#request("POST", "/abort"), json, ...options });
  }

  /** Has the server go on with it, if it was interrupted: `conflict` if not. A server does so with its own runs when it starts. */
  async resume(options: CallOptions = {}): Promise<void> {
    this.#info = await this.#asked("POST", "/resume", options);
  }

  /**
   * Goes on with the conversation: begins the next run of the same agent, instance and session, with the same tools unless
   * others are given. A run that was interrupted is resumed, and ends before that; without a prompt it is all that is done.
   */
  async goOn(options: RunOptions = {}): Promise<AgentRun> {
    const { interrupted, id, agent, instance, pool, payload } = await this.refresh();
    const asksMore = options.prompt !== undefined || options.payload !== undefined;
    if (!interrupted && !asksMore) {
      throw new EyotError(`go on with run \`${id}\`: it was not interrupted, so the next run needs a prompt`, { kind: "invalid", field: "prompt" });
    }
    const tools = options.tools ?? this.#calls.tools;
    if (interrupted) {
      await this.resume();
      const { signal: _, ...asBefore } = this.#options;
      const resumed = new AgentRun(this.#transport, this.#begin, this.#info, { ...asBefore, ...options, tools }, this.#lastEventId);
      if (!asksMore) return resumed;
      // One that fails is over, too, and its conversation is there.
      await resumed.result().catch(rethrowUnlessOver);
    }
    const session = options.payload === undefined ? sessionOf(payload) : undefined;
    const before = { ...(pool === undefined ? {} : { pool }), ...(session === undefined ? {} : { session }) };
    return await this.#begin(agent, instance, { ...before, ...options, tools });
  }

  async #tell(event: AgentEvent): Promise<void> {
    // Of two loops at once, the one that is ahead.
    if (this.#lastEventId !== undefined && event.eventIndex <= this.#lastEventId) return;
    this.#lastEventId = event.eventIndex;
    await this.#options.onEvent?.(event);
    if (event.type === "text_delta" && event.taskId === undefined) await this.#options.onText?.(event.text);
    if (event.type === "run_end") this.#finish();
  }

  /** It has ended: nobody waits for its tools. */
  #finish(): void {
    this.#isRead = true;
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#calls.end();
  }

  #request(method: "GET" | "POST", path: string): Pick<Request, "method" | "path"> {
    return { method, path: `/v1/runs/${segment(this.id, "a run")}${path}` };
  }

  async #asked(method: "GET" | "POST", path: string, options: CallOptions = {}): Promise<RunInfo> {
    return runInfo(await (await this.#transport()).json({ ...this.#request(method, path), ...options }));
  }

  async #patiently(method: "GET" | "POST", path: string, json: object): Promise<void> {
    const { signal } = this.#stop;
    await patiently(signal, async () => await (await this.#transport()).nothing({ ...this.#request(method, path), json, signal }));
  }
}

function rethrowUnlessOver(error: unknown): void {
  if (!(error instanceof RunFailed)) throw error;
}

/** The conversation that an input names. */
function sessionOf(payload: unknown): string | undefined {
  const session = typeof payload === "object" && payload !== null && "session" in payload ? payload.session : undefined;
  return typeof session === "string" ? session : undefined;
}
