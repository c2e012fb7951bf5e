/** What a session can do, told by what it has: any object with a session's shape is one. */

import type { SandboxPortSession, SandboxProcessSession, SandboxSession, SandboxTextPageSession } from "./types.js";

/** Whether it publishes ports and waits for them (0.4). */
export function isSandboxPortSession(session: SandboxSession): session is SandboxPortSession {
  return Array.isArray((session as Partial<SandboxPortSession>).publishedPorts) && hasMethods(session, ["waitForPort"]);
}

/** Whether it keeps processes running (0.4). */
export function isSandboxProcessSession(session: SandboxSession): session is SandboxProcessSession {
  return hasMethods(session, ["startProcess", "listProcesses", "readProcessLogs", "stopProcess"]);
}

/** Whether it reads text files page by page itself (0.6). The original has no such guard: it looks for the method. */
export function isSandboxTextPageSession(session: SandboxSession): session is SandboxTextPageSession {
  return hasMethods(session, ["readTextFilePage"]);
}

function hasMethods(session: SandboxSession, names: readonly string[]): boolean {
  return names.every((name) => typeof (session as unknown as Record<string, unknown>)[name] === "function");
}
