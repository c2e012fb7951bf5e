/** The runs of all agents, the newest first, as they come and end. */

import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { type RunFilters, NO_FILTERS, addressOf, listAgents, listRuns, stateOf } from "./agents.js";
import { clock, duration, took } from "./format.js";
import { poolsNow } from "./list.js";
import { useLoaded, useWhileVisible } from "./live.js";
import { Empty, Failure, Loading, Time, useTitle } from "./parts.js";
import { Start } from "./start.js";
import type { Agent, Run, Session } from "./types.js";

/** How many runs are asked for at once. */
const PAGE_RUNS = 50;
/** The most that the server gives at once. */
const MAX_RUNS = 1000;
/** How long typing may pause before it counts, in milliseconds. */
const TYPING_MS = 300;

const STATUSES: Record<string, string> = { active: "running", interrupted: "interrupted", completed: "completed", errored: "failed or aborted" };

const EXAMPLE = `---
description: Answers questions about a repository
model: anthropic/claude-sonnet-4-5
webhook: true
---

You are a careful engineer. Read before you answer.`;

/** The list that was open last, for the way back from a run. */
let lastAddress = addressOf(NO_FILTERS);

export function backToRuns(): string {
  return lastAddress;
}

interface RunsState {
  runs: Run[];
  cursor: string | undefined;
}

/** Loads the list again and again, and more of it when that is wanted. */
function useRuns(filters: RunFilters) {
  const key = addressOf(filters);
  const [state, set] = useState<RunsState & { key: string }>();
  const [failure, fail] = useState<unknown>();
  const shown = state?.key === key ? state : undefined;
  const latest = useRef<RunsState | undefined>(undefined);
  latest.current = shown;
  const load = async (signal?: AbortSignal) => {
    try {
      const limit = Math.min(MAX_RUNS, Math.max(PAGE_RUNS, latest.current?.runs.length ?? 0));
      const page = await listRuns(filters, limit, undefined, signal);
      if (signal?.aborted) return;
      // What is beyond that stays as it was.
      const older = page.next_cursor ? (latest.current?.runs ?? []).filter((run) => isBehind(run, page.runs.at(-1))) : [];
      set({ key, runs: [...page.runs, ...older], cursor: older.length > 0 ? latest.current?.cursor : page.next_cursor });
      fail(undefined);
    } catch (error) {
      if (!signal?.aborted) fail(error);
    }
  };
  useWhileVisible(2500, load, [key]);
  const more = async () => {
    try {
      const page = await listRuns(filters, PAGE_RUNS, shown?.cursor);
      set((now) => (now?.key === key ? { key, runs: [...now.runs, ...page.runs], cursor: page.next_cursor } : now));
    } catch (error) {
      fail(error);
    }
  };
  return { shown, failure, load, more };
}

function isBehind(run: Run, last: Run | undefined): boolean {
  return last !== undefined && (run.started_ms < last.started_ms || (run.started_ms === last.started_ms && run.id < last.id));
}

export function RunList({ session, filters }: { session: Session; filters: RunFilters }) {
  const { shown, failure, load, more } = useRuns(filters);
  const agents = useLoaded(listAgents, []);
  const pools = useLoaded((signal) => poolsNow(session.pools, signal), []).value ?? session.pools;
  const [isStarting, start] = useState(false);
  const [, draw] = useReducer((turn: number) => turn + 1, 0);
  useTitle("Agents");
  useWhileVisible(1000, async () => draw(0), []);
  const address = addressOf(filters);
  useEffect(() => void (lastAddress = address), [address]);
  const isFiltered = address !== addressOf(NO_FILTERS);
  const change = (changed: Partial<RunFilters>) => location.replace(addressOf({ ...filters, ...changed }));
  const hasAgents = agents.value !== undefined && agents.value.length > 0;
  return (
    <section aria-labelledby="runs-title">
      <div class="title-row">
        <h1 id="runs-title">Agents</h1>
        {hasAgents ? <button type="button" class="primary" onClick={() => start(true)}>Start an agent</button> : null}
      </div>
      {isFiltered || shown?.runs.length !== 0 ? <Filters filters={filters} change={change} agents={agents.value ?? []} runs={shown?.runs ?? []} pools={pools} /> : null}
      <Failure error={failure ?? agents.failure} again={() => { agents.again(); void load(); }} />
      {!shown && !failure ? <Loading what="runs" /> : null}
      {shown?.runs.length === 0 && isFiltered ? <Empty title="No run matches."><button type="button" onClick={() => location.replace(addressOf(NO_FILTERS))}>Show all</button></Empty> : null}
      {shown?.runs.length === 0 && !isFiltered && agents.value ? <NoRuns agents={agents.value} again={agents.again} start={() => start(true)} /> : null}
      {shown && shown.runs.length > 0 ? <RunTable runs={shown.runs} /> : null}
      {shown?.cursor ? <div class="more-runs"><button type="button" onClick={() => void more()}>More</button></div> : null}
      {isStarting ? <Start session={session} pools={pools} agents={agents.value ?? []} runs={shown?.runs ?? []} filters={filters} close={() => start(false)} /> : null}
    </section>
  );
}

function Filters({ filters, change, agents, runs, pools }: { filters: RunFilters; change: (changed: Partial<RunFilters>) => void; agents: Agent[]; runs: Run[]; pools: string[] }) {
  const [instance, type] = useState(filters.instance);
  const latest = useRef(change);
  latest.current = change;
  const sent = useRef(filters.instance);
  useEffect(() => {
    if (instance.trim() === sent.current) return;
    const timer = setTimeout(() => latest.current({ instance: (sent.current = instance.trim()) }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [instance]);
  // The address may change by something else than typing.
  useEffect(() => {
    if (filters.instance !== sent.current) type((sent.current = filters.instance));
  }, [filters.instance]);
  const names = (all: (string | undefined)[]) => [...new Set(all.filter((name) => name !== undefined && name !== ""))].toSorted();
  const select = (field: "agent" | "status" | "pool", label: string, all: string, options: [string, string][]) => (
    <select aria-label={label} value={filters[field]} onChange={(event) => change({ [field]: event.currentTarget.value })}>
      <option value="">{all}</option>
      {options.map(([value, title]) => <option key={value} value={value}>{title}</option>)}
    </select>
  );
  const same = (all: (string | undefined)[]) => names(all).map((name): [string, string] => [name as string, name as string]);
  const knownPools = names([...pools, ...runs.map((run) => run.pool), filters.pool]);
  return (
    <div class="filters run-filters" role="search" aria-label="Runs">
      {select("agent", "Agent", "every agent", same([...agents.map((agent) => agent.name), ...runs.map((run) => run.agent), filters.agent]))}
      {select("status", "Status", "every status", Object.entries(STATUSES))}
      {knownPools.length > 1 ? select("pool", "Pool", "every pool", same(knownPools)) : null}
      <input type="search" aria-label="Instance, as it is called" placeholder="Instance" value={instance} autocomplete="off" spellcheck={false} onInput={(event) => type(event.currentTarget.value)} />
    </div>
  );
}

function NoRuns({ agents, again, start }: { agents: Agent[]; again: () => void; start: () => void }) {
  if (agents.length > 0) {
    return (
      <Empty title="No agent has run yet.">
        <p>{agents.length === 1 ? "There is one agent" : `There are ${agents.length} agents`}: {agents.map(({ name }) => <code class="word" key={name}>{name} </code>)}</p>
        {agents.map(({ name, problem }) => problem ? <p key={name}><code>{name}</code> can't work: {problem}</p> : null)}
        <button type="button" class="primary" onClick={start}>Start an agent</button>
      </Empty>
    );
  }
  return (
    <Empty title="There is no agent yet.">
      <p>An agent is a file NAME.md in the server's folder of agents: <code>agents</code> in its state folder, or the one of <code>eyot serve --agents DIR</code>. For example <code>agents/helper.md</code>:</p>
      <pre class="example">{EXAMPLE}</pre>
      <p>With <code>webhook: true</code> every key may start it.</p>
      <button type="button" onClick={again}>Look again</button>
    </Empty>
  );
}

function RunTable({ runs }: { runs: Run[] }) {
  const hasPools = new Set(runs.map((run) => run.pool)).size > 1;
  return (
    <table class="runs">
      <caption class="hidden">Runs</caption>
      <thead><tr><th scope="col">Agent</th><th scope="col">Instance</th><th scope="col">Status</th><th scope="col">Started</th><th scope="col">Duration</th>{hasPools ? <th scope="col">Pool</th> : null}</tr></thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id}>
            <th scope="row"><a href={`#/runs/${encodeURIComponent(run.id)}`} aria-label={`${run.agent}, ${run.instance}, started ${clock(run.started_ms)}`}>{run.agent}</a></th>
            <td data-label="Instance" class="instance">{run.instance}</td>
            <td data-label="Status"><RunStatus run={run} /></td>
            <td data-label="Started" class="figure"><Time ms={run.started_ms} /></td>
            <td data-label="Duration" class="figure">{durationOf(run)}</td>
            {hasPools ? <td data-label="Pool">{run.pool ?? "–"}</td> : null}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** How long a run took, or takes so far. Nobody knows how long an interrupted one worked. */
export function durationOf(run: Run): string {
  if (run.ended_ms !== undefined) return took(Math.max(0, run.ended_ms - run.started_ms));
  return run.interrupted ? "–" : duration(Date.now() - run.started_ms);
}

export function RunStatus({ run }: { run: Run }) {
  const state = stateOf(run);
  return <span class={`state ${state}`} title={run.error?.message}>{state}</span>;
}
