/** `write_file` and `list_files`. */

import { z } from "zod";
import type { SandboxFileEntry, SandboxFileToolPolicy, SandboxSession } from "../types.js";
import { fitsInto } from "./read_file.js";
import { type AgentTool, tool } from "./tool.js";

const writeFileInput = z.object({
  path: z.string().min(1).describe("Relative file path inside the sandbox."),
  content: z.string().describe("Complete text content to write."),
});

const listFilesInput = z.object({
  path: z.string().optional().describe("Relative directory path inside the sandbox. Defaults to root."),
});

/** Writes a whole file, no larger than the policy allows. */
export function writeFileTool(session: SandboxSession, policy: SandboxFileToolPolicy = {}): AgentTool {
  return tool({
    name: "write_file",
    description: "Write a text file inside the sandbox workspace. Creates parent directories.",
    input: writeFileInput,
    async run({ path, content }) {
      fitsInto(policy.maxBytes, content);
      await session.writeTextFile(path, content);
      return `Wrote ${path}`;
    },
  });
}

/** One line for each name in a directory. */
export function listFilesTool(session: SandboxSession): AgentTool {
  return tool({
    name: "list_files",
    description: "List files and directories inside the sandbox workspace.",
    input: listFilesInput,
    async run({ path }) {
      const entries = await session.listFiles(path);
      return entries.length === 0 ? "No files found." : entries.map(entryLine).join("\n");
    },
  });
}

function entryLine({ type, size, path }: SandboxFileEntry): string {
  return `${type}${size === undefined ? "" : ` ${size}b`}\t${path}`;
}
