/** The snapshots of a sandbox's pool as a tree: taken, gone back to, forked, compared and removed. */

import { useEffect, useState } from "preact/hooks";
import { ask, json, ofSandbox, query } from "./api.js";
import { Changes, type Compared } from "./changes.js";
import { bytes } from "./format.js";
import { feed, useLoaded } from "./live.js";
import { shownName } from "./names.js";
import { Confirm, Dialog, Empty, Failure, Field, Loading, Time, useAct } from "./parts.js";
import type { Event, Sandbox, Snapshot } from "./types.js";

/** A snapshot, and how many of those it came from are listed. */
interface Branch {
  snapshot: Snapshot;
  depth: number;
}

/** Orders snapshots as a tree: each is followed by those that came from it, the oldest first. */
export function treeOf(all: Snapshot[]): Branch[] {
  const known = new Set(all.map(({ id }) => id));
  const below = new Map<string | null, Snapshot[]>();
  for (const snapshot of all) {
    const parent = snapshot.parent !== null && known.has(snapshot.parent) ? snapshot.parent : null;
    below.set(parent, [...(below.get(parent) ?? []), snapshot]);
  }
  const rows: Branch[] = [];
  // As a list of what is left to do: a chain may be hundreds long.
  const left: Branch[] = (below.get(null) ?? []).map((snapshot) => ({ snapshot, depth: 0 })).reverse();
  for (let next = left.pop(); next; next = left.pop()) {
    const { snapshot, depth } = next;
    rows.push(next);
    left.push(...(below.get(snapshot.id) ?? []).map((child) => ({ snapshot: child, depth: depth + 1 })).reverse());
  }
  return rows;
}

/** Returns the name of a snapshot or, if it has none, the beginning of its id. */
function titleOf({ name, id }: Snapshot): string {
  return name ?? id.slice(0, 15);
}

/** The things that a dialog asks for. */
type Asked = { is: "take" } | { is: "fork"; from?: Snapshot } | { is: "back"; to: Snapshot } | { is: "remove"; snapshot: Snapshot };

export function Snapshots({ sandbox }: { sandbox: Sandbox }) {
  const list = async (sizes: boolean, signal: AbortSignal) =>
    (await json<{ snapshots: Snapshot[] }>(`/v1/snapshots${query({ pool: sandbox.pool, sizes })}`, { signal })).snapshots;
  const { value: all, failure, again } = useLoaded((signal) => list(false, signal), [sandbox.id]);
  // Sizes may take a walk through the files, which the list does not wait for.
  const { value: sized } = useLoaded(async (signal) => (all?.some(({ own_bytes }) => own_bytes === null) ? list(true, signal) : []), [all]);
  const [asked, askFor] = useState<Asked>();
  const [compared, compare] = useState<Compared>();
  const [note, say] = useState("");
  useEffect(() => feed.listen((event: Event | undefined) => {
    if (event?.pool === sandbox.pool && ["snapshot_taken", "snapshot_removed"].includes(event.kind)) again();
  }), [sandbox.id]);
  const done = (words: string, stopped: string[]) => {
    say(stopped.length > 0 ? `${words} Ended for it: ${stopped.join(", ")}.` : words);
    again();
  };
  const rows = all ? treeOf(all) : [];
  return (
    <section class="snapshots" aria-label="Snapshots">
      <div class="file-actions">
        <button type="button" class="primary" onClick={() => askFor({ is: "take" })}>Take a snapshot</button>
        <button type="button" onClick={() => compare({ from: `base:${sandbox.id}`, to: sandbox.id })}>Show what has changed</button>
        <button type="button" onClick={() => askFor({ is: "fork" })}>Fork</button>
        <span class="quiet" role="status">{note}</span>
      </div>
      <Failure error={failure} again={again} />
      {!all && !failure ? <Loading what="snapshots" /> : null}
      {all?.length === 0 ? (
        <Empty title="There is no snapshot yet.">
          <p>A snapshot keeps the files as they are now. You can go back to it, compare with it, and fork sandboxes that begin with its files.</p>
        </Empty>
      ) : null}
      {rows.length > 0 ? (
        <table>
          <caption class="hidden">Snapshots of the pool {sandbox.pool}, each below the one that it came from</caption>
          <thead><tr><th scope="col">Snapshot</th><th scope="col">Of</th><th scope="col">Taken</th><th scope="col">Adds</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
          <tbody>
            {rows.map(({ snapshot, depth }) => (
              <Row key={snapshot.id} snapshot={snapshot} depth={depth} sandbox={sandbox} ask={askFor}
                size={snapshot.own_bytes ?? sized?.find(({ id }) => id === snapshot.id)?.own_bytes}
                compare={() => compare({ from: snapshot.id, to: sandbox.id })} />
            ))}
          </tbody>
        </table>
      ) : null}
      {compared ? <Changes sandbox={sandbox} snapshots={all ?? []} title={titleOf} compared={compared} compare={compare} /> : null}
      {asked ? <Asking asked={asked} sandbox={sandbox} close={() => askFor(undefined)} done={done} /> : null}
    </section>
  );
}

function Row({ snapshot, depth, sandbox, size, ask, compare }: {
  snapshot: Snapshot;
  depth: number;
  sandbox: Sandbox;
  size: number | null | undefined;
  ask: (asked: Asked) => void;
  compare: () => void;
}) {
  const title = titleOf(snapshot);
  // Beyond some depth there is no room for more.
  return (
    <tr>
      <th scope="row"><span class="branch" style={{ "--depth": Math.min(depth, 12) }} title={snapshot.id}>{depth > 0 ? <span class="quiet" aria-hidden="true">└ </span> : null}{title}</span></th>
      <td data-label="Of">{snapshot.sandbox === sandbox.id ? "this sandbox" : shownName(snapshot.sandbox_name, sandbox.pool)}</td>
      <td data-label="Taken" class="figure quiet"><Time ms={snapshot.created_ms} /></td>
      <td data-label="Adds" class="figure">{bytes(size)}</td>
      <td class="row-actions">
        <button type="button" class="plain" onClick={compare} aria-label={`Compare with ${title}`}>Compare</button>
        <button type="button" class="plain" onClick={() => ask({ is: "fork", from: snapshot })} aria-label={`Fork ${title}`}>Fork</button>
        <button type="button" class="plain" onClick={() => ask({ is: "back", to: snapshot })} aria-label={`Go back to ${title}`}>Go back</button>
        <button type="button" class="plain danger" onClick={() => ask({ is: "remove", snapshot })} aria-label={`Remove ${title}`}>Remove</button>
      </td>
    </tr>
  );
}

type Done = (words: string, stopped: string[]) => void;

function Asking({ asked, sandbox, close, done }: { asked: Asked; sandbox: Sandbox; close: () => void; done: Done }) {
  switch (asked.is) {
    case "take": return <Take sandbox={sandbox} close={close} done={done} />;
    case "fork": return <Fork sandbox={sandbox} from={asked.from} close={close} />;
    case "back": return <GoBack sandbox={sandbox} to={asked.to} close={close} done={done} />;
    case "remove": {
      const remove = async () => {
        await ask(`/v1/snapshots/${asked.snapshot.id}`, { method: "DELETE" });
        done("Removed.", []);
      };
      return (
        <Confirm title={`Remove ${titleOf(asked.snapshot)}?`} verb="Remove" close={close} act={remove}>
          <p>Sandboxes that were made from it, and later snapshots, stay as they are. Nobody can go back to it any more.</p>
        </Confirm>
      );
    }
  }
}

/** Asks whether what runs may be ended. A sandbox that works is refused otherwise. */
function Stop({ sandbox, stop, set }: { sandbox: Sandbox; stop: boolean; set: (stop: boolean) => void }) {
  if (sandbox.status !== "running") return null;
  return <label class="check"><input type="checkbox" checked={stop} onChange={(event) => set(event.currentTarget.checked)} /> End the commands that run. Started processes start again.</label>;
}

function Take({ sandbox, close, done }: { sandbox: Sandbox; close: () => void; done: Done }) {
  const [name, setName] = useState("");
  const [stop, setStop] = useState(false);
  const { isBusy, error, done: act } = useAct(async () => {
    const { stopped } = await json<{ stopped: string[] }>(ofSandbox(sandbox.id, "/snapshots"), { method: "POST", json: { name: name.trim() || null, stop } });
    done("The snapshot is taken.", stopped);
  }, close);
  return (
    <Dialog title="Take a snapshot" close={close}>
      <form onSubmit={act}>
        <Field label="Name" hint="Lowercase letters, digits and hyphens. Without one it has its id.">
          {(id) => <input id={id} value={name} autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />}
        </Field>
        <Stop sandbox={sandbox} stop={stop} set={setStop} />
        <Failure error={error} />
        <div class="actions">
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class="primary" disabled={isBusy}>Take</button>
        </div>
      </form>
    </Dialog>
  );
}

/** Makes one sandbox with the files of a snapshot, or of the sandbox as it is, and opens it. */
function Fork({ sandbox, from, close }: { sandbox: Sandbox; from: Snapshot | undefined; close: () => void }) {
  const [name, setName] = useState("");
  const [stop, setStop] = useState(false);
  const { isBusy, error, done: act } = useAct(async () => {
    const body = { from: from?.id ?? sandbox.id, name: name.trim() || null, stop };
    const { names } = await json<{ names: string[] }>(`/v1/fork${query({ pool: sandbox.pool })}`, { method: "POST", json: body });
    location.hash = `#/sandboxes/${encodeURIComponent(shownName(names[0] ?? "", sandbox.pool))}/files`;
  }, close);
  return (
    <Dialog title={from ? `Fork ${titleOf(from)}` : "Fork the sandbox as it is"} close={close}>
      <form onSubmit={act}>
        <Field label="Name of the new sandbox" hint="Without one it is called after what it comes from, with a number.">
          {(id) => <input id={id} value={name} autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />}
        </Field>
        {from ? null : <Stop sandbox={sandbox} stop={stop} set={setStop} />}
        <Failure error={error} />
        <div class="actions">
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class="primary" disabled={isBusy}>Fork</button>
        </div>
      </form>
    </Dialog>
  );
}

function GoBack({ sandbox, to, close, done }: { sandbox: Sandbox; to: Snapshot; close: () => void; done: Done }) {
  const [stop, setStop] = useState(false);
  const back = async () => {
    const { stopped } = await json<{ stopped: string[] }>(ofSandbox(sandbox.id, "/rollback"), { method: "POST", json: { snapshot: to.id, stop } });
    done(`The files are those of ${titleOf(to)} again.`, stopped);
  };
  return (
    <Confirm title={`Go back to ${titleOf(to)}?`} verb="Go back" close={close} act={back}>
      <p>What the sandbox has changed since then is lost. Take a snapshot first to keep it.</p>
      <Stop sandbox={sandbox} stop={stop} set={setStop} />
    </Confirm>
  );
}
