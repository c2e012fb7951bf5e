/**
 * `read_file` in its two forms: a page of the file, as of 0.6, or the whole text, as before. The page is the default, for the
 * newest original answers with it; a text file that is larger than a model can take is then cut and can be read on.
 */

import { z } from "zod";
import { SandboxToolPolicyError } from "../errors.js";
import { isSandboxTextPageSession } from "../guards.js";
import { type TextPageBounds, createTextFilePage } from "../text_page.js";
import type { SandboxReadFileToolPolicy, SandboxSession, SandboxTextFilePage } from "../types.js";
import { type AgentTool, tool } from "./tool.js";

const MAX_LINE_COUNT = 10_000;
const MAX_BYTES = 1_048_576;

const path = z.string().min(1).describe("Relative file path inside the sandbox.");

const textInput = z.object({ path });

const pageInput = z.object({
  path,
  startLine: z.number().int().positive().optional().describe("One-based first line to read. Defaults to 1."),
  lineCount: z.number().int().positive().max(MAX_LINE_COUNT).optional().describe("Maximum lines to return. Defaults to 500."),
});

/** The form that the policy's `mode` chooses. */
export function readFileTool(session: SandboxSession, policy: SandboxReadFileToolPolicy = {}): AgentTool {
  return policy.mode === "text" ? readTextTool(session, policy) : readPageTool(session, policy);
}

/** The seed's: all of it as text, or a refusal. */
function readTextTool(session: SandboxSession, { maxBytes }: SandboxReadFileToolPolicy): AgentTool {
  return tool({
    name: "read_file",
    description: "Read a text file from the sandbox workspace.",
    input: textInput,
    async run(args) {
      const text = await session.readTextFile(args.path);
      fitsInto(maxBytes, text);
      return text;
    },
  });
}

/** That of 0.6: a page object, cut at the limits. */
function readPageTool(session: SandboxSession, policy: SandboxReadFileToolPolicy): AgentTool {
  return tool({
    name: "read_file",
    description: "Read a bounded page of a text file from the sandbox workspace. Continue with nextStartLine when provided.",
    input: pageInput,
    async run(args) {
      const bounds = { startLine: args.startLine ?? 1, ...allowedPage(args.lineCount, policy) };
      return readPage(session, args.path, bounds);
    },
  });
}

/** By the session where it knows pages, else out of the whole text. */
async function readPage(session: SandboxSession, file: string, bounds: TextPageBounds): Promise<SandboxTextFilePage> {
  if (isSandboxTextPageSession(session)) return session.readTextFilePage(file, bounds);
  return createTextFilePage(await session.readTextFile(file), bounds);
}

/** How much the call may have, where that makes sense. */
function allowedPage(asked: number | undefined, policy: SandboxReadFileToolPolicy): Omit<TextPageBounds, "startLine"> {
  const { defaultLineCount = 500, maxLineCount = 2_000, maxBytes = 65_536 } = policy;
  if (!isPositive(defaultLineCount)) refuse("File defaultLineCount must be a positive integer.");
  if (!isPositive(maxLineCount, MAX_LINE_COUNT)) {
    refuse(`File maxLineCount must be a positive integer no greater than ${MAX_LINE_COUNT}.`);
  }
  if (defaultLineCount > maxLineCount) {
    refuse(`File defaultLineCount exceeds maxLineCount (${defaultLineCount} > ${maxLineCount}).`);
  }
  if (!isPositive(maxBytes, MAX_BYTES)) refuse(`File maxBytes must be a positive integer no greater than ${MAX_BYTES}.`);
  const lineCount = asked ?? defaultLineCount;
  if (lineCount > maxLineCount) {
    refuse(`File read line count exceeds sandbox tool policy (${lineCount} > ${maxLineCount}).`);
  }
  return { lineCount, maxBytes };
}

function isPositive(value: number, max = Infinity): boolean {
  return Number.isInteger(value) && value > 0 && value <= max;
}

function refuse(message: string): never {
  throw new SandboxToolPolicyError(message);
}

/**
 * Refuses a text of more than so many bytes of UTF-8.
 *
 * @throws {SandboxToolPolicyError}
 */
export function fitsInto(maxBytes: number | undefined, text: string): void {
  if (maxBytes !== undefined && Buffer.byteLength(text) > maxBytes) {
    refuse("File content exceeds sandbox tool policy.");
  }
}
