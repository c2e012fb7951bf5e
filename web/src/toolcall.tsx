/** A call of a tool: what it was asked, what it changed, and what it answered. */

import { diffLines } from "diff";
import { useMemo } from "preact/hooks";
import { type DiffLine, Lines } from "./difflines.js";
import { plain, took } from "./format.js";
import { LongText, OUTPUT_FOLD, sizeOf } from "./longtext.js";
import { type CallItem, pretty } from "./transcript.js";

type Fields = Record<string, unknown>;

/** The names that toolsets give the text before an edit and behind it. */
const EDITS = [["oldText", "newText"], ["old_string", "new_string"], ["old_str", "new_str"]] as const;
/** The names that they give the content of a whole file. */
const CONTENTS = ["content", "file_text"] as const;
/** The arguments that say best what a call is about. */
const ABOUT = ["path", "file_path", "pattern", "url", "query", "name", "description"] as const;
/** How many lines of a change are compared; beyond that, and for changes that are too different, all lines count as changed. */
const COMPARED_LINES = 2000;
const LONGEST_EDIT = 1000;

/** How a call is shown. */
type Shape =
  | { is: "command"; about: string; command: string; rest: Fields }
  | { is: "edit"; about: string; before: string; after: string; rest: Fields }
  | { is: "write"; about: string; content: string; rest: Fields }
  | { is: "other"; about: string; rest: Fields };

function without(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** Returns how a call is shown, by its arguments: tools of any toolset may have these. */
function shapeOf(args: unknown): Shape {
  const fields: Fields = args !== null && typeof args === "object" && !Array.isArray(args) ? (args as Fields) : args === undefined || args === null ? {} : { arguments: args };
  const text = (name: string) => (typeof fields[name] === "string" ? (fields[name] as string) : undefined);
  const command = text("command");
  const aboutName = ABOUT.find((name) => text(name) !== undefined);
  const about = aboutName ? (text(aboutName) as string) : "";
  const used = aboutName ? [aboutName] : [];
  const edit = EDITS.find(([before, after]) => text(before) !== undefined && text(after) !== undefined);
  if (edit) return { is: "edit", about, before: text(edit[0]) as string, after: text(edit[1]) as string, rest: without(fields, [...used, ...edit]) };
  const content = CONTENTS.find((name) => text(name) !== undefined);
  if (content && about) return { is: "write", about, content: text(content) as string, rest: without(fields, [...used, content]) };
  // An editor with commands such as `view` has a path as well.
  if (command !== undefined && !about) return { is: "command", about: "", command, rest: without(fields, ["command"]) };
  return { is: "other", about, rest: without(fields, used) };
}

const STATES = { running: "runs", waits: "waits for the caller", done: "done", failed: "failed", unknown: "no answer" } as const;

/** Says how a call or a task is, and how long it took. */
export function Outcome({ state, durationMs }: { state: CallItem["state"]; durationMs: number | undefined }) {
  return (
    <span class="outcome">
      {durationMs !== undefined ? <span class="quiet figure">{took(durationMs)}</span> : null}
      <span class={`state ${state}`}>{STATES[state]}</span>
    </span>
  );
}

export function ToolCall({ call }: { call: CallItem }) {
  const shape = shapeOf(call.args);
  const output = plain(call.output);
  // A task has its prompt itself, beside this call.
  return (
    <article class={`call ${call.state}`} aria-label={`Call of ${call.tool}`}>
      <header class="call-head">
        <strong class="tool">{call.tool}</strong>
        {shape.about ? <code class="about-call" title={shape.about}>{shape.about.split("\n")[0]}</code> : null}
        <Outcome state={call.state} durationMs={call.durationMs} />
      </header>
      {shape.is === "command" ? <Command command={shape.command} /> : null}
      {shape.is === "edit" ? <Change before={shape.before} after={shape.after} /> : null}
      {shape.is === "write" ? <Folded title={`Content, ${sizeOf(shape.content)}`} text={shape.content} /> : null}
      {Object.keys(shape.rest).length === 0 ? null : call.tool === "task" ? <Folded title="Arguments" text={pretty(shape.rest)} /> : <LongText kind="output" label="Arguments" text={pretty(shape.rest)} />}
      {output ? <div class={`answer ${call.state === "failed" ? "is-bad" : ""}`}><LongText kind="output" label="Answer" text={output} /></div> : null}
      {call.state === "done" && !output ? <p class="quiet note">No output</p> : null}
      {call.state === "unknown" ? <p class="quiet note">The run ended before an answer came.</p> : null}
    </article>
  );
}

function Command({ command }: { command: string }) {
  return <div class="command-line"><span class="sign" aria-hidden="true">$</span><div><LongText kind="output" label="Command" text={command} /></div></div>;
}

/** Text that is there when somebody opens it. */
export function Folded({ title, text, kind = "output" }: { title: string; text: string; kind?: "prose" | "output" }) {
  return <details class="folded"><summary>{title}</summary><LongText kind={kind} text={text} fold={{ lines: 400, chars: 60_000 }} /></details>;
}

/** Returns the lines that a change takes out, puts in and leaves. */
function linesOf(before: string, after: string): DiffLine[] {
  const short = before.split("\n", COMPARED_LINES).length < COMPARED_LINES && after.split("\n", COMPARED_LINES).length < COMPARED_LINES;
  const compared = short ? diffLines(before, after, { maxEditLength: LONGEST_EDIT, timeout: 100 }) : undefined;
  const parts = compared ?? [{ value: before, removed: true, added: false }, { value: after, removed: false, added: true }];
  return parts.flatMap(({ value, added, removed }) => {
    const sign: DiffLine["sign"] = added ? "+" : removed ? "-" : " ";
    const lines = value === "" ? [] : value.replace(/\n$/, "").split("\n");
    return lines.map((text) => ({ sign, text }));
  });
}

/** A change as a diff. */
function Change({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => linesOf(before, after), [before, after]);
  const first = lines.slice(0, OUTPUT_FOLD.lines * 2);
  const rest = lines.slice(first.length);
  return (
    <div class="diff" role="group" aria-label="Change">
      <Lines lines={first} />
      {rest.length > 0 ? <details class="folded"><summary>Show all ({lines.length} lines)</summary><Lines lines={rest} /></details> : null}
    </div>
  );
}
