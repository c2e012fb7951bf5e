/** Files on their way into a sandbox: by a drop or chosen, one after the other, and what came of each. */

import { useState } from "preact/hooks";
import { Refused, ask, ofSandbox, query, sentence } from "./api.js";
import { bytes } from "./format.js";
import { Confirm } from "./parts.js";
import { join, parent } from "./tree.js";
import type { Sandbox } from "./types.js";

/** How many are told at once. */
const TOLD = 10;

interface Upload {
  id: number;
  name: string;
  size: number;
  state: "sending" | "done" | "failed";
  reason?: string;
}

export interface Uploads {
  all: Upload[];
  /** A file for whose path there is one already. */
  replacing: { file: File; path: string } | undefined;
  send: (files: File[], directory: string) => Promise<void>;
  /** Replaces that file, or leaves it; the latter ends the question. */
  replace: (isWanted: boolean) => Promise<void>;
  /** What was dropped, for a directory. */
  drop: (directory: string, event: DragEvent) => void;
  failed: (name: string, reason: string) => void;
  clear: () => void;
}

let ids = 0;

/** `arrived` hears into which directory. */
export function useUploads(sandbox: Sandbox, arrived: (directory: string) => Promise<void>): Uploads {
  const [all, setAll] = useState<Upload[]>([]);
  const [replacing, setReplacing] = useState<{ file: File; path: string }>();
  const tell = (upload: Omit<Upload, "id">): number => {
    ids += 1;
    const id = ids;
    setAll((now) => [...now.slice(1 - TOLD), { id, ...upload }]);
    return id;
  };
  const note = (id: number, change: Partial<Upload>) => setAll((now) => now.map((one) => (one.id === id ? { ...one, ...change } : one)));
  const failed = (name: string, reason: string) => void tell({ name, size: 0, state: "failed", reason });
  const put = async (file: File, path: string, mode: "create_new" | "replace") => {
    const id = tell({ name: path, size: file.size, state: "sending" });
    try {
      await ask(ofSandbox(sandbox.id, `/files${query({ path, mode })}`), { method: "PUT", body: file });
      note(id, { state: "done" });
      await arrived(parent(path));
    } catch (error) {
      const isThere = error instanceof Refused && error.problem.kind === "already_exists";
      note(id, { state: "failed", reason: isThere ? "there is a file of that name" : sentence(error) });
      if (isThere) setReplacing({ file, path });
    }
  };
  const send = async (files: File[], directory: string) => {
    for (const file of files) await put(file, join(directory, file.name), "create_new");
  };
  const drop = (directory: string, event: DragEvent) => {
    event.preventDefault();
    event.stopPropagation();
    const items = [...(event.dataTransfer?.items ?? [])].filter((item) => item.kind === "file");
    const isFolder = (item: DataTransferItem) => item.webkitGetAsEntry?.()?.isDirectory === true;
    if (items.some(isFolder)) failed("a folder", "folders can't be dropped: pack one, drop the archive, and unpack it in the terminal");
    const files = items.filter((item) => !isFolder(item)).map((item) => item.getAsFile());
    void send(files.filter((file) => file !== null), directory);
  };
  const replace = async (isWanted: boolean) => {
    if (isWanted && replacing) await put(replacing.file, replacing.path, "replace");
    else setReplacing(undefined);
  };
  return { all, replacing, send, replace, drop, failed, clear: () => setAll([]) };
}

/** Keeps files that are dropped elsewhere from being opened in place of the page. */
export function refuseStrayDrops(): void {
  const refuse = (event: DragEvent) => {
    if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  };
  addEventListener("dragover", refuse);
  addEventListener("drop", refuse);
}

export function UploadList({ uploads }: { uploads: Uploads }) {
  return (
    <>
      {uploads.all.length > 0 ? (
        <div role="status">
        <ul class="uploads" aria-label="Uploads">
          {uploads.all.map((one) => (
            <li key={one.id} class={one.state}>
              <span class="name">{one.name}</span> <span class="quiet">{outcome(one)}</span>
            </li>
          ))}
          <li><button type="button" class="plain" onClick={uploads.clear}>Clear</button></li>
        </ul>
        </div>
      ) : null}
      {uploads.replacing ? (
        <Confirm title="Replace the file?" verb="Replace" close={() => void uploads.replace(false)} act={() => uploads.replace(true)}>
          <p>There is a <code>{uploads.replacing.path}</code> already.</p>
        </Confirm>
      ) : null}
    </>
  );
}

function outcome({ state, size, reason }: Upload): string {
  if (state === "failed") return reason ?? "failed";
  return state === "done" ? `${bytes(size)}, done` : `sending ${bytes(size)}…`;
}
