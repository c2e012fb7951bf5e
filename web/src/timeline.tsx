/** A run as a timeline: what was asked, what the model said and thought, its calls of tools, and what each turn took. */

import { useMemo } from "preact/hooks";
import { count, took } from "./format.js";
import { LongText, PROSE_FOLD } from "./longtext.js";
import { Folded, Outcome, ToolCall } from "./toolcall.js";
import { type Chunk, type EndItem, type Item, type ItemList, type NoteItem, type PromptItem, type TaskItem, type TurnItem, pretty } from "./transcript.js";
import type { TokenUsage } from "./types.js";

/** Reasons of a turn's end that go without saying. */
const USUAL_STOPS = ["stop", "toolUse", ""];

/** Draws a list of items. Chunks in which nothing has changed are left as they are. */
export function Timeline({ list }: { list: ItemList }) {
  return <>{list.chunks.map((chunk, at) => <ChunkView key={at} chunk={chunk} version={chunk.version} />)}</>;
}

function ChunkView({ chunk, version }: { chunk: Chunk; version: number }) {
  return useMemo(() => <div class={chunk.isFull ? "chunk full" : "chunk"}>{chunk.items.map((item) => <ItemView key={item.key} item={item} version={item.version} />)}</div>, [version]);
}

function ItemView({ item, version }: { item: Item; version: number }) {
  return useMemo(() => drawn(item), [version]);
}

function drawn(item: Item) {
  switch (item.is) {
    case "prompt": return <Prompt item={item} />;
    case "text": return <div class={`said ${item.isOpen ? "open" : ""}`} role="group" aria-label="Model"><LongText kind="prose" text={item.text.trim()} fold={PROSE_FOLD} /></div>;
    case "thinking": return <Folded title={item.isOpen ? "Thinking…" : "Thinking"} text={item.text} kind="prose" />;
    case "call": return <ToolCall call={item} />;
    case "turn": return <Turn item={item} />;
    case "task": return <Task item={item} />;
    case "note": return <Note item={item} />;
    case "end": return <End item={item} />;
  }
}

function Prompt({ item }: { item: PromptItem }) {
  return (
    <div class="prompt" role="group" aria-label="Prompt">
      <p class="quiet who-says">{item.isData ? "Input" : "Prompt"}{item.session ? `, session ${item.session}` : ""}</p>
      <LongText kind={item.isData ? "output" : "prose"} text={item.text} fold={PROSE_FOLD} />
    </div>
  );
}

/** Says what tokens were taken, and what they cost. */
export function usageText(usage: TokenUsage): string {
  const read = usage.input + usage.cacheRead + usage.cacheWrite;
  const cached = usage.cacheRead > 0 ? ` (${count(usage.cacheRead)} cached)` : "";
  const cost = usage.cost?.total > 0 ? `, ${dollars(usage.cost.total)}` : "";
  return `${count(read)} tokens in${cached}, ${count(usage.output)} out${cost}`;
}

/** Returns a price. Prices of single turns are often parts of a cent. */
function dollars(price: number): string {
  return `$${price.toFixed(price < 1 ? 4 : 2)}`;
}

function Turn({ item }: { item: TurnItem }) {
  const stop = USUAL_STOPS.includes(item.stopReason) ? undefined : item.stopReason;
  return (
    <p class="turn quiet">
      <span>turn {item.number}</span>
      {item.model ? <span>{item.model}</span> : null}
      {item.usage ? <span class="figure">{usageText(item.usage)}</span> : null}
      <span class="figure">{took(item.durationMs)}</span>
      {item.error ? <span class="bad">failed: {item.error}</span> : stop ? <span>stopped: {stop}</span> : null}
    </p>
  );
}

function Task({ item }: { item: TaskItem }) {
  return (
    <details class="task" open>
      <summary><strong>Task</strong>{item.role ? <span>by {item.role}</span> : null}{item.cwd ? <code>{item.cwd}</code> : null}<Outcome state={item.state} durationMs={item.durationMs} /></summary>
      <div class="prompt" role="group" aria-label="Prompt of the task"><LongText kind="prose" text={item.prompt} fold={PROSE_FOLD} /></div>
      <Timeline list={item.list} />
      {item.state === "failed" ? <div class="failure"><p>{item.result || "the task failed"}</p></div> : null}
    </details>
  );
}

function Note({ item }: { item: NoteItem }) {
  return (
    <div class={`note ${item.level}`}>
      <p><span class="kind">{item.level === "info" ? item.kind : `${item.kind}, ${item.level}`}</span> {item.text}</p>
      {item.data ? <LongText kind="output" text={pretty(item.data)} /> : null}
    </div>
  );
}

/** Returns the part of a result that the timeline has not shown: a text is there, and so is its usage. */
function newsOf(result: unknown): unknown {
  if (result === null || result === undefined) return undefined;
  const { text, usage, data, ...more } = Object(result) as Record<string, unknown>;
  if (typeof result === "object" && typeof text === "string" && usage !== undefined && Object.keys(more).length === 0) return data;
  return result;
}

function End({ item }: { item: EndItem }) {
  const news = newsOf(item.result);
  const wasAborted = item.error?.name === "AbortError";
  return (
    <>
      {news !== undefined ? <div class="result" role="group" aria-label="Result"><p class="quiet who-says">Result</p><LongText kind="output" text={pretty(news)} /></div> : null}
      {item.error && wasAborted ? <div class="aborted-note">{item.error.message}</div> : null}
      {item.error && !wasAborted ? <div class="failure"><p>{item.error.message}</p><p class="quiet">{item.error.name}</p></div> : null}
      <p class="ending quiet">{wasAborted ? "Aborted" : item.error ? "Failed" : "Completed"} after {took(item.durationMs)}</p>
    </>
  );
}
