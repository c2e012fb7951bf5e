/** The event log: of everything that one may see, or of one sandbox. */

import { useState } from "preact/hooks";
import { bytes, took } from "./format.js";
import { KEPT_EVENTS, useFeed } from "./live.js";
import { shownName } from "./names.js";
import { Empty, Loading, Time, useTitle } from "./parts.js";
import type { Event, Sandbox } from "./types.js";

/** How many are drawn at once. */
const SHOWN = 300;

const KINDS: Record<string, string> = {
  created: "created", woke: "woke", slept: "slept", destroyed: "destroyed", exec_started: "command started",
  exec_ended: "command ended", file_written: "file written", transferred: "transferred", port_opened: "port opened",
  egress_decided: "egress", reconciled: "put right", snapshot_taken: "snapshot taken", snapshot_removed: "snapshot removed",
  rolled_back: "gone back",
};

/** The command of a terminal that names none: `SHELL` in crates/server/src/api/terminals.rs. */
const SHELL = "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi";

/** The command of an event as one reads it. */
function commandOf(event: Event): string {
  return event.command === SHELL ? "a terminal" : String(event.command ?? "");
}

/** The sandbox that an event is about, or nothing where it is about none. */
function sandboxOf(event: Event): string | undefined {
  return event.sandbox ? shownName(event.sandbox, event.pool) : event.sandbox_id;
}

/** What happened, in one line. */
function told(event: Event): string {
  const text = (name: string) => String(event[name] ?? "");
  switch (event.kind) {
    case "exec_started": return commandOf(event);
    case "exec_ended": return `${outcome(event.outcome)} after ${took(Number(event.duration_ms))}: ${commandOf(event)}`;
    case "file_written": return `${text("path")}, ${bytes(Number(event.size))}`;
    case "transferred": return `${text("from")}:${text("from_path")} → ${text("to_path")}`;
    case "port_opened": return `${text("port")} at ${text("url")}`;
    case "egress_decided": return `${text("verdict")} ${text("protocol")} ${text("host")}${event.port ? `:${text("port")}` : ""}: ${event.reason}`;
    case "reconciled": return text("what");
    default: return event.reason;
  }
}

export function outcome(value: unknown): string {
  if (typeof value === "string") return value.replaceAll("_", " ");
  const [[name, figure] = ["ended", ""]] = Object.entries((value ?? {}) as Record<string, unknown>);
  return `${name === "exited" ? "exit" : String(name)} ${String(figure)}`;
}

/** The events of all sandboxes, as a view of its own. */
export function AllEvents({ pools }: { pools: string[] }) {
  useTitle("Events");
  return <Events pools={pools} />;
}

export function Events({ pools, sandbox }: { pools: string[]; sandbox?: Sandbox }) {
  const feed = useFeed();
  const [kind, setKind] = useState("");
  const [pool, setPool] = useState("");
  const [text, setText] = useState("");
  const word = text.trim().toLowerCase();
  const found = feed.all.filter((event) =>
    (!sandbox || event.sandbox_id === sandbox.id) && (!kind || event.kind === kind) && (!pool || event.pool === pool)
    && (!word || `${sandboxOf(event) ?? ""} ${event.sandbox_id ?? ""} ${told(event)} ${event.reason}`.toLowerCase().includes(word)));
  const shown = found.slice(-SHOWN).reverse();
  const isFiltered = Boolean(kind || pool || word);
  const knownPools = [...new Set([...pools, ...feed.all.map((event) => event.pool ?? "").filter(Boolean)])];
  return (
    <section aria-label="Events">
      <div class="title-row">
        {sandbox ? null : <h1>Events</h1>}
        <div class="filters">
          <select aria-label="Kind" value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            <option value="">every kind</option>
            {Object.entries(KINDS).map(([name, title]) => <option key={name} value={name}>{title}</option>)}
          </select>
          {sandbox || knownPools.length < 2 ? null : (
            <select aria-label="Pool" value={pool} onChange={(event) => setPool(event.currentTarget.value)}>
              <option value="">every pool</option>
              {knownPools.map((name) => <option key={name}>{name}</option>)}
            </select>
          )}
          <input type="search" aria-label="Text" placeholder="Filter by text" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <span class={`live ${feed.connected ? "on" : ""}`} role="status">{feed.connected ? "live" : "connecting…"}</span>
        </div>
      </div>
      {feed.failure ? <div class="failure" role="alert"><p>{feed.failure}</p></div> : null}
      {!feed.connected && feed.all.length === 0 && !feed.failure ? <Loading what="events" /> : null}
      {feed.connected && shown.length === 0 ? (
        isFiltered
          ? <Empty title="No event matches."><button type="button" onClick={() => { setKind(""); setPool(""); setText(""); }}>Show all</button></Empty>
          : <Empty title="Nothing has happened yet."><p>Creates, commands, written files and refused connections appear here as they happen.</p></Empty>
      ) : null}
      {shown.length > 0 ? (
        <table class="events">
          <thead><tr><th scope="col">When</th>{sandbox ? null : <th scope="col">Sandbox</th>}<th scope="col">What</th><th scope="col">Details</th></tr></thead>
          <tbody>
            {shown.map((event) => (
              <tr key={event.seq}>
                <td class="quiet figure"><Time ms={event.time_ms} /></td>
                {sandbox ? null : <td>{event.sandbox_id ? <a href={`#/sandboxes/${event.sandbox_id}/events`}>{sandboxOf(event)}</a> : sandboxOf(event) ?? "–"}</td>}
                <td><span class={`kind ${event.kind}`}>{KINDS[event.kind] ?? event.kind}</span></td>
                <td class="details" title={event.reason}>{told(event)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {found.length > SHOWN || feed.all.length >= KEPT_EVENTS
        ? <p class="quiet">The last {shown.length} of {found.length} are shown, out of the {feed.all.length} that the page holds. <code>eyot events</code> tells all.</p> : null}
    </section>
  );
}
