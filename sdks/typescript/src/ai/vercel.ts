/** Tools for the Vercel AI SDK (`ai`, from 5): `generateText({tools, …})`. */

import type { EyotClient } from "../client.js";
import type { ToolsetOptions } from "./call.js";
import { toolMap } from "./tool_map.js";

/** What the AI SDK hands to a call, as far as it is used. */
interface ExecutionOptions {
  abortSignal?: AbortSignal | undefined;
}

/** A tool; `inputSchema` is what the SDK's own `jsonSchema` made. */
export interface AiSdkTool<Schema> {
  description: string;
  inputSchema: Schema;
  execute(input: unknown, options: ExecutionOptions): Promise<string>;
}

/** How to make tools. */
export interface AiSdkOptions<Schema> extends ToolsetOptions {
  /** `jsonSchema` of the application's own copy of `ai`. */
  jsonSchema: (schema: Record<string, unknown>) => Schema;
}

/** A tool that failed: the SDK shows the model its message. */
export class ToolFailedError extends Error {
  override readonly name = "ToolFailedError";
}

/** The tools of a toolset for the AI SDK. A tool that fails throws, which the SDK makes an error for the model. */
export async function aiSdkTools<Schema>(client: EyotClient, options: AiSdkOptions<Schema>): Promise<Record<string, AiSdkTool<Schema>>> {
  const { jsonSchema, ...chosen } = options;
  const tools = Object.entries(await toolMap(client, chosen)).map(([name, { description, inputSchema, handler }]) => {
    const execute = async (input: unknown, { abortSignal }: ExecutionOptions): Promise<string> => {
      const { content, isError } = await handler(input, { signal: abortSignal });
      if (isError) throw new ToolFailedError(content);
      return content;
    };
    return [name, { description, inputSchema: jsonSchema(inputSchema), execute }] as const;
  });
  return Object.fromEntries(tools);
}
