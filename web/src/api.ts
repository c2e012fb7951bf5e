/**
 * The API as the page calls it. The cookie goes by itself; the proof, which lies in this origin's storage where no other port's
 * page can read it, goes in a header that no form can send.
 */

import type { Problem } from "./types.js";

const PROOF = "eyot.proof";
/** What WebSockets have as their protocol. */
const PROTOCOL = "eyot-page";

/** What went wrong, in words for whoever reads the page. */
export class Refused extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** Told when the server lets nobody in any more with what we have. */
export const signedOut = new EventTarget();

export function keepProof(proof: string | null): void {
  if (proof === null) localStorage.removeItem(PROOF);
  else localStorage.setItem(PROOF, proof);
}

function proof(): string | null {
  return localStorage.getItem(PROOF);
}

export interface Options {
  method?: string;
  json?: unknown;
  body?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Asks; what is refused is thrown as {@link Refused}. */
export async function ask(path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { "eyot-page": proof() ?? "1", ...options.headers };
  let body = options.body;
  if (options.json !== undefined) {
    headers["content-type"] = "application/json";
    body = JSON.stringify(options.json);
  }
  let response: Response;
  try {
    response = await fetch(path, { method: options.method ?? "GET", headers, body, signal: options.signal, cache: "no-store" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused({ status: 0, kind: "unavailable", reason: "", detail: "the server does not answer", hint: "is `eyot serve` still running?" });
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.status === 401) signedOut.dispatchEvent(new globalThis.Event("out"));
  throw new Refused(problem);
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    if (response.headers.get("content-type")?.includes("json")) return (await response.json()) as Problem;
  } catch {
    // It says nothing more.
  }
  return { status: response.status, kind: "internal", reason: "", detail: `the server answered ${response.status}` };
}

export async function json<T>(path: string, options?: Options): Promise<T> {
  return (await (await ask(path, options)).json()) as T;
}

/** A query, without what is undefined. */
export function query(values: Record<string, string | number | boolean | undefined>): string {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined);
  return "?" + new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
}

export function ofSandbox(id: string, rest = ""): string {
  return `/v1/sandboxes/${encodeURIComponent(id)}${rest}`;
}

/** Binds a request to the present life of a sandbox, so that one that has fallen asleep is left asleep. For all that the page asks by itself. */
export function inThisLife(sandbox: { life: string }): Options {
  return { headers: { "eyot-life": sandbox.life } };
}

export interface Message {
  event: string;
  id: string | undefined;
  data: unknown;
}

/** Server-sent events of a request, until it ends; `opened` hears when the server has answered. */
export async function* events(path: string, options: Options = {}, opened?: () => void): AsyncGenerator<Message> {
  const response = await ask(path, options);
  opened?.();
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const message = messageOf(block);
        if (message) yield message;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function messageOf(block: string): Message | undefined {
  let event = "message";
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at <= 0) continue;
    const value = line.slice(at + 1).replace(/^ /, "");
    const field = line.slice(0, at);
    if (field === "event") event = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  return data.length > 0 ? { event, id, data: JSON.parse(data.join("\n")) } : undefined;
}

/** A WebSocket to a path of the API. */
export function socket(path: string): WebSocket {
  const url = new URL(path, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const shown = proof();
  return new WebSocket(url, shown ? [PROTOCOL, `${PROTOCOL}.${shown}`] : [PROTOCOL]);
}

/** An error in one sentence. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
