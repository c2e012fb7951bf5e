/** Eyot's tools for the SDKs that agents are written with. */

export * from "./anthropic.js";
export { callAsModel } from "./call.js";
export type { ToolResult, ToolsetOptions } from "./call.js";
export * from "./openai.js";
export * from "./tool_map.js";
export * from "./vercel.js";
