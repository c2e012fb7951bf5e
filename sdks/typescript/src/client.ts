/** The client: where the server is, and its sandboxes. */

import { Agents, Runs } from "./agents.js";
import { checkName, segment } from "./arguments.js";
import { fromWire, toWire } from "./case.js";
import { EyotError } from "./error.js";
import type { CallOptions } from "./files.js";
import { type OptionsOf, checkClientOptions, checkListOptions, checkOptions } from "./foreign_options.js";
import { Images } from "./images.js";
import { CALL } from "./known_options.js";
import { type LocalServer, checkIsStarted, findProgram, startServer } from "./local_server.js";
import type { components } from "./openapi.js";
import { EVENT_OPTIONS, type EventOptions, type PoolCreate, type PoolCreated, type PoolEntry, type SandboxEvent, type Transfer, type Transferred, sandboxEvent } from "./pools.js";
import { Sandbox, commitOf, forkOf } from "./sandbox.js";
import { type CommitOptions, DIFF, type DiffOptions, type FileChanges, type ForkOptions, type ImageCommitted, SNAPSHOT_LIST, type SnapshotInfo, type SnapshotListOptions } from "./snapshots.js";
import { type SandboxInfo, type SandboxSpec, checkedSpec, specBody } from "./spec.js";
import { serverSentEvents } from "./sse.js";
import { type Address, type Query, Transport, closedClient, parseAddress } from "./transport.js";

type Schemas = components["schemas"];

/** Where the server is, and how to get in. */
export interface ClientOptions {
  /** `http://host:port` or `unix:/path`; by default `EYOT_SERVER`. Without either, a server is started. */
  url?: string;
  /** By default `EYOT_API_KEY`. */
  apiKey?: string;
  /** The pool where names are; by default the key's own. */
  pool?: string;
  /** Where the sandboxes of a server that is started come from; by default `native`. */
  provider?: "native" | "docker" | "memory";
  /** Whether specs may use the host's own network, and name those of its container engine, on a server that is started; by default not. */
  allowHostNetworks?: boolean;
  /** The folder where a server that is started keeps its sandboxes; by default its own. */
  stateDir?: string;
  /** The folder with the agents of a server that is started, files NAME.md; by default `agents` in its state folder. */
  agentsDir?: string;
  /** The model of its agents whose file names none: PROVIDER/MODEL. */
  model?: string;
}

const CLIENT_OPTIONS: OptionsOf<ClientOptions> = {
  url: true,
  apiKey: true,
  pool: true,
  provider: true,
  allowHostNetworks: true,
  stateDir: true,
  agentsDir: true,
  model: true,
};

/** Which sandboxes to list. */
export interface ListOptions extends CallOptions {
  /** Only those with all of these labels. */
  labels?: Record<string, string>;
}

const LIST_OPTIONS: OptionsOf<ListOptions> = { labels: true, signal: true };

/** What the server's sandboxes can do. */
export interface Capabilities {
  provider: string;
  capabilities: string[];
  /** What would hold around a sandbox that is made from a default spec. */
  isolation: Record<string, unknown>;
}

/** What a tool answers: what the model reads, in pieces, and the same as data where the tool has it. */
export interface ToolAnswer {
  content: string[];
  structured?: unknown;
  isError: boolean;
}

/** In whose form tools are declared. */
export type ToolFormat = "mcp" | "anthropic" | "openai" | "openai-responses";

/** A client of one server. Close it when done: that ends a server that was started for it. */
export class EyotClient {
  /** The images that the server's sandboxes are made from. */
  readonly images: Images;
  /** The agents of the server. */
  readonly agents: Agents;
  /** The runs of its agents. */
  readonly runs: Runs;
  readonly #options: ClientOptions;
  #connection: Promise<Connection> | undefined;

  /** A client of the server at a URL, or of the one that the options name: `new EyotClient(url, { apiKey })` or `new EyotClient({ url, apiKey })`. */
  constructor(server: string | ClientOptions = {}, others: Omit<ClientOptions, "url"> = {}) {
    const options = givenOptions(server, others);
    this.#options = options;
    const transport = (): Promise<Transport> => this.#transport();
    this.images = new Images(transport);
    this.agents = new Agents(transport, options.pool);
    this.runs = new Runs(transport, this.agents, options.pool);
    const address = givenAddress(options);
    if (address) checkIsStarted(options, address);
    const key = options.apiKey ?? process.env["EYOT_API_KEY"];
    if (key !== undefined && !/^[\x21-\x7e]*$/.test(key)) {
      throw new EyotError("the API key has characters that no key has", { kind: "invalid", field: "apiKey" });
    }
  }

  /** Makes a sandbox. A name that is taken is refused with `already_exists`. */
  async create(spec: SandboxSpec = {}, options: CallOptions = {}): Promise<Sandbox> {
    return await this.#make(spec, false, options);
  }

  /** The sandbox of that name, woken if it sleeps, or a new one. */
  async getOrCreate(spec: SandboxSpec & { name: string }, options: CallOptions = {}): Promise<Sandbox> {
    return await this.#make(spec, true, options);
  }

  /** The sandbox of an id, NAME or POOL/NAME; `not_found` if there is none. It is not woken by that. */
  async get(idOrName: string, options: CallOptions = {}): Promise<Sandbox> {
    const path = `/v1/sandboxes/${segment(idOrName, "a sandbox")}`;
    const info = await (await this.#transport()).json({ method: "GET", path, query: this.#pool(), ...options });
    return this.#known(info);
  }

  /** The sandboxes of the pool, oldest first. */
  async list(options: ListOptions = {}): Promise<Sandbox[]> {
    checkListOptions(options, LIST_OPTIONS);
    const { labels = {}, signal } = options;
    const label = Object.entries(labels).map(([key, value]) => `${key}=${value}`).join(",");
    const found: Sandbox[] = [];
    let cursor: string | undefined;
    do {
      const query = { ...this.#pool(), label: label === "" ? undefined : label, cursor };
      const page: Schemas["SandboxList"] = await (await this.#transport()).json({ method: "GET", path: "/v1/sandboxes", query, signal });
      found.push(...page.sandboxes.map((info) => this.#known(info)));
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    return found;
  }

  /** A handle on the sandbox of an id, NAME or POOL/NAME. Nothing is asked; whether it is there shows with its first use. */
  sandbox(idOrName: string): Sandbox {
    return new Sandbox(() => this.#transport(), idOrName, this.#options.pool);
  }

  /** The names of the pools that the key opens; the first is its own. */
  async pools(options: CallOptions = {}): Promise<string[]> {
    return (await (await this.#transport()).json<Schemas["PoolList"]>({ method: "GET", path: "/v1/pools", ...options })).pools;
  }

  /** The sandboxes of a pool, by name. Asking wakes none. */
  async poolEntries(pool: string, options: CallOptions = {}): Promise<PoolEntry[]> {
    return (await (await this.#transport()).json<Schemas["PoolAnswer"]>({ method: "GET", path: poolPath(pool), ...options })).sandboxes;
  }

  /** Makes a sandbox of a pool from the pool's template, unless it is there: then it is woken, and the answer says in what it differs. */
  async createInPool(pool: string, name: string, what: PoolCreate = {}, options: CallOptions = {}): Promise<PoolCreated> {
    const path = `${poolPath(pool)}/sandboxes/${segment(name, "a sandbox")}`;
    return fromWire(await (await this.#transport()).json({ method: "PUT", path, json: toWire(what), ...options }));
  }

  /** Destroys every sandbox of a pool, and forgets it. */
  async closePool(pool: string): Promise<void> {
    await (await this.#transport()).nothing({ method: "DELETE", path: poolPath(pool) });
  }

  /** Copies a file or a tree from one sandbox to another of the client's pool, or of the key's own. */
  async transfer(what: Transfer, options: CallOptions = {}): Promise<Transferred> {
    const pool = this.#options.pool ?? (await this.sandbox(what.from).refresh(options)).pool;
    const asked = { method: "POST", path: `${poolPath(pool)}/transfer`, json: toWire(what), ...options } as const;
    return await (await this.#transport()).json(asked);
  }

  /** The snapshots of the client's pool, oldest first. */
  async snapshots(options: SnapshotListOptions = {}): Promise<SnapshotInfo[]> {
    checkOptions(options, SNAPSHOT_LIST, "list snapshots");
    const { sizes, signal } = options;
    const asked = { method: "GET", path: "/v1/snapshots", query: { ...this.#pool(), sizes }, signal } as const;
    return fromWire((await (await this.#transport()).json<Schemas["SnapshotList"]>(asked)).snapshots);
  }

  /** A snapshot, by name or id; `not_found` if there is none. */
  async snapshot(nameOrId: string, options: CallOptions = {}): Promise<SnapshotInfo> {
    return fromWire(await (await this.#transport()).json({ method: "GET", path: snapshotPath(nameOrId), query: this.#pool(), ...options }));
  }

  /** Removes a snapshot. Sandboxes that were made from it, and later snapshots, stay as they are. */
  async removeSnapshot(nameOrId: string, options: CallOptions = {}): Promise<void> {
    await (await this.#transport()).nothing({ method: "DELETE", path: snapshotPath(nameOrId), query: this.#pool(), ...options });
  }

  /** Makes sandboxes that begin with the files of a snapshot or, if there is none of that name, with the present files of a sandbox. */
  async fork(from: string, options: ForkOptions = {}): Promise<Sandbox[]> {
    checkName(from, "a snapshot or a sandbox");
    const pool = from.includes("/") ? from.slice(0, from.indexOf("/")) : this.#options.pool;
    return await forkOf(await this.#transport(), from, pool, options, () => this.#transport());
  }

  /**
   * Makes an image of a snapshot or, if there is none of that name, of the present files of a sandbox. A key may need the
   * server's leave: `eyot serve --image-key`.
   */
  async commit(from: string, reference: string, options: CommitOptions = {}): Promise<ImageCommitted> {
    checkName(from, "a snapshot or a sandbox");
    return await commitOf(await this.#transport(), from, this.#options.pool, reference, options);
  }

  /** Compares the files of two snapshots or sandboxes. */
  async diff(from: string, to: string, options: DiffOptions = {}): Promise<FileChanges> {
    checkOptions(options, DIFF, "diff");
    const { path, text, signal } = options;
    const query = { ...this.#pool(), from, to, path, text };
    return fromWire(await (await this.#transport()).json({ method: "GET", path: "/v1/diff", query, signal }));
  }

  /** What happened to sandboxes, oldest first: of the client's pool; without one, of all that the key opens. */
  async *events(options: EventOptions = {}): AsyncGenerator<SandboxEvent, void> {
    checkOptions(options, EVENT_OPTIONS, "read events");
    const { sandbox, fromSeq, follow, readTimeoutMs, signal } = options;
    const query = { ...this.#pool(), sandbox, from_seq: fromSeq, follow };
    const stream = await (await this.#transport()).stream({ method: "GET", path: "/v1/events", query, signal });
    const values = stream.through(serverSentEvents).within(readTimeoutMs);
    for await (const value of values) yield sandboxEvent(value);
  }

  /** What the server's sandboxes can do. */
  async capabilities(options: CallOptions = {}): Promise<Capabilities> {
    return fromWire(await (await this.#transport()).json({ method: "GET", path: "/v1/capabilities", ...options }));
  }

  /** Which server this is. */
  async version(options: CallOptions = {}): Promise<{ version: string; api: string }> {
    return await (await this.#transport()).json({ method: "GET", path: "/v1/version", ...options });
  }

  /** The declarations of a toolset, in the form that `format` has. */
  async tools(toolset: string, format: ToolFormat, options: CallOptions = {}): Promise<unknown> {
    const path = `/v1/toolsets/${segment(toolset, "a toolset")}`;
    return await (await this.#transport()).json({ method: "GET", path, query: { format }, ...options });
  }

  /** Calls a tool as a model does. What goes wrong is for the model to read: an answer with `isError`. */
  async callTool(toolset: string, tool: string, input: unknown, options: CallOptions = {}): Promise<ToolAnswer> {
    const path = `/v1/toolsets/${segment(toolset, "a toolset")}/${segment(tool, "a tool")}`;
    const asked = { method: "POST", path, query: this.#pool(), json: input, ...options } as const;
    const answer = await (await this.#transport()).json<Schemas["ToolAnswer"]>(asked);
    const structured = answer.structured === undefined || answer.structured === null ? {} : { structured: answer.structured };
    return { content: answer.content, ...structured, isError: answer.is_error };
  }

  /** Closes the connections, and ends a server that was started for this client. Sandboxes live on. */
  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = Promise.reject(closedClient());
    this.#connection.catch(() => {});
    const open = await connection?.catch(() => undefined);
    open?.transport.close();
    await open?.server?.close();
  }

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #make(spec: SandboxSpec, getOrCreate: boolean, options: CallOptions): Promise<Sandbox> {
    checkOptions(options, CALL, "create sandbox, behind its spec");
    checkedSpec(spec);
    const { signal } = options;
    const { pool, name } = newName(spec.name, this.#options.pool);
    const named = name === undefined ? spec : { ...spec, name };
    const transport = await this.#transport();
    const body = specBody(named, transport.address.from === "own");
    const json = { ...(pool === undefined ? {} : { pool }), spec: body, get_or_create: getOrCreate };
    return this.#known(await transport.json({ method: "POST", path: "/v1/sandboxes", json, signal }));
  }

  #known(answer: unknown): Sandbox {
    const info = fromWire<SandboxInfo>(answer);
    return new Sandbox(() => this.#transport(), info.id, info.pool, info);
  }

  #pool(): Query {
    return this.#options.pool === undefined ? {} : { pool: this.#options.pool };
  }

  async #transport(): Promise<Transport> {
    this.#connection ??= connect(this.#options).catch((error: unknown) => {
      this.#connection = undefined;
      throw error;
    });
    return (await this.#connection).transport;
  }
}

/** The options that a client is made with. An address alone is its URL. */
function givenOptions(server: string | ClientOptions, others: Omit<ClientOptions, "url">): ClientOptions {
  if (typeof server !== "string" && !isPlain(server)) {
    throw new TypeError(`new EyotClient: the server is a URL as a text, or options such as \`{ url: "http://127.0.0.1:7070" }\`, not \`${String(server)}\``);
  }
  if (!isPlain(others)) {
    const given = typeof others === "string" ? "not as a text alone" : `not \`${String(others)}\``;
    throw new TypeError(`new EyotClient: a key is given with its name, as in \`new EyotClient({ url, apiKey })\` or \`new EyotClient(url, { apiKey })\`, ${given}`);
  }
  const options = typeof server === "string" ? { ...others, url: server } : { ...others, ...server };
  checkClientOptions(options, CLIENT_OPTIONS);
  return options;
}

/** Tells whether something is an object whose options can be seen: those of a `URL`, say, can't. */
function isPlain(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof URL);
}

/** The pool and the name of a new sandbox that is called NAME or POOL/NAME. */
function newName(name: string | undefined, pool: string | undefined): { pool: string | undefined; name: string | undefined } {
  const slash = name?.indexOf("/") ?? -1;
  if (name === undefined || slash < 0) return { pool, name };
  const named = name.slice(0, slash);
  return pool === undefined || pool === named ? { pool: named, name: name.slice(slash + 1) } : { pool, name };
}

function snapshotPath(nameOrId: string): string {
  return `/v1/snapshots/${segment(nameOrId, "a snapshot")}`;
}

function poolPath(pool: string): string {
  return `/v1/pools/${segment(pool, "a pool")}`;
}

/** The way to a server, and the server if it was started for this. */
interface Connection {
  transport: Transport;
  server?: LocalServer;
}

/** The address that was given or that the environment has. */
function givenAddress({ url }: ClientOptions): Address | undefined {
  if (url !== undefined) return url === "" ? undefined : parseAddress(url);
  const named = process.env["EYOT_SERVER"];
  return named ? { ...parseAddress(named), from: "environment" } : undefined;
}

async function connect(options: ClientOptions): Promise<Connection> {
  const address = givenAddress(options);
  if (address) {
    return { transport: new Transport(address, options.apiKey ?? process.env["EYOT_API_KEY"]) };
  }
  const program = findProgram();
  if (program === undefined) {
    const hint = "set EYOT_SERVER to a server's URL, or install `eyot` (on the PATH, or named by EYOT_BIN)";
    throw new EyotError("there is no server: no URL was given and `eyot` is not installed", { kind: "unavailable", hint });
  }
  const server = await startServer(program, options);
  return { transport: new Transport({ ...parseAddress(server.url), from: "own" }, undefined), server };
}
