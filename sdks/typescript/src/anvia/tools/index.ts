/**
 * A session as tools of Anvia's agents. Which tools there are and in what order, what they are called and what the model is told
 * are the original's; so is what each answers.
 */

import type { SandboxSession, SandboxToolName, SandboxToolsOptions } from "../types.js";
import { execCommandTool } from "./commands.js";
import { listFilesTool, writeFileTool } from "./files.js";
import { listPortsTool, waitForPortTool, withPorts } from "./ports.js";
import { checkProcessPolicy } from "./process_policy.js";
import { listProcessesTool, readProcessLogsTool, startProcessTool, stopProcessTool, withProcesses } from "./processes.js";
import { readFileTool } from "./read_file.js";
import type { AgentTool } from "./tool.js";

/** How each tool is made, in the order in which they are handed out. */
const MAKERS: Record<SandboxToolName, (session: SandboxSession, options: SandboxToolsOptions) => AgentTool> = {
  exec_command: execCommandTool,
  read_file: (session, options) => readFileTool(session, options.readFile),
  write_file: (session, options) => writeFileTool(session, options.writeFile),
  list_files: listFilesTool,
  list_ports: (session) => listPortsTool(withPorts(session)),
  start_process: (session, options) => startProcessTool(withProcesses(session), options),
  list_processes: (session) => listProcessesTool(withProcesses(session)),
  read_process_logs: (session, options) => readProcessLogsTool(withProcesses(session), options),
  stop_process: (session, options) => stopProcessTool(withProcesses(session), options),
  wait_for_port: (session, options) => waitForPortTool(withPorts(session), options.process),
};

const DEFAULT_TOOLS: readonly SandboxToolName[] = ["exec_command", "read_file", "write_file", "list_files"];

const PORT_TOOLS: readonly SandboxToolName[] = ["list_ports", "wait_for_port"];

/** Those that the process policy is for. */
const PROCESS_TOOLS: readonly SandboxToolName[] = [
  "start_process",
  "list_processes",
  "read_process_logs",
  "stop_process",
  "wait_for_port",
];

/** By this Anvia's studio finds the session behind a tool. */
const METADATA = Symbol.for("anvia.sandbox.tool.metadata");

/**
 * Makes tools of a session, which may be any object of that shape. `allow`, else `include`, says which; by default the four of
 * commands and files.
 *
 * Otherwise than with the original, `readFile.mode: "text"` brings the `read_file` of before 0.6 back, and more programs are
 * refused where a policy names some: docs/anvia.md lists them.
 *
 * @throws {SandboxToolPolicyError} where the session can't do what a chosen tool needs, or the process policy makes no sense.
 */
export function createSandboxTools(session: SandboxSession, options: SandboxToolsOptions = {}): AgentTool[] {
  const chosen = new Set(options.allow ?? options.include ?? DEFAULT_TOOLS);
  if (PORT_TOOLS.some((name) => chosen.has(name))) withPorts(session);
  if (PROCESS_TOOLS.some((name) => chosen.has(name))) checkProcessPolicy(options.process);
  const names = (Object.keys(MAKERS) as SandboxToolName[]).filter((name) => chosen.has(name));
  return names.map((name) => Object.defineProperty(MAKERS[name](session, options), METADATA, { value: { session } }));
}
