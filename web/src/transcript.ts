/**
 * A run as one reads it, put together from its events. It is changed in place: whoever draws it compares `version`, which grows in
 * an item and in each list that holds it.
 */

import { count } from "./format.js";
import type { RunEvent, TokenUsage } from "./types.js";

/** Items that are drawn together, and left alone while none of them changes. */
export interface Chunk {
  version: number;
  items: Item[];
  /** The items that come later are in another one. */
  isFull: boolean;
}

/** A list of items, in chunks. */
export interface ItemList {
  chunks: Chunk[];
}

/** How many items a chunk has. */
const CHUNK_ITEMS = 40;

interface ItemBase {
  key: number;
  version: number;
}

/** What the caller wants of the run. */
export interface PromptItem extends ItemBase {
  is: "prompt";
  text: string;
  session: string | undefined;
  /** The input is no prompt, but data. */
  isData: boolean;
}

/** What the model says, or thinks. */
export interface SpeechItem extends ItemBase {
  is: "text" | "thinking";
  text: string;
  isOpen: boolean;
}

/** A call of a tool. */
export interface CallItem extends ItemBase {
  is: "call";
  id: string;
  tool: string;
  args: unknown;
  state: "running" | "waits" | "done" | "failed" | "unknown";
  /** The answer as text. */
  output: string;
  durationMs: number | undefined;
}

/** The end of a turn. */
export interface TurnItem extends ItemBase {
  is: "turn";
  number: number;
  model: string;
  usage: TokenUsage | undefined;
  durationMs: number;
  stopReason: string;
  error: string | undefined;
}

/** A task, with everything that happens in it. */
export interface TaskItem extends ItemBase {
  is: "task";
  prompt: string;
  role: string | undefined;
  cwd: string | undefined;
  list: ItemList;
  state: "running" | "done" | "failed" | "unknown";
  result: string;
  durationMs: number | undefined;
}

/** A line of the log, or about the conversation. */
export interface NoteItem extends ItemBase {
  is: "note";
  kind: string;
  level: "info" | "warn" | "error";
  text: string;
  data: unknown;
}

/** The end of the run. */
export interface EndItem extends ItemBase {
  is: "end";
  error: { name: string; message: string } | undefined;
  result: unknown;
  durationMs: number;
}

export type Item = PromptItem | SpeechItem | CallItem | TurnItem | TaskItem | NoteItem | EndItem;
type New<T> = T extends Item ? Omit<T, "key" | "version"> : never;

/** A list, and what draws when it changes: the chunks that its task is in. */
interface Place {
  list: ItemList;
  above: { item: TaskItem; chunk: Chunk; place: Place } | undefined;
  /** The text or the thought that goes on. */
  speech: { item: SpeechItem; chunk: Chunk } | undefined;
  turns: number;
}

interface Found<T> {
  item: T;
  chunk: Chunk;
  place: Place;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const figure = (value: unknown): number => (typeof value === "number" ? value : 0);
const named = (value: unknown): string | undefined => text(value) || undefined;

export class Transcript {
  readonly root: ItemList = { chunks: [] };
  /** What all turns took together. */
  readonly usage: TokenUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { total: 0 } };
  turns = 0;
  /** The number of the last event that is in it. */
  last = -1;
  hasEnded = false;
  private readonly top: Place = { list: this.root, above: undefined, speech: undefined, turns: 0 };
  private readonly sessions = new Map<string, Place>();
  private readonly calls = new Map<string, Found<CallItem>>();
  private readonly tasks = new Map<string, Found<TaskItem>>();
  private keys = 0;

  /** Adds an event. One that is in it already changes nothing. */
  add(event: RunEvent): void {
    if (event.eventIndex <= this.last) return;
    this.last = event.eventIndex;
    const place = this.sessions.get(sessionOf(event)) ?? this.top;
    switch (event.type) {
      case "run_start": return void this.push(place, promptOf(event.payload));
      case "text_delta": return this.speak(place, "text", text(event.text));
      case "thinking_start": return this.silence(place);
      case "thinking_delta": return this.speak(place, "thinking", text(event.delta));
      case "thinking_end": return this.thought(place, text(event.content));
      case "tool_start": return void this.call(place, event, "running");
      case "tool_call": return this.answer(place, event);
      case "turn": return this.turn(place, event);
      case "task_start": return this.begin(place, event);
      case "task": return this.finish(event);
      case "compaction_start": return this.note(place, "summary", "info", `The conversation is made shorter (${text(event.reason)}, about ${count(figure(event.estimatedTokens))} tokens)…`);
      case "compaction": return this.compacted(place, event);
      case "operation_start": return event.operationKind === "prompt" ? this.silence(place) : this.note(place, "operation", "info", text(event.operationKind));
      case "operation": return this.operation(place, event);
      case "log": return this.note(place, "log", levelOf(event.level), text(event.message), event.attributes);
      case "idle": return this.silence(place);
      case "run_end": return this.end(event);
      default: return this.note(place, event.type, "info", "", event);
    }
  }

  /** Notes that a call waits for an answer of the run's caller. */
  wait(id: string): void {
    for (const found of this.calls.values()) {
      if (found.item.id !== id || found.item.state !== "running") continue;
      found.item.state = "waits";
      changed(found);
    }
  }

  private push(place: Place, item: New<Item>): Found<Item> {
    this.silence(place);
    const whole = { ...item, key: this.keys++, version: 0 } as Item;
    let chunk = place.list.chunks.at(-1);
    if (!chunk || chunk.isFull) place.list.chunks.push((chunk = { version: 0, items: [], isFull: false }));
    chunk.items.push(whole);
    chunk.isFull = chunk.items.length >= CHUNK_ITEMS;
    const found = { item: whole, chunk, place };
    changed(found);
    return found;
  }

  /** Ends the text that goes on. */
  private silence(place: Place): void {
    const { speech } = place;
    if (!speech) return;
    place.speech = undefined;
    speech.item.isOpen = false;
    changed({ ...speech, place });
  }

  private speak(place: Place, is: "text" | "thinking", piece: string): void {
    if (place.speech?.item.is === is) {
      place.speech.item.text += piece;
      changed({ ...place.speech, place });
      return;
    }
    const { item, chunk } = this.push(place, { is, text: piece, isOpen: true });
    place.speech = { item: item as SpeechItem, chunk };
  }

  private thought(place: Place, content: string): void {
    if (place.speech?.item.is !== "thinking") this.speak(place, "thinking", "");
    if (content && place.speech) place.speech.item.text = content;
    this.silence(place);
  }

  private call(place: Place, event: RunEvent, state: CallItem["state"]): Found<CallItem> {
    const id = text(event.toolCallId);
    const found = this.push(place, { is: "call", id, tool: text(event.toolName), args: event.args, state, output: "", durationMs: undefined }) as Found<CallItem>;
    this.calls.set(`${sessionOf(event)}\n${id}`, found);
    return found;
  }

  private answer(place: Place, event: RunEvent): void {
    const key = `${sessionOf(event)}\n${text(event.toolCallId)}`;
    const found = this.calls.get(key) ?? this.call(place, event, "running");
    this.calls.delete(key);
    found.item.state = event.isError ? "failed" : "done";
    found.item.output = outputOf(event.result);
    found.item.durationMs = figure(event.durationMs);
    changed(found);
  }

  private turn(place: Place, event: RunEvent): void {
    const usage = event.usage as TokenUsage | undefined;
    this.spend(usage);
    this.turns += 1;
    place.turns += 1;
    const error = event.isError ? text(event.error) || "the turn failed" : undefined;
    this.push(place, { is: "turn", number: place.turns, model: text(event.model), usage, durationMs: figure(event.durationMs), stopReason: text(event.stopReason), error });
  }

  private spend(usage: TokenUsage | undefined): void {
    if (!usage) return;
    for (const name of ["input", "output", "cacheRead", "cacheWrite", "totalTokens"] as const) this.usage[name] += figure(usage[name]);
    this.usage.cost.total += figure(usage.cost?.total);
  }

  private begin(place: Place, event: RunEvent): void {
    const list: ItemList = { chunks: [] };
    const item: New<TaskItem> = { is: "task", prompt: text(event.prompt), role: named(event.role), cwd: named(event.cwd), list, state: "running", result: "", durationMs: undefined };
    const found = this.push(place, item) as Found<TaskItem>;
    const id = text(event.taskId);
    this.tasks.set(id, found);
    // The session of a task is named after the session that gave it.
    const session = `${event.harness ?? ""}\ntask:${event.session ?? ""}:${id}`;
    this.sessions.set(session, { list, above: found, speech: undefined, turns: 0 });
  }

  private finish(event: RunEvent): void {
    const found = this.tasks.get(text(event.taskId));
    if (!found) return;
    found.item.state = event.isError ? "failed" : "done";
    found.item.result = text(event.result);
    found.item.durationMs = figure(event.durationMs);
    changed(found);
  }

  private compacted(place: Place, event: RunEvent): void {
    this.spend(event.usage as TokenUsage | undefined);
    this.note(place, "summary", "info", `The conversation is shorter: ${count(figure(event.messagesBefore))} messages became ${count(figure(event.messagesAfter))}.`);
  }

  /** Notes the end of an operation that failed. That of a task, or of the run, is told there. */
  private operation(place: Place, event: RunEvent): void {
    this.silence(place);
    const error = event.error as { message?: string } | undefined;
    if (event.isError && !place.above && event.operationKind !== "prompt") this.note(place, "operation", "error", `${text(event.operationKind)} failed: ${error?.message ?? ""}`);
  }

  private note(place: Place, kind: string, level: NoteItem["level"], said: string, data?: unknown): void {
    this.push(place, { is: "note", kind, level, text: said, data });
  }

  private end(event: RunEvent): void {
    this.hasEnded = true;
    const error = event.isError ? ((event.error as EndItem["error"]) ?? { name: "Error", message: "the run failed" }) : undefined;
    for (const place of [this.top, ...this.sessions.values()]) this.silence(place);
    for (const found of this.calls.values()) unanswered(found);
    for (const found of this.tasks.values()) if (found.item.state === "running") unanswered(found);
    this.push(this.top, { is: "end", error, result: event.result, durationMs: figure(event.durationMs) });
  }
}

/** Notes that a call or a task has no answer, and gets none. */
function unanswered(found: Found<CallItem> | Found<TaskItem>): void {
  found.item.state = "unknown";
  changed(found);
}

/** Has an item, and all that it is in, drawn anew. */
function changed({ item, chunk, place }: Found<Item>): void {
  item.version += 1;
  chunk.version += 1;
  if (place.above) changed(place.above);
}

function sessionOf(event: RunEvent): string {
  return `${event.harness ?? ""}\n${event.session ?? ""}`;
}

function levelOf(level: unknown): NoteItem["level"] {
  return level === "warn" || level === "error" ? level : "info";
}

/** Returns data as text that people can read. */
export function pretty(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
}

function promptOf(payload: unknown): New<PromptItem> {
  const fields = payload !== null && typeof payload === "object" ? (payload as Record<string, unknown>) : {};
  const prompt = text(payload) || text(fields.prompt) || text(fields.message) || text(fields.task);
  return { is: "prompt", text: prompt || pretty(payload), session: named(fields.session), isData: !prompt };
}

/** Returns the answer of a tool as text. What is no text is named. */
function outputOf(result: unknown): string {
  const content = (result as { content?: unknown } | null | undefined)?.content;
  if (!Array.isArray(content)) return result === undefined || result === null ? "" : pretty(result);
  const piece = (block: { type?: unknown; text?: unknown; mimeType?: unknown } | null) =>
    block?.type === "text" ? text(block.text) : `[${text(block?.mimeType) || text(block?.type) || "data"}]`;
  return content.map(piece).join("\n");
}
