/** One file: read, changed, saved. Pictures are shown. What is neither text nor a picture, or too long for a page, is only offered as a download. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, inThisLife, json, ofSandbox, query, sentence } from "./api.js";
import { bytes } from "./format.js";
import { Discard, type TextContent, drafts, useDrafts, withLineEnds } from "./drafts.js";
import { Confirm, Empty, Failure, Loading } from "./parts.js";
import { download } from "./download.js";
import type { FileStat, Sandbox } from "./types.js";

/** The most bytes that are opened as text. */
const MAX_TEXT_BYTES = 1024 * 1024;
/** The most bytes that are opened as a picture. */
const MAX_PICTURE_BYTES = 16 * 1024 * 1024;
/** Names of pictures that browsers draw. An SVG is text, and as such it is opened. */
const PICTURE = /\.(png|jpe?g|gif|webp|avif|bmp|ico)$/i;

type Content =
  | TextContent
  | { what: "binary" | "long" | "mixed"; stat: FileStat }
  | { what: "picture"; picture: ImageBitmap; stat: FileStat }
  | { what: "odd"; stat: FileStat };

/** Reads a file as a picture or as text, if it is one. */
async function read(sandbox: Sandbox, path: string): Promise<Content> {
  const most = PICTURE.test(path) ? MAX_PICTURE_BYTES : MAX_TEXT_BYTES;
  const stat = await json<FileStat>(ofSandbox(sandbox.id, `/stat${query({ path })}`), inThisLife(sandbox));
  if (!stat.is_file) return { what: "odd", stat };
  if ((stat.size ?? 0) > most) return { what: "long", stat };
  const raw = new Uint8Array(await (await ask(ofSandbox(sandbox.id, `/files${query({ path, limit: most + 1 })}`), inThisLife(sandbox))).arrayBuffer());
  if (raw.length > most) return { what: "long", stat };
  // It is drawn from its pixels, so that no address of it exists that a browser could open as a page.
  const picture = PICTURE.test(path) ? await createImageBitmap(new Blob([raw])).catch(() => undefined) : undefined;
  if (picture) return { what: "picture", picture, stat };
  if (raw.length > MAX_TEXT_BYTES) return { what: "long", stat };
  if (raw.includes(0)) return { what: "binary", stat };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw);
    const crlf = text.includes("\r");
    // A text field has one kind of line end; a file with two would be saved as another one.
    if (crlf && text.replaceAll("\r\n", "").match(/[\r\n]/)) return { what: "mixed", stat };
    return { what: "text", text: text.replaceAll("\r\n", "\n"), crlf, stat };
  } catch {
    return { what: "binary", stat };
  }
}

/** A picture in its own size, or smaller where the page is. */
function Picture({ path, picture }: { path: string; picture: ImageBitmap }) {
  const place = useRef<HTMLCanvasElement>(null);
  useEffect(() => place.current?.getContext("2d")?.drawImage(picture, 0, 0), [picture]);
  const { width, height } = picture;
  return (
    <figure class="picture">
      <canvas ref={place} width={width} height={height} role="img" aria-label={`Picture ${path}`} />
      <figcaption class="hint">{width} × {height} pixels</figcaption>
    </figure>
  );
}

export function FileView({ sandbox, path, saved }: { sandbox: Sandbox; path: string; saved: () => void }) {
  const [content, set] = useState<Content>();
  const [failure, fail] = useState<unknown>();
  const [said, say] = useState("");
  const [isStale, stale] = useState(false);
  const [isLeaving, leave] = useState(false);
  useDrafts(sandbox.id);
  const draft = drafts.get(sandbox.id, path);
  const text = draft?.text ?? (content?.what === "text" ? content.text : "");

  const load = async () => {
    fail(undefined);
    try {
      set(drafts.get(sandbox.id, path)?.base ?? (await read(sandbox, path)));
    } catch (error) {
      fail(error);
    }
  };
  useEffect(() => {
    void load();
  }, [path]);
  const isChanged = draft !== undefined;

  const write = async () => {
    if (content?.what !== "text") return;
    await ask(ofSandbox(sandbox.id, `/files${query({ path })}`), { method: "PUT", body: withLineEnds(content, text) });
    const stat = await json<FileStat>(ofSandbox(sandbox.id, `/stat${query({ path })}`));
    const now = { ...content, text, stat };
    set(now);
    drafts.saved(sandbox.id, path, now);
    say(`Saved, ${bytes(stat.size)}`);
    saved();
  };
  const save = async () => {
    if (content?.what !== "text") return;
    say("Saving…");
    try {
      const now = await json<FileStat>(ofSandbox(sandbox.id, `/stat${query({ path })}`));
      if (now.modified_ms !== content.stat.modified_ms || now.size !== content.stat.size) {
        say("");
        stale(true);
        return;
      }
      await write();
    } catch (error) {
      say(`Not saved: ${sentence(error)}`);
    }
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key.toLowerCase() === "s" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void save();
    }
  };

  if (failure) return <Failure error={failure} again={() => void load()} />;
  if (!content) return <Loading what={path} />;
  return (
    <div class="file">
      <div class="file-head">
        <code class="path">{path}</code>
        <span class="quiet" role="status">{said || (isChanged ? "not saved" : bytes(content.stat.size))}</span>
        <div class="actions inline">
          <button type="button" onClick={() => void download(sandbox, path, false).catch((error: unknown) => say(sentence(error)))}>Download</button>
          {draft ? <button type="button" onClick={() => leave(true)}>Discard</button> : null}
          {content.what === "text" ? <button type="button" class="primary" disabled={!isChanged} onClick={() => void save()}>Save</button> : null}
        </div>
      </div>
      {content.what === "text" ? (
        <textarea class="editor" aria-label={`Content of ${path}. Control and S save it.`} value={text} spellcheck={false} autocapitalize="off" autocomplete="off"
          wrap="off" onInput={(event) => { drafts.keep({ sandbox: sandbox.id, path, base: content, text: event.currentTarget.value }); say(""); }} onKeyDown={keys} />
      ) : null}
      {content.what === "picture" ? <Picture path={path} picture={content.picture} /> : null}
      {content.what === "binary" ? <Empty title={`Binary file (${bytes(content.stat.size)})`}><p>Download it to view it.</p></Empty> : null}
      {content.what === "long" ? <Empty title="This is too long for a page."><p>It has {bytes(content.stat.size)}; up to {bytes(MAX_TEXT_BYTES)} of text and {bytes(MAX_PICTURE_BYTES)} of a picture are opened here. Download it, or use the terminal.</p></Empty> : null}
      {content.what === "mixed" ? <Empty title="This has two kinds of line ends."><p>The page would save it with one. Download it, or use the terminal.</p></Empty> : null}
      {content.what === "odd" ? <Empty title="This is no plain file."><p>A directory behind a link, a socket, a pipe or a device: use the terminal.</p></Empty> : null}
      {isLeaving && draft ? <Discard draft={draft} close={() => leave(false)} /> : null}
      {isStale ? (
        <Confirm title="Overwrite the newer file?" verb="Overwrite" close={() => stale(false)} act={write}>
          <p>Somebody has changed <code>{path}</code> since it was opened here. What they wrote would be lost.</p>
        </Confirm>
      ) : null}
    </div>
  );
}
