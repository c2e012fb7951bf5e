/** What a tool is made of: a name, a sentence for the model, a schema that its arguments are parsed by, and what is then done. */

import { z } from "zod";
import type { SandboxTool, SandboxToolDefinition, SandboxToolName } from "../types.js";

/** What JSON has, in the words of Anvia's agents: they take only tools whose schema is of this type. */
export type JsonValue = string | number | boolean | null | JsonObject | JsonValue[];
export type JsonObject = { [key: string]: JsonValue | undefined };

/** A tool as Anvia's agents take it, whatever they are called with. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- an agent's tools answer with this and that.
export type AgentTool = Omit<SandboxTool<unknown, any>, "definition"> & {
  definition(): SandboxToolDefinition & { parameters: JsonObject };
};

/** A tool before it is one. */
export type ToolParts<Input extends z.ZodObject, Output> = {
  name: SandboxToolName;
  description: string;
  input: Input;
  /** Told what `input` made of the arguments: without keys that it does not know. What it throws, the call throws. */
  run(args: z.output<Input>): Promise<Output>;
};

/** Makes the tool. Its call throws a `ZodError` where the arguments do not fit. */
export function tool<Input extends z.ZodObject, Output>(parts: ToolParts<Input, Output>): AgentTool {
  const { name, description, input, run } = parts;
  const definition = { name, description, parameters: jsonSchema(input) };
  return { name, definition: () => definition, call: async (args) => run(input.parse(args)) };
}

/** Providers want a bare schema, without the name of its dialect. */
function jsonSchema(input: z.ZodType): JsonObject {
  const { $schema: _, ...schema } = z.toJSONSchema(input);
  return schema as JsonObject;
}
