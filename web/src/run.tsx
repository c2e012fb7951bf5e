/** One run: what is known of it, its timeline as it goes on, and how it is aborted, resumed and continued. */

import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { Refused, ask, json } from "./api.js";
import { NO_FILTERS, abortRun, addressOf, listAgents, ofRun, startRun } from "./agents.js";
import { type Connection, useFollowed } from "./follow.js";
import { useLoaded, useWhileVisible } from "./live.js";
import { shownName } from "./names.js";
import { Confirm, Empty, Failure, Field, Loading, Time, useTitle } from "./parts.js";
import { RunStatus, backToRuns, durationOf } from "./runs.js";
import { mayStart } from "./start.js";
import { Timeline, usageText } from "./timeline.js";
import type { Run, Session } from "./types.js";

/** How near to the end of the page one must be to stay there while it grows, in pixels. */
const NEAR_END = 60;

/** The agent of runs that the command line started. A server starts none of that name. */
const COMMAND_LINE = "eyot";

const CONNECTIONS: Record<Connection, string> = { connecting: "connecting…", live: "live", ended: "", refused: "not connected" };

export function RunView({ id, session }: { id: string; session: Session }) {
  const { value: run, failure, again } = useLoaded((signal) => json<Run>(ofRun(id), { signal }), [id]);
  const { transcript, line, failure: cut } = useFollowed(id);
  const [, draw] = useReducer((turn: number) => turn + 1, 0);
  const isActive = run?.status === "active";
  useTitle(run ? `${run.agent} ${run.instance}: Run` : "Run");
  // The run is asked for until it has its end; that tells, too, that its process is gone.
  const age = useRef(0);
  useWhileVisible(1000, async () => {
    if (!isActive) return;
    age.current += 1;
    if (transcript.hasEnded || age.current % 4 === 0) again();
    draw(0);
  }, [isActive]);
  useEffect(() => {
    if (transcript.hasEnded) again();
  }, [transcript.hasEnded]);
  useStayAtEnd(isActive === true, transcript.last);

  if (failure instanceof Refused && failure.problem.status === 404) {
    return <Empty title="This run does not exist."><p>The server keeps the last 50 ended runs of an instance.</p><a class="button" href={backToRuns()}>All runs</a></Empty>;
  }
  if (!run) return failure ? <Failure error={failure} again={again} /> : <Loading what="the run" />;
  return (
    <section class={run.interrupted ? "run is-interrupted" : "run"} aria-labelledby="run-title">
      <div class="title-row">
        <h1 id="run-title"><a href={backToRuns()} class="back" aria-label="All runs">‹</a> {run.agent} <span class="instance-name">{run.instance}</span> <RunStatus run={run} /></h1>
        <Actions run={run} session={session} again={again} />
      </div>
      <p class="facts quiet">
        <span>started <Time ms={run.started_ms} /></span>
        {run.interrupted ? null : <span>{isActive ? "for" : "took"} {durationOf(run)}</span>}
        {transcript.turns > 0 ? <span>{transcript.turns === 1 ? "1 turn" : `${transcript.turns} turns`}</span> : null}
        {transcript.usage.totalTokens > 0 ? <span>{usageText(transcript.usage)}</span> : null}
      </p>
      <p class="facts">
        {run.sandbox ? <a class="touch" href={`#/sandboxes/${encodeURIComponent(run.pool ? `${run.pool}/${run.sandbox}` : run.sandbox)}/files`}>Sandbox {shownName(run.sandbox, run.pool)}</a> : null}
        <a class="touch" href={addressOf({ ...NO_FILTERS, agent: run.agent, instance: run.instance })}>All runs of {run.instance}</a>
      </p>
      {run.interrupted ? <div class="interrupted" role="status"><p>The process that ran it is gone. Resume goes on where it was.</p></div> : null}
      <Failure error={failure} again={again} />
      {cut && line !== "ended" ? <div class="failure" role="alert"><p>{cut}</p><p class="quiet">{line === "refused" ? "Nothing more is read." : "It is tried again."}</p></div> : null}
      <div class="timeline" role="region" aria-label="Timeline">
        {transcript.last < 0 ? <Loading what="the timeline" /> : <Timeline list={transcript.root} />}
      </div>
      {isActive && !run.interrupted ? <p class={`live ${line === "live" ? "on" : ""}`} role="status">{CONNECTIONS[line]}</p> : null}
      {run.error && !transcript.hasEnded && !isActive ? <Failure error={new Error(run.error.message)} /> : null}
      {isActive ? null : <Continue run={run} session={session} />}
    </section>
  );
}

/** Keeps somebody at the end of the page there while the page grows. */
function useStayAtEnd(isWanted: boolean, last: number): void {
  const isAtEnd = useRef(true);
  useEffect(() => {
    const seen = () => (isAtEnd.current = innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR_END);
    addEventListener("scroll", seen, { passive: true });
    return () => removeEventListener("scroll", seen);
  }, []);
  useLayoutEffect(() => {
    if (isWanted && isAtEnd.current) scrollTo(0, document.documentElement.scrollHeight);
  }, [isWanted, last]);
}

function Actions({ run, session, again }: { run: Run; session: Session; again: () => void }) {
  const [isAsked, asks] = useState(false);
  const [isBusy, busy] = useState(false);
  const [error, fail] = useState<unknown>();
  const resume = async () => {
    busy(true);
    fail(undefined);
    try {
      await ask(ofRun(run.id, "/resume"), { method: "POST" });
      again();
    } catch (problem) {
      fail(problem);
    }
    busy(false);
  };
  const abort = async () => {
    await abortRun(run.id, session.name ? `aborted on the page by ${session.name}` : "aborted on the page");
    again();
  };
  if (run.status !== "active") return null;
  return (
    <div class="actions inline">
      {run.interrupted ? <button type="button" class="primary" disabled={isBusy} onClick={() => void resume()}>{isBusy ? "Resuming…" : "Resume"}</button> : null}
      {run.interrupted ? null : <button type="button" class="danger" onClick={() => asks(true)}>Abort</button>}
      <Failure error={error} />
      {isAsked ? (
        <Confirm title="Abort the run?" verb="Abort" close={() => asks(false)} act={abort}>
          <p>Its commands end, and the run ends as soon as its agent has seen that. Files in its sandbox stay. The conversation can be continued.</p>
        </Confirm>
      ) : null}
    </div>
  );
}

/** Continues the conversation of a run that has ended, in a new run of the same instance. */
function Continue({ run, session }: { run: Run; session: Session }) {
  const { value: agents } = useLoaded(listAgents, []);
  const [prompt, write] = useState("");
  const [isBusy, busy] = useState(false);
  const [error, fail] = useState<unknown>();
  const form = useRef<HTMLFormElement>(null);
  const agent = agents?.find(({ name }) => name === run.agent);
  if (!agents) return null;
  if (run.agent === COMMAND_LINE) return <p class="quiet">The command line continues it: <code>eyot agent --continue {run.instance} TASK</code></p>;
  if (!agent || !mayStart(session, agent)) {
    return <p class="quiet">{agent ? "Without webhook: true in its file, this agent can't be started with a key." : "There is no such agent here any more, so the conversation can't be continued from the page."}</p>;
  }
  const go = async (event: Event) => {
    event.preventDefault();
    busy(true);
    fail(undefined);
    try {
      const name = (run.payload as { session?: unknown } | null | undefined)?.session;
      const made = await startRun({ agent: run.agent, instance: run.instance, pool: run.pool, prompt, session: typeof name === "string" ? name : undefined });
      location.hash = `#/runs/${encodeURIComponent(made.id)}`;
    } catch (problem) {
      fail(problem);
      busy(false);
    }
  };
  const send = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.current?.requestSubmit();
  };
  return (
    <form class="continue" ref={form} onSubmit={go}>
      <Field label="Continue the conversation" hint="A new run of the same instance, in the same sandbox. Control+Enter sends.">
        {(id) => <textarea id={id} class="prose-input" required rows={3} value={prompt} onKeyDown={send} onInput={(event) => write(event.currentTarget.value)} />}
      </Field>
      <Failure error={error} />
      <div class="actions"><button type="submit" class="primary" disabled={isBusy}>{isBusy ? "Starting…" : "Continue"}</button></div>
    </form>
  );
}
