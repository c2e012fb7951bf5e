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

/** Refuses options of a sandbox that are elsewhere in a spec. */
export function checkSpec(spec: object): void {
  check(spec, OF_A_SANDBOX, "create sandbox");
}

function check(options: object, ours: Map<string, string>, what: string): void {
  for (const field of Object.keys(options)) {
    const right = ours.get(field);
    if (right === undefined) continue;
    throw new EyotError(`${what}: there is no option \`${field}\`; use ${right}`, { kind: "invalid", field });
  }
}
