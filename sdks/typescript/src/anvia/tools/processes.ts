/** `start_process`, `list_processes`, `read_process_logs` and `stop_process` (0.4). */

import { z } from "zod";
import { SandboxToolPolicyError } from "../errors.js";
import { isSandboxProcessSession } from "../guards.js";
import type { SandboxProcess, SandboxProcessSession, SandboxSession, SandboxToolsOptions } from "../types.js";
import { checkProgram } from "./commands.js";
import { outputParts } from "./output.js";
import { MAX_LOG_BYTES } from "./process_policy.js";
import { type AgentTool, tool } from "./tool.js";

const startProcessInput = z.object({
  command: z.string().min(1).describe("Executable to run as a managed sandbox process."),
  args: z.array(z.string()).optional().describe("Command arguments."),
  cwd: z.string().optional().describe("Relative working directory inside the sandbox."),
  env: z.record(z.string(), z.string()).optional().describe("Environment variables for this process."),
});

const processIdInput = z.object({ processId: z.string().min(1).describe("Managed process identifier.") });

const readLogsInput = processIdInput.extend({
  tailBytes: z
    .number()
    .int()
    .min(0)
    .max(MAX_LOG_BYTES)
    .optional()
    .describe("Maximum trailing bytes to return from each output stream."),
});

/**
 * The session, as one that keeps processes running.
 *
 * @throws {SandboxToolPolicyError} where it keeps none.
 */
export function withProcesses(session: SandboxSession): SandboxProcessSession {
  if (isSandboxProcessSession(session)) return session;
  throw new SandboxToolPolicyError("The sandbox session does not support managed process tools.");
}

/** Starts what `exec_command` might run. */
export function startProcessTool(session: SandboxProcessSession, options: SandboxToolsOptions): AgentTool {
  return tool({
    name: "start_process",
    description:
      "Start a managed long-running process inside the sandbox. Use list_ports first and bind web servers to 0.0.0.0.",
    input: startProcessInput,
    async run(args) {
      checkProgram(args, session.workdir, options.exec);
      return processText(await session.startProcess(args));
    },
  });
}

/** Says what runs, and what ended and is still known. */
export function listProcessesTool(session: SandboxProcessSession): AgentTool {
  return tool({
    name: "list_processes",
    description: "List managed sandbox processes and their current status.",
    input: z.object({}),
    async run() {
      const processes = await session.listProcesses();
      return processes.length === 0 ? "No managed processes." : processes.map(processText).join("\n\n");
    },
  });
}

/** The end of what a process wrote: `maxLogBytes` of each stream where the call says nothing, and at the most. */
export function readProcessLogsTool(session: SandboxProcessSession, options: SandboxToolsOptions): AgentTool {
  return tool({
    name: "read_process_logs",
    description: "Read recent stdout and stderr from a managed sandbox process.",
    input: readLogsInput,
    async run(args) {
      const maxLogBytes = options.process?.maxLogBytes ?? 65_536;
      const tailBytes = args.tailBytes ?? maxLogBytes;
      if (tailBytes > maxLogBytes) {
        throw new SandboxToolPolicyError(`Process log request exceeds sandbox tool policy (${tailBytes} > ${maxLogBytes}).`);
      }
      const parts = outputParts(await session.readProcessLogs(args.processId, { tailBytes }));
      return parts.length === 0 ? "No process output." : parts.join("\n\n");
    },
  });
}

/** Ends a process with its whole tree. */
export function stopProcessTool(session: SandboxProcessSession, options: SandboxToolsOptions): AgentTool {
  return tool({
    name: "stop_process",
    description: "Stop a managed sandbox process.",
    input: processIdInput,
    async run({ processId }) {
      const gracePeriodMs = options.process?.stopGracePeriodMs ?? 5_000;
      return processText(await session.stopProcess(processId, { gracePeriodMs }));
    },
  });
}

function processText({ id, status, command, args, exitCode }: SandboxProcess): string {
  const lines = [`process_id: ${id}`, `status: ${status}`, `command: ${[command, ...args].join(" ")}`];
  if (exitCode !== undefined) lines.push(`exit_code: ${exitCode}`);
  return lines.join("\n");
}
