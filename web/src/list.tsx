/** All sandboxes of the pools that one may use, live. */

import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { ask, json, ofSandbox, query, sentence } from "./api.js";
import { Spark } from "./chart.js";
import { Create } from "./create.js";
import { Lost, drafts } from "./drafts.js";
import { bytes, duration, percent } from "./format.js";
import { feed, sample, samplesOf, useLoaded, useWhileVisible } from "./live.js";
import { nameOf } from "./names.js";
import { Confirm, Empty, Failure, Loading, useTitle } from "./parts.js";
import type { Event, Sandbox, Status } from "./types.js";

/** Events after which the list is another. */
const CHANGES = ["created", "woke", "slept", "destroyed", "reconciled"];
/** How many sandboxes are asked what they use, each time. */
const ASKED = 40;

const COLUMNS = ["Name", "State", "Age", "Memory", "CPU"] as const;
type Column = (typeof COLUMNS)[number];

interface Order {
  by: Column;
  isReversed: boolean;
}

type BulkVerb = "Sleep" | "Wake" | "Destroy";

const BULK_TEXT: Record<BulkVerb, string> = {
  Sleep: "What runs in them ends, their terminals too. Their files are kept until they are woken.",
  Wake: "They run again, with the files that they had.",
  Destroy: "Their processes end and their files are removed. There is no way back.",
};

/** Returns how two sandboxes stand to each other in an order: names as people sort them, the youngest and the greediest first. */
function inOrder({ by, isReversed }: Order): (one: Sandbox, other: Sandbox) => number {
  const last = (sandbox: Sandbox) => (sandbox.status === "running" ? samplesOf(sandbox.id).at(-1) : undefined);
  const figure: Partial<Record<Column, (sandbox: Sandbox) => number>> = {
    Age: (one) => one.created_ms,
    Memory: (one) => last(one)?.usage.memory_bytes ?? -1,
    CPU: (one) => last(one)?.cpu ?? -1,
  };
  const text = (one: Sandbox) => (by === "State" ? one.status : nameOf(one));
  const sign = isReversed ? -1 : 1;
  const of = figure[by];
  return (one, other) => sign * (of ? of(other) - of(one) : text(one).localeCompare(text(other), undefined, { numeric: true })) || other.created_ms - one.created_ms;
}

async function listed(pools: string[], signal: AbortSignal): Promise<Sandbox[]> {
  const all: Sandbox[] = [];
  for (const pool of pools) {
    let cursor: string | undefined;
    do {
      const page: { sandboxes: Sandbox[]; next_cursor?: string | null } = await json(
        `/v1/sandboxes${query({ pool, cursor, limit: 500 })}`, { signal });
      all.push(...page.sandboxes);
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
  }
  return all.sort((one, other) => other.created_ms - one.created_ms);
}

/** The pools that may be used; without keys, those that there are now. */
export async function poolsNow(named: string[], signal: AbortSignal): Promise<string[]> {
  const { pools } = await json<{ pools: string[] }>("/v1/pools", { signal });
  return [...new Set([...pools, ...named])];
}

export function SandboxList({ pools }: { pools: string[] }) {
  const { value, failure, again } = useLoaded(async (signal) => listed(await poolsNow(pools, signal), signal), [pools.join()]);
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const [isCreating, create] = useState(false);
  const [leaving, destroy] = useState<Sandbox>();
  const [filter, setFilter] = useState("");
  const [order, sortBy] = useState<Order>({ by: "Age", isReversed: false });
  const [picked, pick] = useState<ReadonlySet<string>>(new Set());
  useTitle("Sandboxes");
  const list = useRef<Sandbox[]>([]);
  list.current = value ?? [];

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = (event: Event | undefined) => {
      if (!event || !CHANGES.includes(event.kind)) return;
      clearTimeout(timer);
      timer = setTimeout(again, 120);
    };
    const end = feed.listen(heard);
    return () => {
      end();
      clearTimeout(timer);
    };
  }, []);
  useWhileVisible(3000, async (signal) => {
    const running = list.current.filter((sandbox) => sandbox.status === "running").slice(0, ASKED);
    const asked = await Promise.allSettled(running.map((sandbox) => sample(sandbox, signal)));
    // One that is not as it was went to sleep or is gone.
    if (asked.some((one) => one.status === "rejected") || feed.failure) again();
    draw(0);
  }, [value === undefined]);

  const word = filter.trim().toLowerCase();
  const shown = (value ?? []).filter((one) =>
    !word || [nameOf(one), one.id, one.pool, one.status, ...Object.entries(one.labels).map((pair) => pair.join("="))].some((text) => text.toLowerCase().includes(word))).sort(inOrder(order));
  const chosen = shown.filter((one) => picked.has(one.id));
  const toggle = (ids: string[], isPicked: boolean) => {
    const next = new Set(picked);
    for (const id of ids) (isPicked ? next.add(id) : next.delete(id));
    pick(next);
  };
  return (
    <section aria-labelledby="list-title">
      <div class="title-row">
        <h1 id="list-title">Sandboxes {value ? <span class="count">{value.length}</span> : null}</h1>
        <input type="search" aria-label="Filter by name, pool, state or label" placeholder="Filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <button type="button" class="primary" onClick={() => create(true)}>New sandbox</button>
      </div>
      <Failure error={failure} again={again} />
      {!value && !failure ? <Loading what="sandboxes" /> : null}
      {value?.length === 0 ? (
        <Empty title="There is no sandbox yet.">
          <p>A sandbox is a private Linux world that is ready in milliseconds. Make one here, or from a terminal: <code>eyot --server {location.origin} create dev</code></p>
          <button type="button" class="primary" onClick={() => create(true)}>New sandbox</button>
        </Empty>
      ) : null}
      {value && value.length > 0 && shown.length === 0 ? <Empty title={`No sandbox has “${filter}” in its name, pool, state or labels.`} /> : null}
      {shown.length > 0 ? (
        <>
          <Bulk chosen={chosen} count={shown.length} order={order} sortBy={sortBy} again={again} pickAll={(isPicked) => toggle(shown.map((one) => one.id), isPicked)} />
          <table class="sandboxes">
            <thead>
              <tr>
                <th scope="col" class="pick"><span class="hidden">Select</span></th>
                {COLUMNS.map((name) => <Heading key={name} name={name} order={order} sortBy={sortBy} />)}
                <th scope="col"><span class="hidden">Actions</span></th>
              </tr>
            </thead>
            <tbody>
              {shown.map((sandbox) => (
                <Row key={sandbox.id} sandbox={sandbox} destroy={() => destroy(sandbox)} again={again} isPicked={picked.has(sandbox.id)}
                  pick={(isPicked) => toggle([sandbox.id], isPicked)} />
              ))}
            </tbody>
          </table>
        </>
      ) : null}
      {isCreating ? <Create pools={pools} close={() => create(false)} made={(made) => { location.hash = `#/sandboxes/${made.id}/terminal`; }} /> : null}
      {leaving ? <Destroy sandbox={leaving} close={() => destroy(undefined)} done={again} /> : null}
    </section>
  );
}

/** A column's heading, which sorts by it; a second click turns the order. */
function Heading({ name, order, sortBy }: { name: Column; order: Order; sortBy: (order: Order) => void }) {
  const isIt = order.by === name;
  const sorted = isIt ? (order.isReversed ? "descending" : "ascending") : undefined;
  return (
    <th scope="col" aria-sort={sorted}>
      <button type="button" class="heading" onClick={() => sortBy({ by: name, isReversed: isIt && !order.isReversed })}>
        {name}<span aria-hidden="true">{isIt ? (order.isReversed ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

/** What can be done with all the sandboxes that are selected. On a phone the order is chosen here. */
function Bulk({ chosen, count, order, sortBy, again, pickAll }: {
  chosen: Sandbox[];
  count: number;
  order: Order;
  sortBy: (order: Order) => void;
  again: () => void;
  pickAll: (isPicked: boolean) => void;
}) {
  const [verb, ask] = useState<BulkVerb>();
  const isAll = chosen.length === count;
  const able = (wanted: BulkVerb) => chosen.filter((one) => wanted === "Destroy" || (wanted === "Sleep" ? one.status === "running" : canBeWoken(one.status)));
  const button = (wanted: BulkVerb) => (
    <button type="button" class={wanted === "Destroy" ? "danger" : ""} disabled={able(wanted).length === 0} onClick={() => ask(wanted)}>{wanted} selected</button>
  );
  return (
    <div class="bulk" role="group" aria-label="Selected sandboxes">
      <label class="check"><input type="checkbox" checked={isAll} onChange={(event) => pickAll(event.currentTarget.checked)} /> {chosen.length > 0 ? `${chosen.length} selected` : "Select all"}</label>
      {chosen.length > 0 ? <>{button("Sleep")}{button("Wake")}{button("Destroy")}</> : null}
      <label class="check order">Sort by <select value={order.by} onChange={(event) => sortBy({ by: event.currentTarget.value as Column, isReversed: false })}>{COLUMNS.map((name) => <option key={name}>{name}</option>)}</select></label>
      {verb ? <BulkQuestion verb={verb} all={able(verb)} close={() => ask(undefined)} again={again} /> : null}
    </div>
  );
}

/** Asks before something is done with many sandboxes. One that fails leaves the others done. */
function BulkQuestion({ verb, all, close, again }: { verb: BulkVerb; all: Sandbox[]; close: () => void; again: () => void }) {
  const lost = verb === "Destroy" ? all.flatMap((one) => drafts.of(one.id)) : [];
  const names = all.map(nameOf);
  const act = async () => {
    const one = async (sandbox: Sandbox) => {
      if (verb === "Destroy") await ask(ofSandbox(sandbox.id), { method: "DELETE" });
      else await ask(ofSandbox(sandbox.id, `/${verb.toLowerCase()}`), { method: "POST" });
      if (verb === "Destroy") drafts.discard(drafts.of(sandbox.id));
    };
    const done = await Promise.allSettled(all.map(one));
    again();
    const failed = done.flatMap((result, at) => (result.status === "rejected" ? [`${names[at]}: ${sentence(result.reason)}`] : []));
    if (failed.length > 0) throw new Error(failed.join("; "));
  };
  return (
    <Confirm title={`${verb} ${all.length === 1 ? "1 sandbox" : `${all.length} sandboxes`}?`} verb={verb} close={close} act={act} isSafe={verb === "Wake"}>
      <p>{names.map((name) => <code class="word" key={name}>{name} </code>)}</p>
      <p>{BULK_TEXT[verb]}</p>
      <Lost lost={lost} />
    </Confirm>
  );
}

function Row({ sandbox, destroy, again, isPicked, pick }: { sandbox: Sandbox; destroy: () => void; again: () => void; isPicked: boolean; pick: (isPicked: boolean) => void }) {
  const samples = samplesOf(sandbox.id);
  const last = sandbox.status === "running" ? samples.at(-1) : undefined;
  const labels = Object.entries(sandbox.labels);
  return (
    <tr class={isPicked ? "chosen" : ""}>
      <td class="pick"><input type="checkbox" aria-label={`Select ${nameOf(sandbox)}`} checked={isPicked} onChange={(event) => pick(event.currentTarget.checked)} /></td>
      <th scope="row">
        <a href={`#/sandboxes/${sandbox.id}/files`}>{nameOf(sandbox)}</a>
        {labels.length > 0 ? <span class="labels">{labels.slice(0, 4).map(([key, value]) => <span class="label" key={key} title={`${key}=${value}`}>{key}={value}</span>)}</span> : null}
      </th>
      <td data-label="State"><State status={sandbox.status} /></td>
      <td data-label="Age">{duration(Date.now() - sandbox.created_ms)}</td>
      <td data-label="Memory" class="figure">{bytes(last?.usage.memory_bytes)}</td>
      <td data-label="CPU" class="figure">{last ? <><Spark values={samples.slice(-30).map((one) => one.cpu ?? 0)} /> {percent(last.cpu)}</> : "–"}</td>
      <td class="row-actions">
        {sandbox.status === "running" ? <SleepWake sandbox={sandbox} verb="sleep" label="Sleep" done={again} /> : null}
        {canBeWoken(sandbox.status) ? <SleepWake sandbox={sandbox} verb="wake" label="Wake" done={again} /> : null}
        <button type="button" class="danger plain" onClick={destroy} aria-label={`Destroy ${nameOf(sandbox)}`}>Destroy</button>
      </td>
    </tr>
  );
}

export function SleepWake({ sandbox, verb, label, done, kind = "plain" }: { sandbox: Sandbox; verb: "sleep" | "wake"; label: string; done: () => void; kind?: "plain" | "primary" | "" }) {
  const [isBusy, busy] = useState(false);
  const [error, fail] = useState<unknown>();
  const [isAsked, asks] = useState(false);
  const post = async () => {
    await ask(ofSandbox(sandbox.id, `/${verb}`), { method: "POST" });
    done();
  };
  const act = () => {
    if (verb === "sleep") return asks(true);
    busy(true);
    fail(undefined);
    post().catch(fail).finally(() => busy(false));
  };
  return (
    <>
      <button type="button" class={kind} onClick={act} disabled={isBusy} aria-label={`${label} ${nameOf(sandbox)}`}>{isBusy ? "…" : label}</button>
      {isAsked ? (
        <Confirm title={`Put ${nameOf(sandbox)} to sleep?`} verb="Sleep" close={() => asks(false)} act={post}>
          <p>What runs in it ends, its terminals too. Its files are kept until it is woken.</p>
        </Confirm>
      ) : null}
      {error ? <span role="alert" class="bad" title={error instanceof Error ? error.message : ""}>failed</span> : null}
    </>
  );
}

/** A sandbox whose guest was killed, or whose host was restarted, is dead until it is woken. */
export function canBeWoken(status: Status): boolean {
  return status === "sleeping" || status === "dead";
}

export function State({ status }: { status: Status }) {
  return <span class={`state ${status}`}>{status}</span>;
}

export function Destroy({ sandbox, close, done }: { sandbox: Sandbox; close: () => void; done: () => void }) {
  const lost = drafts.of(sandbox.id);
  const destroy = async () => {
    await ask(ofSandbox(sandbox.id), { method: "DELETE" });
    drafts.discard(lost);
    done();
  };
  return (
    <Confirm title={`Destroy ${nameOf(sandbox)}?`} verb="Destroy" close={close} act={destroy}>
      <p>Its processes end and its files are removed. There is no way back. A persistent workspace is kept unless the sandbox was made to remove it.</p>
      <Lost lost={lost} />
    </Confirm>
  );
}
