/**
 * Requests to a server, over TCP or a unix socket. Node's own HTTP client: it can do both, keeps connections, and has no
 * deadline of its own that would end a long command.
 */

import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { EyotError, errorOfAnswer } from "./error.js";
import { Streamed } from "./streamed.js";
import { unreachable } from "./unreachable.js";

/** The values of a query; what is absent is left out. */
export type Query = Record<string, string | number | boolean | undefined>;

/** What is sent as a body. */
export type Body = string | Uint8Array | AsyncIterable<Uint8Array>;

/** A request. */
export interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Query;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: Body;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** Where a server listens. */
export interface Address {
  /** `http://host:port`, or `http://localhost` behind a socket. */
  base: URL;
  /** The path of a unix socket. */
  socketPath?: string;
  /** The one that named it; by default the program. `own`: the server was started by this client, so that nobody else knows its address. */
  from?: "environment" | "own";
}

/** Reads `http://…`, `https://…` or `unix:/path`. */
export function parseAddress(text: string): Address {
  if (text.startsWith("unix:")) {
    const socketPath = text.slice("unix:".length).replace(/^\/\/(?=\/)/, "");
    if (!socketPath.startsWith("/")) throw badAddress(text, "must name an absolute path behind `unix:`");
    return { base: new URL("http://localhost"), socketPath };
  }
  const base = URL.canParse(text) ? new URL(text) : undefined;
  if (!base || !/^https?:$/.test(base.protocol)) throw badAddress(text, "must look like http://host:port or unix:/path");
  return { base };
}

function badAddress(text: string, reason: string): EyotError {
  return new EyotError(`the server's URL ${reason}, not \`${text}\``, { kind: "invalid", field: "url", reason });
}

/** After how long without a word the other side of a connection is asked whether it is still there. */
const LOOK_AFTER_MS = 30_000;

/** How long a connection may have been idle to be used again; the server closes it after 60 s. */
const MAX_IDLE_MS = 30_000;

/** Has the kernel notice when the other side of this connection is gone without having said so. */
export function lookForPeer(socket: Socket): void {
  if (socket.connecting) socket.once("connect", () => socket.setKeepAlive(true, LOOK_AFTER_MS));
  else socket.setKeepAlive(true, LOOK_AFTER_MS);
}

/** Carries requests to one server. */
export class Transport {
  readonly #agent: http.Agent;
  readonly #held = new Set<() => void>();
  /** When connections were last used. */
  readonly #usedMs = new WeakMap<Socket, number>();
  #isClosed = false;

  constructor(
    readonly address: Address,
    readonly apiKey: string | undefined,
  ) {
    const kept = { keepAlive: true, keepAliveMsecs: LOOK_AFTER_MS };
    this.#agent = address.base.protocol === "https:" ? new https.Agent(kept) : new http.Agent(kept);
  }

  /** Asks, and reads the answer as JSON. */
  async json<T>(request: Request): Promise<T> {
    const bytes = await this.bytes(request);
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")) as T;
  }

  /** Asks; the answer has nothing in it. */
  async nothing(request: Request): Promise<void> {
    await this.bytes(request);
  }

  /** Asks, and reads the whole answer. */
  async bytes(request: Request): Promise<Uint8Array> {
    return await collect(await this.stream(request));
  }

  /** Asks; the answer's bytes come as they do. An answer that is no success is thrown. */
  async stream(request: Request): Promise<Streamed<Uint8Array>> {
    const response = await this.#sendAgainIfStale(request);
    const status = response.statusCode ?? 0;
    const bytes = new Streamed(this.#pieces(response, request.signal), () => response.destroy());
    if (status >= 200 && status < 300) return bytes;
    throw errorOfAnswer(status, Buffer.from(await collect(bytes)).toString("utf8"));
  }

  /** The headers that every request has. */
  headers(): Record<string, string> {
    return this.apiKey === undefined ? {} : { authorization: `Bearer ${this.apiKey}` };
  }

  /** Has something else end with the connections, until what this answers is called. */
  hold(end: () => void): () => void {
    if (this.#isClosed) end();
    else this.#held.add(end);
    return () => this.#held.delete(end);
  }

  /** Tells whether the client was closed, and its connections with it. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The error of a request, or of a connection, that does not get through. */
  explained(error: unknown, signal?: AbortSignal, isReused = false): unknown {
    if (signal?.aborted) return abortError(signal);
    // The close cuts what is under way; the server is there.
    if (this.#isClosed) return closedClient();
    if (!(error instanceof Error)) return error;
    const isReset = "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");
    return unreachable(error, this.address, isReused && isReset ? StaleConnection : EyotError);
  }

  /** Closes the connections, and ends what is held. */
  close(): void {
    this.#isClosed = true;
    this.#agent.destroy();
    for (const end of this.#held) end();
  }

  /** An answer's bytes. */
  async *#pieces(response: Readable, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const piece of response) yield piece as Uint8Array;
    } catch (error) {
      throw this.explained(error, signal);
    }
  }

  /** A kept connection may have been closed meanwhile; what only reads is asked again. */
  async #sendAgainIfStale(request: Request): Promise<http.IncomingMessage> {
    try {
      return await this.#send(request);
    } catch (error) {
      if (request.method === "GET" && error instanceof StaleConnection) return await this.#send(request);
      throw error;
    }
  }

  #send(request: Request): Promise<http.IncomingMessage> {
    const { base, socketPath } = this.address;
    const headers: Record<string, string> = { ...this.headers(), ...request.headers };
    const body = request.json === undefined ? request.body : JSON.stringify(request.json);
    if (request.json !== undefined) headers["content-type"] = "application/json";
    else if (body !== undefined) headers["content-type"] = "application/octet-stream";
    if (typeof body === "string" || body instanceof Uint8Array) headers["content-length"] = String(Buffer.byteLength(body));
    const path = base.pathname.replace(/\/$/, "") + request.path + queryText(request.query);
    const options: https.RequestOptions = {
      agent: this.#agent,
      method: request.method,
      path,
      headers,
      protocol: base.protocol,
      ...(socketPath === undefined ? { host: base.hostname.replace(/^\[|\]$/g, ""), port: base.port } : { socketPath }),
      ...(request.signal ? { signal: request.signal } : {}),
    };
    this.#dropIdle();
    return new Promise((resolve, reject) => {
      const outgoing = (base.protocol === "https:" ? https : http).request(options);
      outgoing.on("socket", lookForPeer);
      outgoing.on("response", (response) => {
        const { socket } = response;
        response.once("close", () => this.#usedMs.set(socket, Date.now()));
        resolve(response);
      });
      if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
        outgoing.on("error", (error) => reject(this.explained(error, request.signal, outgoing.reusedSocket)));
        outgoing.end(body);
        return;
      }
      const source = new Source(body);
      const failed = (error: unknown): void => reject(source.broke && !request.signal?.aborted ? source.reason : this.explained(error, request.signal));
      outgoing.on("error", failed);
      pipeline(source, outgoing).catch(failed);
    });
  }

  /** Closes kept connections that the server may be closing: what is sent into one is lost. */
  #dropIdle(): void {
    for (const socket of Object.values(this.#agent.freeSockets).flatMap((sockets) => sockets ?? [])) {
      if (Date.now() - (this.#usedMs.get(socket) ?? 0) > MAX_IDLE_MS) socket.destroy();
    }
  }
}

/** A body that its caller makes, and what broke that. */
class Source implements AsyncIterable<Uint8Array> {
  broke = false;
  reason: unknown;

  constructor(private readonly body: AsyncIterable<Uint8Array>) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    try {
      yield* this.body;
    } catch (error) {
      this.broke = true;
      this.reason = error;
      throw error;
    }
  }
}

/** A query as it stands behind a path. */
export function queryText(query: Query | undefined): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) values.set(name, String(value));
  }
  const text = values.toString();
  return text === "" ? "" : `?${text}`;
}

async function collect(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of stream) all.push(piece);
  // Memory of its own: Buffer.concat may hand out a part of a shared block.
  const bytes = new Uint8Array(all.reduce((length, piece) => length + piece.length, 0));
  let end = 0;
  for (const piece of all) {
    bytes.set(piece, end);
    end += piece.length;
  }
  return bytes;
}

/** The client was closed, and stays so. */
export class ClosedClient extends EyotError {}

/** The connection was closed by the server before it could have read the request. */
class StaleConnection extends EyotError {}

/** The error of a call of a client that was closed, before it or meanwhile. */
export function closedClient(): ClosedClient {
  return new ClosedClient("the client is closed", { kind: "unavailable" });
}

/** A call was aborted by its signal. It has the name that such errors have everywhere. */
export class AbortError extends EyotError {
  override readonly name = "AbortError";
}

/** What a call that was aborted is rejected with. */
export function abortError(signal: AbortSignal): AbortError {
  const reason: unknown = signal.reason;
  const message = reason instanceof Error ? reason.message : typeof reason === "string" && reason !== "" ? reason : "The operation was aborted.";
  const error = new AbortError(message, { kind: "cancelled" });
  Object.defineProperty(error, "cause", { value: reason, configurable: true, writable: true });
  return error;
}
