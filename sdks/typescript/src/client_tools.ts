/** Tools of one's own for an agent: the server asks for their results, and this client calls them. */

import { EyotError } from "./error.js";

/** A tool that this program defines, and answers. */
export interface ClientTool<Arguments = any> {
  /** At most 64 letters, digits, `_` and `-`. No tool of the agent has it. */
  name: string;
  /** What the model is told about it. */
  description: string;
  /** The JSON Schema of its arguments; its `type` is `object`. */
  parameters: object;
  /**
   * Does the work. A text is for the model as it is, anything else as JSON. What is thrown is told to the model, as an error. Calls
   * of one turn run at the same time.
   */
  execute(args: Arguments, context: ToolCallContext): unknown;
}

/** The call that a tool is to answer. */
export interface ToolCallContext {
  /** The id of the call, as in the events `tool_start` and `tool_call`. */
  toolCallId: string;
  /** The time by which the server wants the answer, in milliseconds since 1970, by its clock. */
  deadlineMs: number;
  /** Aborted when nobody waits for the answer any more: the run has ended, or is no longer followed. */
  signal: AbortSignal;
}

/** A call as it comes over the wire. */
export interface ToolRequest {
  id: string;
  tool: string;
  arguments: unknown;
  deadline_ms: number;
}

/** An answer as it goes over the wire. */
export interface ToolCallAnswer {
  content: string;
  is_error: boolean;
}

/** A tool as it goes over the wire. */
export function toolBody({ name, description, parameters }: ClientTool): Omit<ClientTool, "execute"> {
  return { name, description, parameters };
}

/** The calls of a run's own tools. */
export class ToolCalls {
  /** The calls that were begun. An id alone is not enough: some models use theirs again. */
  readonly #begun = new Set<string>();
  readonly #end = new AbortController();
  readonly #post: (call: string, answer: ToolCallAnswer) => Promise<void>;

  constructor(
    /** The tools that this program answers. */
    readonly tools: readonly ClientTool[],
    post: (call: string, answer: ToolCallAnswer) => Promise<void>,
    following: AbortSignal,
  ) {
    this.#post = post;
    if (following.aborted) this.end();
    else following.addEventListener("abort", () => this.end(), { once: true });
  }

  /** Nobody waits for their answers any more. */
  end(): void {
    this.#end.abort();
  }

  /** Begins a call, unless it was begun, or its tool is another program's. */
  take(request: ToolRequest): void {
    const tool = this.tools.find(({ name }) => name === request.tool);
    const key = `${request.id} ${request.deadline_ms}`;
    if (tool === undefined || this.#begun.has(key) || this.#end.signal.aborted) return;
    this.#begun.add(key);
    void this.#work(tool, request);
  }

  async #work(tool: ClientTool, request: ToolRequest): Promise<void> {
    const answer = await this.#answer(tool, request);
    if (this.#end.signal.aborted) return;
    try {
      await this.#post(request.id, answer);
    } catch (error) {
      if (isRefused(error)) await this.#post(request.id, { content: `its answer can't be sent: ${error.message}`, is_error: true }).catch(() => {});
      // Else nobody waits for it, or the server can't be reached: at the deadline the model is told.
    }
  }

  async #answer(tool: ClientTool, request: ToolRequest): Promise<ToolCallAnswer> {
    const context = { toolCallId: request.id, deadlineMs: request.deadline_ms, signal: this.#end.signal };
    try {
      const result = await tool.execute(request.arguments, context);
      return { content: typeof result === "string" ? result : (JSON.stringify(result) ?? ""), is_error: false };
    } catch (error) {
      return { content: error instanceof Error ? error.message : String(error), is_error: true };
    }
  }
}

/** Whether the server did not want the answer itself, such as one that is too large. */
function isRefused(error: unknown): error is EyotError {
  return error instanceof EyotError && (error.kind === "too_large" || error.kind === "invalid");
}
