/** Tools for OpenAI's SDK: chat completions, and responses. */

import type { EyotClient } from "../client.js";
import type { CallOptions } from "../files.js";
import { DEFAULT_TOOLSET, type ToolsetOptions, callWithText } from "./call.js";

/** A declaration for chat completions. */
export interface OpenAiTool {
  type: "function";
  function: { name: string; description?: string; parameters: Record<string, unknown> };
}

/** A model's call in a chat completion. */
export interface OpenAiToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** The answer, as a message. */
export interface OpenAiToolMessage {
  role: "tool";
  tool_call_id: string;
  content: string;
}

/** Declarations, and what answers the calls. */
export interface OpenAiTools {
  tools: OpenAiTool[];
  /** Answers one call. */
  handle(call: OpenAiToolCall, options?: CallOptions): Promise<OpenAiToolMessage>;
  /** Answers all function calls of a message, at the same time. */
  handleAll(calls: readonly { type: string }[] | null | undefined, options?: CallOptions): Promise<OpenAiToolMessage[]>;
}

/** The tools of a toolset for chat completions. */
export async function openaiTools(client: EyotClient, { toolset = DEFAULT_TOOLSET }: ToolsetOptions = {}): Promise<OpenAiTools> {
  const tools = (await client.tools(toolset, "openai")) as OpenAiTool[];
  const handle = async (call: OpenAiToolCall, options?: CallOptions): Promise<OpenAiToolMessage> => {
    const { content } = await callWithText(client, toolset, call.function.name, call.function.arguments, options);
    return { role: "tool", tool_call_id: call.id, content };
  };
  const isCall = (call: { type: string }): call is OpenAiToolCall => call.type === "function";
  return { tools, handle, handleAll: (calls, options) => Promise.all((calls ?? []).filter(isCall).map((call) => handle(call, options))) };
}

/** A declaration for responses. */
export interface OpenAiResponsesTool {
  type: "function";
  name: string;
  description?: string;
  parameters: Record<string, unknown>;
  strict: boolean;
}

/** A model's call, as an item of a response's output. */
export interface OpenAiFunctionCall {
  type: "function_call";
  call_id: string;
  name: string;
  arguments: string;
}

/** The answer, as an item of the next input. */
export interface OpenAiFunctionCallOutput {
  type: "function_call_output";
  call_id: string;
  output: string;
}

/** Declarations, and what answers the calls. */
export interface OpenAiResponsesTools {
  tools: OpenAiResponsesTool[];
  /** Answers one call. */
  handle(call: OpenAiFunctionCall, options?: CallOptions): Promise<OpenAiFunctionCallOutput>;
  /** Answers all function calls of a response's output, at the same time. */
  handleAll(output: readonly { type: string }[], options?: CallOptions): Promise<OpenAiFunctionCallOutput[]>;
}

/** The tools of a toolset for responses. */
export async function openaiResponsesTools(client: EyotClient, { toolset = DEFAULT_TOOLSET }: ToolsetOptions = {}): Promise<OpenAiResponsesTools> {
  const tools = (await client.tools(toolset, "openai-responses")) as OpenAiResponsesTool[];
  const handle = async (call: OpenAiFunctionCall, options?: CallOptions): Promise<OpenAiFunctionCallOutput> => {
    const { content } = await callWithText(client, toolset, call.name, call.arguments, options);
    return { type: "function_call_output", call_id: call.call_id, output: content };
  };
  const isCall = (item: { type: string }): item is OpenAiFunctionCall => item.type === "function_call";
  return { tools, handle, handleAll: (output, options) => Promise.all(output.filter(isCall).map((call) => handle(call, options))) };
}
