/** Names of other libraries, which a program without types asks a sandbox or its class for: the error about one names ours. */

import { EyotError } from "./error.js";

const COMMANDS = "`exec(command)`; `start(command)`, or `keep(command)` with its output, runs one in the background";
const FILES = "`readText(path)`, `writeFile(path, content)`, `list(path)`, `upload(source, target)` and the like";

/** The words to write instead of a name, on a sandbox or on its class. */
const OURS: Record<string, string> = {
  create: "`client.create()`: an `EyotClient` makes sandboxes",
  connect: "`client.get(idOrName)` for one that is there, whose next use wakes it",
  commands: COMMANDS,
  process: COMMANDS,
  run: "`exec(command)`",
  runCode: '`exec(["python3", "-c", code])`',
  pty: "`openTerminal()` and `attachTerminal(terminal)`",
  files: FILES,
  filesystem: FILES,
  getHost: "`forward(port)`, a port of this machine; or `preview(port)`, an address at a server that listens on TCP",
  setTimeout: "`update({ lifecycle: { ttlMs } })`, in milliseconds since the create",
  pause: "`sleep()`",
  betaPause: "`sleep()`",
  resume: "`wake()`; any use wakes it, too",
  isRunning: "`refresh()`, which resolves to its `status`",
  getInfo: "`refresh()`",
  getMetrics: "`usage()`",
  sandboxId: "`id`",
  uploadUrl: "`upload(source, target)`",
  downloadUrl: "`download(source, target)`",
  close: "`destroy()`; a sandbox that is not destroyed lives on",
};

/**
 * Makes a class and its sandboxes answer these names with an error. Types do not have them, so that a program with types does
 * not compile.
 */
export function nameOurs(sandboxes: { prototype: object }): void {
  for (const [name, ours] of Object.entries(OURS)) {
    refuse(sandboxes.prototype, name, `a sandbox has no \`${name}\`; use ${ours}`);
    refuse(sandboxes, name, `the class \`Sandbox\` has no \`${name}\`; use ${ours}`);
  }
}

/** Refuses `new Sandbox()` and `new Sandbox("template")` of other libraries: only a client has what a sandbox is reached by. */
export function checkMadeByClient(transport: unknown): void {
  if (typeof transport !== "function") {
    throw new EyotError(`\`new Sandbox()\` makes no sandbox; use ${OURS["create"]}`, { kind: "invalid" });
  }
}

function refuse(object: object, name: string, message: string): void {
  const get = (): never => {
    throw new EyotError(message, { kind: "invalid", field: name });
  };
  Object.defineProperty(object, name, { get, configurable: true });
}
