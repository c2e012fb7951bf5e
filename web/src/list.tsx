/** All sandboxes of the pools that one may use, live. */

import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { ask, json, ofSandbox, query } from "./api.js";
import { Spark } from "./chart.js";
import { Create } from "./create.js";
import { Lost, drafts } from "./drafts.js";
import { bytes, duration, percent } from "./format.js";
import { feed, sample, samplesOf, useLoaded, useWhileVisible } from "./live.js";
import { Confirm, Empty, Failure, Loading } from "./parts.js";
import type { Event, Sandbox, Status } from "./types.js";

/** Events after which the list is another. */
const CHANGES = ["created", "woke", "slept", "destroyed", "reconciled"];
/** How many sandboxes are asked what they use, each time. */
const ASKED = 40;

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
async function poolsNow(named: string[], signal: AbortSignal): Promise<string[]> {
  const { pools } = await json<{ pools: string[] }>("/v1/pools", { signal });
  return [...new Set([...pools, ...named])];
}

export function SandboxList({ pools }: { pools: string[] }) {
  const { value, failure, again } = useLoaded(async (signal) => listed(await poolsNow(pools, signal), signal), [pools.join()]);
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const [isCreating, create] = useState(false);
  const [leaving, destroy] = useState<Sandbox>();
  const [filter, setFilter] = useState("");
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
    !word || [one.name, one.id, one.pool, one.status, ...Object.entries(one.labels).map((pair) => pair.join("="))].some((text) => text.toLowerCase().includes(word)));
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
          <p>A sandbox is a private Linux world that is ready in milliseconds. Make one here, or from a terminal: <code>eyot --server {location.origin} create --name dev</code></p>
          <button type="button" class="primary" onClick={() => create(true)}>New sandbox</button>
        </Empty>
      ) : null}
      {value && value.length > 0 && shown.length === 0 ? <Empty title={`No sandbox has “${filter}” in its name, pool, state or labels.`} /> : null}
      {shown.length > 0 ? (
        <table class="sandboxes">
          <thead>
            <tr><th scope="col">Name</th><th scope="col">State</th><th scope="col">Pool</th><th scope="col">Age</th><th scope="col">Memory</th><th scope="col">CPU</th><th scope="col"><span class="hidden">Actions</span></th></tr>
          </thead>
          <tbody>{shown.map((sandbox) => <Row key={sandbox.id} sandbox={sandbox} destroy={() => destroy(sandbox)} again={again} />)}</tbody>
        </table>
      ) : null}
      {isCreating ? <Create pools={pools} close={() => create(false)} made={(made) => { location.hash = `#/sandboxes/${made.id}/terminal`; }} /> : null}
      {leaving ? <Destroy sandbox={leaving} close={() => destroy(undefined)} done={again} /> : null}
    </section>
  );
}

function Row({ sandbox, destroy, again }: { sandbox: Sandbox; destroy: () => void; again: () => void }) {
  const samples = samplesOf(sandbox.id);
  const last = sandbox.status === "running" ? samples.at(-1) : undefined;
  const labels = Object.entries(sandbox.labels);
  return (
    <tr>
      <th scope="row">
        <a href={`#/sandboxes/${sandbox.id}/files`}>{sandbox.name}</a>
        {labels.length > 0 ? <span class="labels">{labels.slice(0, 4).map(([key, value]) => <span class="label" key={key} title={`${key}=${value}`}>{key}={value}</span>)}</span> : null}
      </th>
      <td data-label="State"><State status={sandbox.status} /></td>
      <td data-label="Pool">{sandbox.pool}</td>
      <td data-label="Age">{duration(Date.now() - sandbox.created_ms)}</td>
      <td data-label="Memory" class="figure">{bytes(last?.usage.memory_bytes)}</td>
      <td data-label="CPU" class="figure">{last ? <><Spark values={samples.slice(-30).map((one) => one.cpu ?? 0)} /> {percent(last.cpu)}</> : "–"}</td>
      <td class="row-actions">
        {sandbox.status === "running" ? <SleepWake sandbox={sandbox} verb="sleep" label="Sleep" done={again} /> : null}
        {canBeWoken(sandbox.status) ? <SleepWake sandbox={sandbox} verb="wake" label="Wake" done={again} /> : null}
        <button type="button" class="danger plain" onClick={destroy} aria-label={`Destroy ${sandbox.name}`}>Destroy</button>
      </td>
    </tr>
  );
}

export function SleepWake({ sandbox, verb, label, done, kind = "plain" }: { sandbox: Sandbox; verb: "sleep" | "wake"; label: string; done: () => void; kind?: "plain" | "primary" | "" }) {
  const [isBusy, busy] = useState(false);
  const [error, fail] = useState<unknown>();
  const act = () => {
    busy(true);
    fail(undefined);
    ask(ofSandbox(sandbox.id, `/${verb}`), { method: "POST" }).then(done, fail).finally(() => busy(false));
  };
  return (
    <>
      <button type="button" class={kind} onClick={act} disabled={isBusy} aria-label={`${label} ${sandbox.name}`}>{isBusy ? "…" : label}</button>
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
    <Confirm title={`Destroy ${sandbox.name}?`} verb="Destroy" close={close} act={destroy}>
      <p>Its processes end and its files are removed. There is no way back. A persistent workspace is kept unless the sandbox was made to remove it.</p>
      <Lost lost={lost} />
    </Confirm>
  );
}
