/**
 * Edits that are not saved yet. They are kept until the page is closed, whichever view is opened meanwhile, so an edit is there
 * when its file is opened again. The browser asks before it closes a page that holds one. Nothing is written to the browser's disk.
 */

import { useEffect, useReducer, useState } from "preact/hooks";
import { hand } from "./download.js";
import { Confirm } from "./parts.js";
import type { FileStat } from "./types.js";

/** A file's text as it was read. */
export interface TextContent {
  what: "text";
  text: string;
  crlf: boolean;
  stat: FileStat;
}

export interface Draft {
  sandbox: string;
  path: string;
  base: TextContent;
  text: string;
}

/** Tells whether a path is another one or below it. */
export function isBelow(path: string, top: string): boolean {
  return path === top || path.startsWith(top === "/" ? "/" : `${top}/`);
}

/** Returns a text with the line ends that its file has. */
export function withLineEnds({ crlf }: TextContent, text: string): string {
  return crlf ? text.replaceAll("\n", "\r\n") : text;
}

class Drafts {
  private all: Draft[] = [];
  private readonly listeners = new Set<() => void>();
  private owner: string | null | undefined;

  get(sandbox: string, path: string): Draft | undefined {
    return this.all.find((one) => one.sandbox === sandbox && one.path === path);
  }

  /** Returns the drafts of a sandbox, or all of them. */
  of(sandbox?: string): Draft[] {
    return sandbox === undefined ? this.all : this.all.filter((one) => one.sandbox === sandbox);
  }

  below(sandbox: string, top: string): Draft[] {
    return this.of(sandbox).filter((one) => isBelow(one.path, top));
  }

  /** Keeps a text as it is typed. A text that is what the file holds is no draft. */
  keep(draft: Draft): void {
    const isEdited = draft.text !== draft.base.text;
    this.set([...this.all.filter((one) => one.sandbox !== draft.sandbox || one.path !== draft.path), ...(isEdited ? [draft] : [])]);
  }

  /** Notes what a file holds now. What was typed since stays a draft. */
  saved(sandbox: string, path: string, base: TextContent): void {
    const draft = this.get(sandbox, path);
    if (draft) this.keep({ ...draft, base });
  }

  rename(sandbox: string, from: string, to: string): void {
    const moved = (one: Draft) => (one.sandbox === sandbox && isBelow(one.path, from) ? { ...one, path: to + one.path.slice(from.length) } : one);
    this.set(this.all.map(moved));
  }

  discard(gone: Draft[]): void {
    this.set(this.all.filter((one) => !gone.some(({ sandbox, path }) => one.sandbox === sandbox && one.path === path)));
  }

  /** Notes who is signed in. The drafts of another user are dropped. */
  belongTo(user: string | null): void {
    if (this.owner !== undefined && this.owner !== user) this.discard(this.all);
    this.owner = user;
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private set(all: Draft[]): void {
    const had = this.all.length > 0;
    this.all = all;
    if (had !== all.length > 0) (had ? removeEventListener : addEventListener)("beforeunload", warn);
    for (const listener of this.listeners) listener();
  }
}

function warn(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

export const drafts = new Drafts();

/** Draws anew when drafts come or go. */
export function useDrafts(sandbox?: string): Draft[] {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => drafts.listen(() => draw(0)), []);
  return drafts.of(sandbox);
}

/** A sentence for a question before drafts are lost. */
export function Lost({ lost }: { lost: Draft[] }) {
  if (lost.length === 0) return null;
  return (
    <div class="failure">
      <p>{lost.length === 1 ? "An edit that is not saved is lost:" : `${lost.length} edits that are not saved are lost:`}</p>
      <p>{lost.slice(0, 5).map(({ path }) => <code class="path" key={path}>{path}</code>)}{lost.length > 5 ? "…" : ""}</p>
    </div>
  );
}

/** Asks before it discards an edit. */
export function Discard({ draft, close }: { draft: Draft; close: () => void }) {
  return (
    <Confirm title="Discard the edit?" verb="Discard" close={close} act={async () => drafts.discard([draft])}>
      <p><code>{draft.path}</code> stays as it was last saved.</p>
    </Confirm>
  );
}

/** The edits of a sandbox that is gone: they can be downloaded or discarded. */
export function LeftOver({ sandbox }: { sandbox: string }) {
  const all = useDrafts(sandbox);
  const [leaving, leave] = useState<Draft>();
  if (all.length === 0) return null;
  return (
    <section class="card" aria-label="Edits that were not saved">
      <h2>Edits that were not saved</h2>
      <ul class="plain-list">
        {all.map((draft) => (
          <li key={draft.path} class="card-row">
            <code class="path">{draft.path}</code>
            <button type="button" onClick={() => hand(new Blob([withLineEnds(draft.base, draft.text)]), draft.path.split("/").pop() ?? "edit")}>Download</button>
            <button type="button" class="danger" onClick={() => leave(draft)}>Discard</button>
          </li>
        ))}
      </ul>
      {leaving ? <Discard draft={leaving} close={() => leave(undefined)} /> : null}
    </section>
  );
}
