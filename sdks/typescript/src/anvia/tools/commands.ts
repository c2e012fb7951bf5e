/** `exec_command`, and which commands a model may run for how long. */

import { z } from "zod";
import { SandboxToolPolicyError } from "../errors.js";
import type { SandboxExecResult, SandboxExecToolPolicy, SandboxSession, SandboxToolsOptions } from "../types.js";
import { outputParts } from "./output.js";
import { type AgentTool, tool } from "./tool.js";

const execCommandInput = z.object({
  command: z.string().min(1).describe("Executable to run inside the sandbox workspace."),
  args: z.array(z.string()).optional().describe("Command arguments."),
  cwd: z.string().optional().describe("Relative working directory inside the sandbox."),
  env: z.record(z.string(), z.string()).optional().describe("Environment variables for this command."),
  timeoutMs: z.number().int().positive().max(300_000).optional().describe("Optional command timeout in milliseconds."),
  input: z.string().optional().describe("Optional stdin text to pass to the command."),
});

/** Runs a program, without a shell; what it wrote and exited with comes back as text. */
export function execCommandTool(session: SandboxSession, options: SandboxToolsOptions): AgentTool {
  return tool({
    name: "exec_command",
    description: "Run a command inside the sandbox workspace. Use structured args instead of shell quoting.",
    input: execCommandInput,
    async run(args) {
      mayRun(args.command, options.exec);
      const timeoutMs = allowedTimeoutMs(args.timeoutMs, options);
      return execText(await session.exec(timeoutMs === undefined ? args : { ...args, timeoutMs }));
    },
  });
}

/**
 * Refuses a command that the policy does not let through. It is compared as it stands: `node` and `/usr/bin/node` are two commands,
 * and whoever may run `sh` may run anything.
 *
 * @throws {SandboxToolPolicyError}
 */
export function mayRun(command: string, policy: SandboxExecToolPolicy = {}): void {
  if (policy.blockedCommands?.includes(command)) {
    throw new SandboxToolPolicyError(`Command is blocked by sandbox tool policy: ${command}`);
  }
  if (policy.allowedCommands && !policy.allowedCommands.includes(command)) {
    throw new SandboxToolPolicyError(`Command is not allowed by sandbox tool policy: ${command}`);
  }
}

/** The call's own, else the policy's default, else `execTimeoutMs`, else the session's: that one is not compared with the maximum. */
function allowedTimeoutMs(asked: number | undefined, options: SandboxToolsOptions): number | undefined {
  const timeoutMs = asked ?? options.exec?.defaultTimeoutMs ?? options.execTimeoutMs;
  const maxTimeoutMs = options.exec?.maxTimeoutMs;
  if (timeoutMs !== undefined && maxTimeoutMs !== undefined && timeoutMs > maxTimeoutMs) {
    throw new SandboxToolPolicyError(`Command timeout exceeds sandbox tool policy (${timeoutMs} > ${maxTimeoutMs}).`);
  }
  return timeoutMs;
}

function execText(result: SandboxExecResult): string {
  const ended = [`exit_code: ${result.exitCode}`];
  if (result.timedOut) ended.push("timed_out: true");
  if (result.aborted) ended.push("aborted: true");
  return [...ended, ...outputParts(result)].join("\n\n");
}
