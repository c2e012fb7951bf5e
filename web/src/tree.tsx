/** A directory as a tree that is gone through by mouse and by keyboard. */

import { useRef, useState } from "preact/hooks";
import { bytes } from "./format.js";
import type { DirEntry } from "./types.js";

/** How many entries of a directory are shown. */
export const SHOWN = 2000;

export interface Row {
  path: string;
  name: string;
  depth: number;
  entry: DirEntry;
  isDirectory: boolean;
  /** Its name is not UTF-8, so no path of the API can name it. */
  isOdd: boolean;
}

export type Folders = Map<string, DirEntry[] | { error: unknown }>;

export function join(directory: string, name: string): string {
  return directory === "/" ? `/${name}` : `${directory}/${name}`;
}

export function parent(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** What is to be seen below a directory, in order. */
export function rowsOf(directory: string, folders: Folders, open: Set<string>, depth = 0): Row[] {
  const entries = folders.get(directory);
  if (!Array.isArray(entries)) return [];
  return entries.slice(0, SHOWN).flatMap((entry) => {
    const path = join(directory, entry.name);
    const isDirectory = entry.file_type === "directory";
    const row = { path, name: entry.name, depth, entry, isDirectory, isOdd: Boolean(entry.name_bytes) };
    return isDirectory && open.has(path) ? [row, ...rowsOf(path, folders, open, depth + 1)] : [row];
  });
}

export interface TreeOptions {
  label: string;
  rows: Row[];
  open: Set<string>;
  /** The row that the keyboard is at. */
  active: Row | undefined;
  chosen: string | undefined;
  /** The paths of files with an edit that is not saved. */
  unsaved: string[];
  focus: (path: string) => void;
  toggle: (row: Row) => void;
  choose: (path: string) => void;
  rename: (row: Row) => void;
  remove: (row: Row) => void;
  drop: (directory: string, event: DragEvent) => void;
}

export function Tree({ label, rows, open, active, chosen, unsaved, focus, toggle, choose, rename, remove, drop }: TreeOptions) {
  const list = useRef<HTMLUListElement>(null);
  const [over, setOver] = useState<string>();
  const act = (row: Row) => {
    if (row.isOdd) return;
    if (row.isDirectory) toggle(row);
    else choose(row.path);
  };
  const move = (row: Row | undefined) => {
    if (!row) return;
    focus(row.path);
    list.current?.querySelectorAll<HTMLElement>("[role=treeitem]")[rows.indexOf(row)]?.focus();
  };
  const keys = (event: KeyboardEvent) => {
    if (!active || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = rows.indexOf(active);
    const isOpen = active.isDirectory && open.has(active.path);
    const steps: Record<string, () => void> = {
      ArrowDown: () => move(rows[at + 1]),
      ArrowUp: () => move(rows[at - 1]),
      Home: () => move(rows[0]),
      End: () => move(rows.at(-1)),
      ArrowRight: () => (active.isDirectory && !isOpen ? toggle(active) : move(rows[at + 1])),
      ArrowLeft: () => (isOpen ? toggle(active) : move(rows.find((row) => row.path === parent(active.path)))),
      Enter: () => act(active),
      " ": () => act(active),
      Delete: () => active.isOdd || remove(active),
      F2: () => active.isOdd || rename(active),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  };
  const drags = (row: Row) => row.isDirectory && {
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      event.stopPropagation();
      setOver(row.path);
    },
    onDragLeave: () => setOver(undefined),
    onDrop: (event: DragEvent) => {
      setOver(undefined);
      drop(row.path, event);
    },
  };
  return (
    <ul role="tree" aria-label={label} ref={list} onKeyDown={keys}>
      {rows.map((row) => (
        <li key={row.path} role="treeitem" aria-level={row.depth + 1} aria-selected={row.path === chosen} aria-expanded={row.isDirectory ? open.has(row.path) : undefined}
          tabIndex={row === active ? 0 : -1} class={`row ${row.path === chosen ? "chosen" : ""} ${over === row.path ? "over" : ""}`}
          style={{ "--depth": row.depth }} title={row.isOdd ? "its name is not UTF-8: use the terminal" : row.path}
          onFocus={() => focus(row.path)} onClick={() => act(row)} {...drags(row)}>
          <span class="glyph" aria-hidden="true">{glyph(row, open)}</span>
          <span class="name">{row.name}</span>
          {unsaved.includes(row.path) ? <span class="unsaved-mark" title="not saved">●<span class="hidden"> not saved</span></span> : null}
          <span class="quiet figure">{row.isDirectory ? "" : bytes(row.entry.size)}</span>
        </li>
      ))}
    </ul>
  );
}

function glyph(row: Row, open: Set<string>): string {
  if (row.isDirectory) return open.has(row.path) ? "▾" : "▸";
  return row.entry.file_type === "symlink" ? "↪" : "·";
}
