/** Options of other libraries, which a program without types passes: they are refused with the name of ours, not ignored. */

import { toCamel } from "./case.js";
import { EyotError } from "./error.js";

/** The options that a call has. One that is missing or too much does not compile. */
export type OptionsOf<T> = Record<keyof T, true>;

/** Names of options: those of a call, or those of others. */
type Names = Record<string, true>;

const MILLISECONDS = "`timeoutMs`, in milliseconds";
const TTL = "`lifecycle: { ttlMs }`, in milliseconds";
const MEMORY = "`limits: { memoryMib }`, in MiB";

const URL_OF_A_SERVER = "`url`";
const KEY = "`apiKey`";

/** Our words for others' options of a client. */
const OF_A_CLIENT = new Map([
  ["baseUrl", URL_OF_A_SERVER],
  ["baseURL", URL_OF_A_SERVER],
  ["base_url", URL_OF_A_SERVER],
  ["apiUrl", URL_OF_A_SERVER],
  ["serverUrl", URL_OF_A_SERVER],
  ["uri", URL_OF_A_SERVER],
  ["server", URL_OF_A_SERVER],
  ["address", URL_OF_A_SERVER],
  ["endpoint", URL_OF_A_SERVER],
  ["host", URL_OF_A_SERVER],
  ["domain", URL_OF_A_SERVER],
  ["key", KEY],
  ["token", KEY],
  ["accessToken", KEY],
]);

/** Our words for others' options of a list. */
const OF_A_LIST = new Map([
  ["metadata", "`labels`, which `create` takes too: by `metadata` nothing is found"],
  ["query", "`labels`"],
]);

/** What to write instead, when a command is run. */
const OF_A_COMMAND = new Map([
  ["timeout", MILLISECONDS],
  ["timeout_ms", MILLISECONDS],
  ["timeoutSeconds", MILLISECONDS],
  ["envs", "`env`"],
  ["environment", "`env`"],
  ["workdir", "`cwd`"],
  ["workingDirectory", "`cwd`"],
  ["input", "`stdin`"],
  ["abortSignal", "`signal`"],
  ["background", "`sandbox.start`, which leaves a process running"],
]);

/** What to write instead, when a sandbox is made. */
const OF_A_SANDBOX = new Map([
  ["timeout", TTL],
  ["timeoutMs", `${TTL}, or \`limits: { timeoutMs }\` for its commands`],
  ["ttl", TTL],
  ["ttlMs", TTL],
  ["idleTimeout", "`lifecycle: { idleTimeoutMs }`, in milliseconds"],
  ["memory", MEMORY],
  ["memoryMb", MEMORY],
  ["memoryMib", MEMORY],
  ["cpu", "`limits: { cpus }`"],
  ["disk", "`limits: { diskMib }`, in MiB"],
  ["envs", "`env`"],
  ["environment", "`env`"],
  ["cwd", "`workdir`"],
  ["template", "`image`"],
  ["volumes", "`mounts`"],
  ["allowInternetAccess", '`network: "egress"`'],
]);

/** Refuses options of a client: one that is ignored may be the address, and the work would be done on another machine. */
export function checkClientOptions(options: object, known: Names): void {
  const wrong = unknownOption(options, OF_A_CLIENT, known);
  if (wrong !== undefined) throw new TypeError(`new EyotClient: ${wrong.reason}`);
}

/** Refuses options of a command that would be ignored. */
export function checkCommandOptions(options: object, known: Names): void {
  check(options, OF_A_COMMAND, known, "run a command");
}

/** Refuses options of a list that would be ignored: it would have other sandboxes too. */
export function checkListOptions(options: object, known: Names): void {
  check(options, OF_A_LIST, known, "list sandboxes");
}

/** Refuses options of another call that would be ignored. */
export function checkOptions(options: object, known: Names, what: string): void {
  check(options, NONE, known, what);
}

const NONE: ReadonlyMap<string, string> = new Map();

/** The fields of a spec's parts, for the error about one that there is not: the server's names them as they go over the wire. */
export type PartFields = Record<string, Names>;

/** Refuses options of a sandbox that are elsewhere in a spec, and those of its parts that there are not. */
export function checkSpec(spec: object, known: Names, parts: PartFields): void {
  if (typeof spec !== "object" || spec === null) {
    const reason = "the options are an object, such as `{ image: \"node:22\" }` or `{ name: \"builder\" }`";
    throw new EyotError(`create sandbox: ${reason}, not \`${String(spec)}\``, { kind: "invalid", reason });
  }
  // An adapter of ours gives `container`.
  const { container: _, ...ours } = spec as { container?: object };
  check(ours, new Map([...fieldsOfParts(parts), ...OF_A_SANDBOX]), known, "create sandbox");
  for (const [part, fields] of Object.entries(parts)) checkPart(part, (spec as Record<string, unknown>)[part], fields);
}

/** The right places of fields that belong into a part, and were given beside the parts. */
function fieldsOfParts(parts: PartFields): [string, string][] {
  return Object.entries(parts).flatMap(([part, fields]) => Object.keys(fields).map((field): [string, string] => [field, `\`${part}: { ${field} }\``]));
}

function checkPart(part: string, given: unknown, fields: Names): void {
  if (typeof given !== "object" || given === null) return;
  const unknown = Object.keys(given).find((field) => !Object.hasOwn(fields, field));
  if (unknown === undefined) return;
  const field = `${part}.${unknown}`;
  const near = nearest(toCamel(unknown), Object.keys(fields));
  const use = near === undefined ? "" : `; use \`${part}: { ${near} }\``;
  throw new EyotError(`create sandbox: there is no option \`${field}\`${use}; there are ${namesOf(fields)}`, { kind: "invalid", field });
}

function check(options: object, ours: ReadonlyMap<string, string>, known: Names, what: string): void {
  const wrong = unknownOption(options, ours, known);
  if (wrong !== undefined) throw new EyotError(`${what}: ${wrong.reason}`, { kind: "invalid", ...wrong });
}

/** The first option that there is not, and the end of a sentence about it. */
function unknownOption(options: object, ours: ReadonlyMap<string, string>, known: Names): { field: string; reason: string } | undefined {
  const field = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (field === undefined) return undefined;
  const camel = toCamel(field);
  const near = Object.hasOwn(known, camel) ? camel : nearest(camel, Object.keys(known));
  const right = ours.get(field) ?? ours.get(camel) ?? (near === undefined ? undefined : `\`${near}\``);
  const use = right === undefined ? "" : `; use ${right}`;
  return { field, reason: `there is no option \`${field}\`${use}; there are ${namesOf(known)}` };
}

/** The name that is spelled most like this one, unless none is. */
function nearest(name: string, names: string[]): string | undefined {
  const most = Math.max(1, Math.floor(name.length / 3));
  const [near] = names.map((one) => ({ one, edits: edits(name, one) })).sort((a, b) => a.edits - b.edits);
  return near !== undefined && near.edits <= most ? near.one : undefined;
}

/** How many letters are to be added, removed, changed or swapped with their neighbours to make one name of the other. */
function edits(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, n) => n);
  for (let n = 0; n < from.length; n += 1) {
    const next = [n + 1];
    for (let m = 0; m < to.length; m += 1) {
      const changed = (row[m] ?? 0) + (from[n] === to[m] ? 0 : 1);
      const isSwapped = from[n] === to[m - 1] && from[n - 1] === to[m];
      const swapped = isSwapped ? (before[m - 1] ?? Infinity) + 1 : Infinity;
      next.push(Math.min(changed, swapped, (row[m + 1] ?? 0) + 1, (next[m] ?? 0) + 1));
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? 0;
}

function namesOf(known: Names): string {
  return Object.keys(known).map((name) => `\`${name}\``).join(", ");
}
