/** A sandbox's files: a tree, what is in one, and ways in and out. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, inThisLife, json, ofSandbox, query, sentence } from "./api.js";
import { download } from "./download.js";
import { Lost, drafts, isBelow, useDrafts } from "./drafts.js";
import { FileView } from "./file.js";
import { Ask, Confirm, Empty, Failure, Loading } from "./parts.js";
import { type Folders, type Row, SHOWN, Tree, join, parent, rowsOf } from "./tree.js";
import type { DirEntry, Sandbox } from "./types.js";
import { UploadList, type Uploads, useUploads } from "./uploads.js";

type Asking = { what: "file" | "directory"; at: string } | { what: "rename"; row: Row } | { what: "remove"; row: Row };

/** The directories that were looked into, and which of them are open. */
function useFolders(sandbox: Sandbox, root: string) {
  const [folders, setFolders] = useState<Folders>(new Map());
  const [open, setOpen] = useState(new Set<string>());
  const load = async (path: string) => {
    try {
      const { entries } = await json<{ entries: DirEntry[] }>(ofSandbox(sandbox.id, `/list${query({ path })}`), inThisLife(sandbox));
      const rank = (entry: DirEntry) => (entry.file_type === "directory" ? 0 : 1);
      entries.sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name));
      setFolders((now) => new Map(now).set(path, entries));
    } catch (error) {
      setFolders((now) => new Map(now).set(path, { error }));
    }
  };
  useEffect(() => {
    void load(root);
  }, [root]);
  const show = (path: string, isShown: boolean) => {
    setOpen((now) => {
      const next = new Set(now);
      if (isShown) next.add(path);
      else next.delete(path);
      return next;
    });
    if (isShown) void load(path);
  };
  return { folders, open, load, show, refresh: () => [root, ...open].forEach((path) => void load(path)) };
}

/** What was open in each sandbox when another view was chosen. */
const opened = new Map<string, { root: string; file: string | undefined }>();

export function Files({ sandbox }: { sandbox: Sandbox }) {
  const before = opened.get(sandbox.id);
  const [root, setRoot] = useState(before?.root ?? sandbox.workdir);
  const { folders, open, load, show, refresh } = useFolders(sandbox, root);
  const [chosen, choose] = useState(before?.file);
  const unsaved = useDrafts(sandbox.id);
  useEffect(() => void opened.set(sandbox.id, { root, file: chosen }), [root, chosen]);
  const [focused, focus] = useState<string>();
  const [asking, askFor] = useState<Asking>();
  const [isOver, setOver] = useState(false);
  const uploads = useUploads(sandbox, async (directory) => {
    if (directory !== root) show(directory, true);
    else await load(directory);
  });
  const rows = rowsOf(root, folders, open);
  const active = rows.find((row) => row.path === focused) ?? rows[0];
  /** Where new things go: the directory that is looked at. */
  const here = !active || !focused ? root : active.isDirectory && open.has(active.path) ? active.path : parent(active.path);
  const top = folders.get(root);
  const drop = (directory: string, event: DragEvent) => {
    setOver(false);
    uploads.drop(directory, event);
  };
  return (
    <div class="files">
      <div class="side">
        <PathBar key={root} root={root} go={(path) => { focus(undefined); setRoot(path); }} refresh={refresh} />
        <NewThings askFor={(what) => askFor({ what, at: here })} send={(files) => void uploads.send(files, here)} />
        <div class={`drop ${isOver ? "over" : ""}`} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={(event) => drop(root, event)} data-testid="drop">
          {top === undefined ? <Loading what="files" /> : null}
          {top && !Array.isArray(top) ? <Failure error={top.error} again={refresh} /> : null}
          {Array.isArray(top) && top.length === 0 ? <Empty title="This directory is empty."><p>Drop files here, or make one.</p></Empty> : null}
          <Tree label={`Files in ${root}`} rows={rows} open={open} active={active} chosen={chosen} unsaved={unsaved.map(({ path }) => path)} focus={focus} choose={choose} drop={drop}
            toggle={(row) => show(row.path, !open.has(row.path))} rename={(row) => askFor({ what: "rename", row })} remove={(row) => askFor({ what: "remove", row })} />
          {Array.isArray(top) && top.length > SHOWN ? <p class="hint">The first {SHOWN} of {top.length} are shown.</p> : null}
        </div>
        {active && focused && !active.isOdd ? <WithOne sandbox={sandbox} row={active} askFor={askFor} uploads={uploads} /> : null}
        <Unsaved paths={unsaved.map(({ path }) => path).filter((path) => path !== chosen)} choose={choose} />
        <UploadList uploads={uploads} />
      </div>
      <div class="content">
        {chosen
          ? <FileView key={chosen} sandbox={sandbox} path={chosen} saved={() => void load(parent(chosen))} />
          : <Empty title="No file is open."><p>Choose one in the tree. Files that are dropped on it are uploaded.</p></Empty>}
      </div>
      {asking ? (
        <Question sandbox={sandbox} asking={asking} close={() => askFor(undefined)}
          changed={async (gone, now) => {
            if (gone === undefined) choose(now ?? chosen);
            else if (chosen && isBelow(chosen, gone)) choose(now && now + chosen.slice(gone.length));
            refresh();
          }} />
      ) : null}
    </div>
  );
}

/** The edited files that are not open, each a click away. */
function Unsaved({ paths, choose }: { paths: string[]; choose: (path: string) => void }) {
  if (paths.length === 0) return null;
  return (
    <div class="unsaved" role="group" aria-label="Not saved">
      <p class="hint">Not saved:</p>
      {paths.map((path) => <button key={path} type="button" class="plain" onClick={() => choose(path)}>{path}</button>)}
    </div>
  );
}

function PathBar({ root, go, refresh }: { root: string; go: (path: string) => void; refresh: () => void }) {
  const [typed, setTyped] = useState(root);
  return (
    <form class="path-bar" onSubmit={(event) => { event.preventDefault(); go(typed.trim() || "/"); }}>
      <button type="button" aria-label="The directory above" disabled={root === "/"} onClick={() => go(parent(root))}>↑</button>
      <input aria-label="Directory" value={typed} spellcheck={false} autocomplete="off" onInput={(event) => setTyped(event.currentTarget.value)} />
      <button type="button" aria-label="Look again" onClick={refresh}>⟳</button>
    </form>
  );
}

function NewThings({ askFor, send }: { askFor: (what: "file" | "directory") => void; send: (files: File[]) => void }) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <div class="file-actions">
      <button type="button" onClick={() => askFor("file")}>New file</button>
      <button type="button" onClick={() => askFor("directory")}>New folder</button>
      <button type="button" onClick={() => picker.current?.click()}>Upload</button>
      <input ref={picker} type="file" multiple class="hidden" tabIndex={-1} aria-label="Files to upload" data-testid="picker"
        onChange={(event) => { send([...(event.currentTarget.files ?? [])]); event.currentTarget.value = ""; }} />
    </div>
  );
}

/** What can be done with the row that the keyboard is at. */
function WithOne({ sandbox, row, askFor, uploads }: { sandbox: Sandbox; row: Row; askFor: (asking: Asking) => void; uploads: Uploads }) {
  const get = () => void download(sandbox, row.path, row.isDirectory).catch((error: unknown) => uploads.failed(row.path, sentence(error)));
  return (
    <div class="file-actions" role="group" aria-label={`What to do with ${row.name}`}>
      <span class="name quiet">{row.name}</span>
      <button type="button" class="plain" onClick={() => askFor({ what: "rename", row })}>Rename</button>
      <button type="button" class="plain" onClick={get}>Download</button>
      <button type="button" class="plain danger" onClick={() => askFor({ what: "remove", row })}>Remove</button>
    </div>
  );
}

/** Asks what a change needs, and makes it. `changed` hears which path there is no more, and which one there is now. */
function Question({ sandbox, asking, close, changed }: {
  sandbox: Sandbox;
  asking: Asking;
  close: () => void;
  changed: (gone: string | undefined, now: string | undefined) => Promise<void>;
}) {
  const api = (rest: string, method: string, body?: string) => ask(ofSandbox(sandbox.id, rest), { method, body });
  if (asking.what === "rename") {
    const from = asking.row.path;
    const rename = async (to: string) => {
      await api(`/rename${query({ from, to })}`, "POST");
      drafts.rename(sandbox.id, from, to);
      await changed(from, to);
    };
    return <Ask title={`Rename ${asking.row.name}`} label="New path" value={from} verb="Rename" close={close} act={rename} />;
  }
  if (asking.what === "remove") {
    const { path, isDirectory, name } = asking.row;
    const lost = drafts.below(sandbox.id, path);
    const remove = async () => {
      await api(`/files${query({ path, recursive: isDirectory })}`, "DELETE");
      drafts.discard(lost);
      await changed(path, undefined);
    };
    return (
      <Confirm title={`Remove ${name}?`} verb="Remove" close={close} act={remove}>
        <p><code>{path}</code> {isDirectory ? "and everything in it go" : "goes"} for good.</p>
        <Lost lost={lost} />
      </Confirm>
    );
  }
  const isFile = asking.what === "file";
  const make = async (name: string) => {
    const path = join(asking.at, name);
    if (isFile) await api(`/files${query({ path, mode: "create_new" })}`, "PUT", "");
    else await api(`/mkdir${query({ path })}`, "POST");
    await changed(undefined, isFile ? path : undefined);
  };
  return <Ask title={isFile ? "New file" : "New folder"} label={`Name, in ${asking.at}`} value="" verb="Make" close={close} act={make} />;
}
