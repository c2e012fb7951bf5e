/** One sandbox: what is known of it, and its views. */

import { useEffect, useState } from "preact/hooks";
import { Refused, json, ofSandbox } from "./api.js";
import { Details } from "./details.js";
import { LeftOver, useDrafts } from "./drafts.js";
import { Events } from "./events.js";
import { Files } from "./files.js";
import { duration } from "./format.js";
import { feed, sample, useLoaded, useWhileVisible } from "./live.js";
import { Destroy, SleepWake, State, canBeWoken } from "./list.js";
import { nameOf } from "./names.js";
import { Empty, Failure, Loading, useTitle } from "./parts.js";
import { Ports } from "./ports.js";
import { Processes } from "./processes.js";
import { Snapshots } from "./snapshots.js";
import { Terminals } from "./terminals.js";
import type { Event, Sandbox } from "./types.js";
import { UsageView } from "./usage.js";

export const VIEWS = ["files", "terminal", "processes", "ports", "snapshots", "events", "usage"] as const;
export type View = (typeof VIEWS)[number];

const TITLES: Record<View, string> = { files: "Files", terminal: "Terminal", processes: "Processes", ports: "Ports", snapshots: "Snapshots", events: "Events", usage: "Usage" };

export function SandboxView({ id, view }: { id: string; view: View }) {
  const { value: sandbox, failure, again } = useLoaded((signal) => json<Sandbox>(ofSandbox(id), { signal }), [id]);
  // An address may name a sandbox as POOL/NAME. Its views have its id.
  useEffect(() => {
    if (sandbox && sandbox.id !== id) location.replace(`#/sandboxes/${sandbox.id}/${view}`);
  }, [sandbox?.id]);
  const [isLeaving, leave] = useState(false);
  const [round, next] = useState(0);

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = feed.listen((event: Event | undefined) => {
      if (event?.sandbox_id !== id || !["woke", "slept", "destroyed", "reconciled"].includes(event.kind)) return;
      clearTimeout(timer);
      timer = setTimeout(again, 120);
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [id]);
  useWhileVisible(2000, async (signal) => {
    if (sandbox?.status !== "running") return;
    await sample(sandbox, signal).catch(again);
    next((count) => count + 1);
  }, [sandbox?.life, sandbox?.status]);

  const unsaved = useDrafts(id).length;
  const name = sandbox ? nameOf(sandbox) : "Sandbox";
  useTitle(`${name}: ${TITLES[view]}`);

  if (failure instanceof Refused && failure.problem.no_sandbox) {
    return (
      <>
        <Empty title="This sandbox does not exist."><p>It was destroyed, or it expired.</p><a class="button" href="#/">All sandboxes</a></Empty>
        <LeftOver sandbox={id} />
      </>
    );
  }
  if (!sandbox || sandbox.id !== id) return failure ? <Failure error={failure} again={again} /> : <Loading what="the sandbox" />;
  return (
    <section class="sandbox" aria-labelledby="sandbox-title">
      <div class="title-row">
        <h1 id="sandbox-title"><a href="#/" class="back" aria-label="All sandboxes">‹</a> {name} <State status={sandbox.status} /></h1>
        <div class="actions inline">
          {sandbox.status === "running" ? <SleepWake sandbox={sandbox} verb="sleep" label="Sleep" kind="" done={again} /> : null}
          {canBeWoken(sandbox.status) ? <SleepWake sandbox={sandbox} verb="wake" label="Wake" kind="" done={again} /> : null}
          <button type="button" class="danger" onClick={() => leave(true)}>Destroy</button>
        </div>
      </div>
      <p class="facts quiet">
        <span>pool {sandbox.pool}</span><span>{sandbox.provider}</span><span>image {sandbox.spec.image ?? "default"}</span>
        <span>network {sandbox.isolation.network}</span><span>age {duration(Date.now() - sandbox.created_ms)}</span>
        {sandbox.expires_at ? <span>expires in {duration(Math.max(0, Date.parse(sandbox.expires_at) - Date.now()))}</span> : null}
        {Object.entries(sandbox.labels).slice(0, 6).map(([key, value]) => <span class="label" key={key} title={`${key}=${value}`}>{key}={value}</span>)}
      </p>
      <Details sandbox={sandbox} />
      <Failure error={failure} again={again} />
      <nav class="tabs" aria-label="Views of the sandbox">
        {VIEWS.map((name) => <a key={name} href={`#/sandboxes/${id}/${name}`} aria-current={name === view ? "page" : undefined}>{TITLES[name]}{name === "files" && unsaved > 0 ? <span class="unsaved-mark" title={`${unsaved} not saved`}> ●</span> : null}</a>)}
      </nav>
      {canBeWoken(sandbox.status) && ["files", "terminal", "processes", "ports"].includes(view) ? (
        <Empty title={sandbox.status === "dead" ? "The sandbox ended unexpectedly." : "The sandbox sleeps."}>
          <p>Its files are kept, and nothing runs in it. To look into it, wake it.</p>
          <SleepWake sandbox={sandbox} verb="wake" label="Wake" kind="primary" done={again} />
        </Empty>
      ) : (
        // Snapshots put the sandbox to sleep and wake it: what the view asks and says must outlast that.
        <div class="view" key={view === "snapshots" ? view : sandbox.life}>
          {view === "files" ? <Files sandbox={sandbox} /> : null}
          {view === "terminal" ? <Terminals sandbox={sandbox} /> : null}
          {view === "processes" ? <Processes sandbox={sandbox} /> : null}
          {view === "ports" ? <Ports sandbox={sandbox} /> : null}
          {view === "snapshots" ? <Snapshots sandbox={sandbox} /> : null}
          {view === "events" ? <Events pools={[]} sandbox={sandbox} /> : null}
          {view === "usage" ? <UsageView sandbox={sandbox} round={round} /> : null}
        </div>
      )}
      {isLeaving ? <Destroy sandbox={sandbox} close={() => leave(false)} done={() => { location.hash = "#/"; }} /> : null}
    </section>
  );
}
