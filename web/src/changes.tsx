/** The differences of two sides: the paths that were added, changed and removed, and the lines of those that are text. */

import { useMemo, useState } from "preact/hooks";
import { json, query } from "./api.js";
import { type DiffLine, Lines } from "./difflines.js";
import { bytes, count } from "./format.js";
import { useLoaded } from "./live.js";
import { Failure, Loading } from "./parts.js";
import type { ComparedFile, FileChange, Sandbox, Snapshot } from "./types.js";

/** The sides of a comparison: ids of snapshots or sandboxes, or `base:` and the id of a sandbox. */
export interface Compared {
  from: string;
  to: string;
}

/** How many changes are shown at once. */
const STEP = 300;
const SIGNS = { added: "A", changed: "C", removed: "D" } as const;

export function Changes({ sandbox, snapshots, title, compared, compare }: {
  sandbox: Sandbox;
  snapshots: Snapshot[];
  title: (snapshot: Snapshot) => string;
  compared: Compared;
  compare: (compared: Compared | undefined) => void;
}) {
  const { value, failure, again } = useLoaded(async (signal) => {
    const found = await json<{ changes: FileChange[]; truncated: boolean }>(`/v1/diff${query({ ...compared, pool: sandbox.pool, text: true })}`, { signal });
    return { ...found, compared };
  }, [compared]);
  const isNew = value?.compared === compared;
  const sides = [{ id: `base:${sandbox.id}`, name: "its last snapshot, or its beginning" }, { id: sandbox.id, name: "the present files" },
    ...snapshots.map((snapshot) => ({ id: snapshot.id, name: title(snapshot) }))];
  const side = (label: string, chosen: string, choose: (id: string) => void) => (
    <label>{label} <select aria-label={`Compare ${label}`} value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
      {sides.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
    </select></label>
  );
  return (
    <section class="changes" aria-labelledby="changes-title">
      <div class="title-row">
        <h2 id="changes-title">Changes {isNew ? <span class="count">{count(value.changes.length)}</span> : null}</h2>
        <div class="filters">
          {side("from", compared.from, (from) => compare({ ...compared, from }))}
          {side("to", compared.to, (to) => compare({ ...compared, to }))}
          <button type="button" onClick={() => compare(undefined)}>Close</button>
        </div>
      </div>
      <Failure error={failure} again={again} />
      {!isNew && !failure ? <Loading what="the changes" /> : null}
      {isNew && !failure ? <Found key={`${compared.from} ${compared.to}`} changes={value.changes} isCut={value.truncated} /> : null}
    </section>
  );
}

function Found({ changes, isCut }: { changes: FileChange[]; isCut: boolean }) {
  const [shown, show] = useState(STEP);
  if (changes.length === 0) return <p class="quiet">Nothing differs.</p>;
  const left = changes.length - shown;
  return (
    <>
      <ul class="plain-list">{changes.slice(0, shown).map((change) => <Change key={change.path} change={change} />)}</ul>
      {left > 0 ? <p><button type="button" onClick={() => show(shown + STEP)}>Show {count(Math.min(left, STEP))} more of {count(left)}</button></p> : null}
      {isCut ? <p class="quiet">There are more: a comparison lists no more than these. <code>eyot diff --path DIR</code> looks at one folder.</p> : null}
    </>
  );
}

function Change({ change }: { change: FileChange }) {
  const head = (
    <>
      <span class={`state ${change.change}`} title={change.change}><span aria-hidden="true">{SIGNS[change.change]}</span><span class="hidden">{change.change}</span></span>
      {" "}<code class="path">{change.path}</code> <span class="quiet figure">{saidOf(change)}</span>
    </>
  );
  if (change.text === undefined) return <li class="change">{head}</li>;
  return <li class="change"><details class="folded"><summary>{head}</summary><Text text={change.text} /></details></li>;
}

function Text({ text }: { text: string }) {
  const lines = useMemo(() => linesOf(text), [text]);
  return <div class="diff" role="group" aria-label="Lines"><Lines lines={lines} /></div>;
}

/** Returns the lines of a unified diff, without its head. */
export function linesOf(text: string): DiffLine[] {
  const all = text.replace(/\n$/, "").split("\n");
  const first = all.findIndex((line) => line.startsWith("@@"));
  return all.slice(Math.max(0, first)).map((line) => {
    const sign = line[0];
    // Where a piece begins, and the note about a last line without an end.
    if (sign === "+" || sign === "-" || sign === " ") return { sign, text: line.slice(1) };
    return { sign: " ", text: line, isNote: true };
  });
}

/** Says how the sizes, the kind and the mode differ. */
export function saidOf({ before, after }: FileChange): string {
  const one = after ?? before;
  if (!one) return "";
  if (!before || !after) return one.type === "file" ? bytes(one.size_bytes) : one.type;
  const said = [];
  if (before.type !== after.type) said.push(`${before.type} → ${after.type}`);
  if (sizeOf(before) !== sizeOf(after)) said.push(`${sizeOf(before)} → ${sizeOf(after)}`);
  else if (after.type === "file") said.push(sizeOf(after));
  if (before.mode !== after.mode) said.push(`mode ${before.mode.toString(8)} → ${after.mode.toString(8)}`);
  return said.join(", ");
}

function sizeOf({ type, size_bytes }: ComparedFile): string {
  return type === "file" ? bytes(size_bytes) : "";
}
