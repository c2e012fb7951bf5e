/** The events of an agent's run, as the server tells them. The names of the fields are Flue's. */

/** The price of tokens, in the unit of the model's prices, usually dollars. */
export interface TokenCost {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  total: number;
}

/** The tokens that one or more turns took. */
export interface TokenUsage {
  /** What the model read, without what came from its cache. */
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: TokenCost;
}

/** A failure: its kind, and one sentence. */
export interface AgentFailure {
  /** The kind: `ModelError`, `AbortError`, … */
  name: string;
  message: string;
}

/** An operation of a session. */
export type AgentOperation = "prompt" | "skill" | "task" | "shell" | "compact";

/** The fields that every event has. */
export interface EventOrigin {
  /** Counts the run's events from 0, without gaps. */
  eventIndex: number;
  /** The time, in RFC 3339 with milliseconds. */
  timestamp: string;
  runId?: string;
  session?: string;
  /** The session that gave the task of this one. */
  parentSession?: string;
  /** The task. */
  taskId?: string;
  harness?: string;
  operationId?: string;
}

/** The fields of each kind of event, by the kind's name. */
export interface AgentEventFields {
  run_start: { instanceId: string; agentName: string; startedAt: string; payload: unknown };
  /** The model wrote a piece of text. */
  text_delta: { text: string };
  thinking_start: object;
  thinking_delta: { delta: string };
  thinking_end: { content: string };
  /** A tool call began. The values of variables are left out of its arguments. */
  tool_start: { toolName: string; toolCallId: string; args?: unknown };
  /** A tool call ended. */
  tool_call: { toolName: string; toolCallId: string; isError: boolean; result?: unknown; durationMs: number };
  /** A turn of the model ended, with its tool calls. */
  turn: {
    durationMs: number;
    model?: string;
    usage?: TokenUsage;
    stopReason?: "stop" | "length" | "toolUse" | "refusal" | "error" | "aborted";
    isError: boolean;
    error?: string;
  };
  /** Work was given to a session of its own; `role` is the subagent. */
  task_start: { prompt: string; role?: string; cwd?: string };
  task: { isError: boolean; result?: string; durationMs: number };
  /** The older part of a conversation is about to be replaced by a summary. */
  compaction_start: { reason: "threshold" | "overflow" | "manual"; estimatedTokens: number };
  compaction: { messagesBefore: number; messagesAfter: number; durationMs: number; usage?: TokenUsage };
  operation_start: { operationKind: AgentOperation };
  operation: {
    operationKind: AgentOperation;
    durationMs: number;
    isError: boolean;
    error?: AgentFailure;
    result?: unknown;
    usage?: TokenUsage;
  };
  log: { level: "info" | "warn" | "error"; message: string; attributes?: Record<string, unknown> };
  /** A session has finished its operation. */
  idle: object;
  /** The run ended. The server cuts a result that is too long for an event; {@link AgentRun.result} has it whole. */
  run_end: { result: unknown; isError: boolean; error?: AgentFailure; durationMs: number };
}

/** The kind of an event. */
export type AgentEventType = keyof AgentEventFields;

/** An event of a run. Its `type` tells which fields it has. */
export type AgentEvent<T extends AgentEventType = AgentEventType> = T extends AgentEventType
  ? { type: T } & AgentEventFields[T] & EventOrigin
  : never;
