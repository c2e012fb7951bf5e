/** Tools as a map from names to `{description, inputSchema, handler}`, for an agent loop of one's own. */

import type { EyotClient } from "../client.js";
import type { CallOptions } from "../files.js";
import { DEFAULT_TOOLSET, type ToolResult, type ToolsetOptions, callAsModel } from "./call.js";

/** A tool, and what answers its calls. */
export interface MappedTool {
  description: string;
  inputSchema: Record<string, unknown>;
  handler(input: unknown, options?: CallOptions): Promise<ToolResult>;
}

/** A tool as the Model Context Protocol declares it. */
interface McpTool {
  name: string;
  description?: string;
  inputSchema: Record<string, unknown>;
}

/** The tools of a toolset by their names. */
export async function toolMap(client: EyotClient, { toolset = DEFAULT_TOOLSET }: ToolsetOptions = {}): Promise<Record<string, MappedTool>> {
  const tools = (await client.tools(toolset, "mcp")) as McpTool[];
  const mapped = ({ name, description = "", inputSchema }: McpTool): [string, MappedTool] => [
    name,
    { description, inputSchema, handler: (input, options) => callAsModel(client, toolset, name, input, options) },
  ];
  return Object.fromEntries(tools.map(mapped));
}
