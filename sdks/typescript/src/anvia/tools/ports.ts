/** `list_ports` and `wait_for_port` (0.4). */

import { z } from "zod";
import { SandboxToolPolicyError } from "../errors.js";
import { isSandboxPortSession } from "../guards.js";
import type { SandboxPortSession, SandboxProcessToolPolicy, SandboxPublishedPort, SandboxSession } from "../types.js";
import { MAX_WAIT_TIMEOUT_MS } from "./process_policy.js";
import { type AgentTool, tool } from "./tool.js";

const waitForPortInput = z.object({
  containerPort: z.number().int().min(1).max(65_535).describe("Pre-authorized TCP port inside the sandbox container."),
  timeoutMs: z
    .number()
    .int()
    .positive()
    .max(MAX_WAIT_TIMEOUT_MS)
    .optional()
    .describe("Maximum time to wait for the port to accept connections."),
});

/**
 * The session, as one that has ports.
 *
 * @throws {SandboxToolPolicyError} where it has none.
 */
export function withPorts(session: SandboxSession): SandboxPortSession {
  if (isSandboxPortSession(session)) return session;
  throw new SandboxToolPolicyError("The sandbox session does not support published port tools.");
}

/** Says which ports there are, and where they are reached. */
export function listPortsTool(session: SandboxPortSession): AgentTool {
  return tool({
    name: "list_ports",
    description: "List pre-authorized sandbox preview ports. Servers must bind to 0.0.0.0 on a listed container port.",
    input: z.object({}),
    async run() {
      const lines = session.publishedPorts.map((port) => `${inside(port)}\t${outside(port)}`);
      return lines.length === 0 ? "No sandbox ports are published." : lines.join("\n");
    },
  });
}

/** Waits until something listens there: `defaultWaitTimeoutMs` where the call says nothing, `maxWaitTimeoutMs` at the most. */
export function waitForPortTool(session: SandboxPortSession, policy: SandboxProcessToolPolicy = {}): AgentTool {
  return tool({
    name: "wait_for_port",
    description: "Wait until a pre-authorized sandbox TCP port is accepting connections.",
    input: waitForPortInput,
    async run(args) {
      const timeoutMs = allowedWaitMs(args.timeoutMs, policy);
      const port = await session.waitForPort(args.containerPort, { timeoutMs });
      return `ready: ${inside(port)} -> ${outside(port)}`;
    },
  });
}

function allowedWaitMs(asked: number | undefined, policy: SandboxProcessToolPolicy): number {
  const maxWaitTimeoutMs = policy.maxWaitTimeoutMs ?? MAX_WAIT_TIMEOUT_MS;
  const timeoutMs = asked ?? policy.defaultWaitTimeoutMs ?? 30_000;
  if (timeoutMs <= maxWaitTimeoutMs) return timeoutMs;
  throw new SandboxToolPolicyError(`Port wait timeout exceeds sandbox tool policy (${timeoutMs} > ${maxWaitTimeoutMs}).`);
}

function inside({ containerPort, protocol }: SandboxPublishedPort): string {
  return `${containerPort}/${protocol}`;
}

function outside({ host, hostPort }: SandboxPublishedPort): string {
  return `${host}:${hostPort}`;
}
