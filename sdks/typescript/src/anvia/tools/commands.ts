/** `exec_command`, and which commands a model may run for how long. */

import { posix } from "node:path";
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
      checkProgram(args, session.workdir, options.exec);
      const timeoutMs = allowedTimeoutMs(args.timeoutMs, options);
      return execText(await session.exec(timeoutMs === undefined ? args : { ...args, timeoutMs }));
    },
  });
}

/** The program that a call asks for. */
export type ProgramRequest = {
  command: string;
  cwd?: string | undefined;
  env?: Readonly<Record<string, string>> | undefined;
};

/**
 * Refuses a program that the policy does not let through. What the original refuses is refused in its words, and so is what would
 * get around a list: a blocked program by its path, an allowed path that leads elsewhere from the call's `cwd`, and a call that sets
 * what an allowed name means. Whoever may run `sh` may still run anything.
 *
 * The library for Rust has the same rules (`ExecPolicy`), and one table of cases is for both: `anvia_policies.json`.
 *
 * @throws {SandboxToolPolicyError}
 */
export function checkProgram(asked: ProgramRequest, workdir: string, policy: SandboxExecToolPolicy = {}): void {
  const { command } = asked;
  const { allowedCommands: allowed, blockedCommands: blocked = [] } = policy;
  if (blocked.includes(command)) throw isBlocked(command);
  if (allowed && !allowed.includes(command)) throw isNotAllowed(command);
  const file = fileOf(asked, workdir);
  if (file !== undefined && blocked.some((entry) => isFileOf(entry, file, workdir))) throw isBlocked(command);
  if (!allowed) return;
  if (file !== undefined && file !== posix.resolve(workdir, command)) throw isNotAllowed(command);
  const variable = Object.keys(asked.env ?? {}).find((name) => name === "PATH" || name.startsWith("LD_"));
  if (variable !== undefined) {
    throw new SandboxToolPolicyError(`Environment variable is not allowed by sandbox tool policy: ${variable}`);
  }
}

/** The file that a path leads to from the call's directory; of a name that `PATH` finds there is none. */
function fileOf({ command, cwd = "." }: ProgramRequest, workdir: string): string | undefined {
  return command.includes("/") ? posix.resolve(workdir, cwd.replaceAll("\\", "/"), command) : undefined;
}

/** Whether an entry means the file: as a path, or as the name of any program of that name. */
function isFileOf(entry: string, file: string, workdir: string): boolean {
  return entry.includes("/") ? posix.resolve(workdir, entry) === file : posix.basename(file) === entry;
}

function isBlocked(command: string): SandboxToolPolicyError {
  return new SandboxToolPolicyError(`Command is blocked by sandbox tool policy: ${command}`);
}

function isNotAllowed(command: string): SandboxToolPolicyError {
  return new SandboxToolPolicyError(`Command is not allowed by sandbox tool policy: ${command}`);
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
