/** Tools for Anthropic's messages: `client.messages.create({tools, …})`. */

import type { EyotClient } from "../client.js";
import type { CallOptions } from "../files.js";
import { DEFAULT_TOOLSET, type ToolsetOptions, callAsModel } from "./call.js";

/** A tool's declaration. */
export interface AnthropicTool {
  name: string;
  description?: string;
  input_schema: { type: "object"; properties?: unknown; required?: string[] };
}

/** A model's call of a tool, as a block of its message. */
export interface AnthropicToolUse {
  type: "tool_use";
  id: string;
  name: string;
  input: unknown;
}

/** The answer, as a block of the next user message. */
export interface AnthropicToolResult {
  type: "tool_result";
  tool_use_id: string;
  content: string;
  is_error: boolean;
}

/** Declarations, and what answers the calls. */
export interface AnthropicTools {
  tools: AnthropicTool[];
  /** Answers one call. */
  handle(call: AnthropicToolUse, options?: CallOptions): Promise<AnthropicToolResult>;
  /** Answers all calls of a message's content, at the same time. */
  handleAll(content: readonly { type: string }[], options?: CallOptions): Promise<AnthropicToolResult[]>;
}

/** The tools of a toolset for Anthropic's SDK. */
export async function anthropicTools(client: EyotClient, { toolset = DEFAULT_TOOLSET }: ToolsetOptions = {}): Promise<AnthropicTools> {
  const tools = (await client.tools(toolset, "anthropic")) as AnthropicTool[];
  const handle = async (call: AnthropicToolUse, options?: CallOptions): Promise<AnthropicToolResult> => {
    const { content, isError } = await callAsModel(client, toolset, call.name, call.input, options);
    return { type: "tool_result", tool_use_id: call.id, content, is_error: isError };
  };
  const isCall = (block: { type: string }): block is AnthropicToolUse => block.type === "tool_use";
  return { tools, handle, handleAll: (content, options) => Promise.all(content.filter(isCall).map((call) => handle(call, options))) };
}
