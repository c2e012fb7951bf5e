/** A tool called as a model calls it: whatever is wrong with the call is for the model to read. */

import type { EyotClient } from "../client.js";
import { EyotError } from "../error.js";
import type { CallOptions } from "../files.js";

/** Which tools. */
export interface ToolsetOptions {
  /** `pool` (the default), `coding`, `workspace`, `anthropic`. */
  toolset?: string;
}

/** What a tool answers. */
export interface ToolResult {
  /** What the model reads. */
  content: string;
  /** The same as data, where the tool has it. */
  structured?: unknown;
  isError: boolean;
}

/** The toolset, where nobody names one. */
export const DEFAULT_TOOLSET = "pool";

/** Calls a tool. It throws only when the server can't be asked; an abort takes the call with it. */
export async function callAsModel(client: EyotClient, toolset: string, name: string, input: unknown, options: CallOptions = {}): Promise<ToolResult> {
  try {
    const { content, ...rest } = await client.callTool(toolset, name, input, options);
    return { content: content.join("\n"), ...rest };
  } catch (error) {
    if (error instanceof EyotError && isTheModels(error)) return { content: error.message, isError: true };
    throw error;
  }
}

/** Arguments as a model wrote them. */
export async function callWithText(client: EyotClient, toolset: string, name: string, text: string, options: CallOptions = {}): Promise<ToolResult> {
  let input: unknown;
  try {
    input = text.trim() === "" ? {} : JSON.parse(text);
  } catch (error) {
    return { content: `the arguments are no JSON: ${error instanceof Error ? error.message : String(error)}`, isError: true };
  }
  return await callAsModel(client, toolset, name, input, options);
}

/** No such tool, or a body that is none. */
function isTheModels({ status }: EyotError): boolean {
  return status === 400 || status === 404;
}
