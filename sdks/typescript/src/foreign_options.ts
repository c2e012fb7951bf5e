/** Options of other libraries, which a program without types passes: they are refused with the name of ours, not ignored. */

import { EyotError } from "./error.js";

const MILLISECONDS = "`timeoutMs`, in milliseconds";
const TTL = "`lifecycle: { ttlMs }`, in milliseconds";
const MEMORY = "`limits: { memoryMib }`, in MiB";

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
  ["idleTimeoutMs", "`lifecycle: { idleTimeoutMs }`"],
  ["onIdle", "`lifecycle: { onIdle }`"],
  ["memory", MEMORY],
  ["memoryMb", MEMORY],
  ["memoryMib", MEMORY],
  ["memory_mib", MEMORY],
  ["cpu", "`limits: { cpus }`"],
  ["cpus", "`limits: { cpus }`"],
  ["pids", "`limits: { pids }`"],
  ["disk", "`limits: { diskMib }`, in MiB"],
  ["diskMib", "`limits: { diskMib }`"],
  ["envs", "`env`"],
  ["environment", "`env`"],
  ["cwd", "`workdir`"],
  ["template", "`image`"],
  ["volumes", "`mounts`"],
  ["files", "`manifest: { files }`"],
  ["allowInternetAccess", '`network: "egress"`'],
]);

/** Refuses options of a command that would be ignored. */
export function checkCommandOptions(options: object): void {
  check(options, OF_A_COMMAND, "run a command");
}

/** The fields of a spec's parts, for the error about one that there is not: the server's names them as they go over the wire. */
export type PartFields = Record<string, Record<string, true>>;

/** Refuses options of a sandbox that are elsewhere in a spec, and those of its parts that there are not. */
export function checkSpec(spec: object, parts: PartFields): void {
  if (typeof spec !== "object" || spec === null) {
    const reason = "the options are an object, such as `{ image: \"node:22\" }` or `{ name: \"builder\" }`";
    throw new EyotError(`create sandbox: ${reason}, not \`${String(spec)}\``, { kind: "invalid", reason });
  }
  check(spec, OF_A_SANDBOX, "create sandbox");
  for (const [part, fields] of Object.entries(parts)) checkPart(part, (spec as Record<string, unknown>)[part], fields);
}

function checkPart(part: string, given: unknown, fields: Record<string, true>): void {
  if (typeof given !== "object" || given === null) return;
  const unknown = Object.keys(given).find((field) => !Object.hasOwn(fields, field));
  if (unknown === undefined) return;
  const field = `${part}.${unknown}`;
  const names = Object.keys(fields).map((name) => `\`${name}\``).join(", ");
  throw new EyotError(`create sandbox: there is no option \`${field}\`; there are ${names}`, { kind: "invalid", field });
}

function check(options: object, ours: Map<string, string>, what: string): void {
  for (const field of Object.keys(options)) {
    const right = ours.get(field);
    if (right === undefined) continue;
    throw new EyotError(`${what}: there is no option \`${field}\`; use ${right}`, { kind: "invalid", field });
  }
}
