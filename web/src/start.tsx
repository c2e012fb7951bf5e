/** Starting an agent. */

import { useId, useState } from "preact/hooks";
import { type RunFilters, startRun } from "./agents.js";
import { Dialog, Empty, Failure, Field } from "./parts.js";
import type { Agent, Run, Session } from "./types.js";

/** Tells whether somebody with this session may start an agent. */
export function mayStart(session: Session, agent: Agent): boolean {
  return agent.problem === undefined && (agent.webhook || !session.needs_key);
}

/** Asks which agent is to do what, and goes to its run. */
export function Start({ session, pools, agents, runs, filters, close }: { session: Session; pools: string[]; agents: Agent[]; runs: Run[]; filters: RunFilters; close: () => void }) {
  const able = agents.filter((agent) => mayStart(session, agent));
  const first = able.find((agent) => agent.name === filters.agent) ?? able[0];
  const [form, set] = useState({ agent: first?.name ?? "", pool: filters.pool || session.pools[0] || pools[0] || "", instance: filters.instance, prompt: "", session: "" });
  const [isBusy, busy] = useState(false);
  const [error, fail] = useState<unknown>();
  const instances = useId();
  const change = (field: keyof typeof form) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget;
    set((now) => ({ ...now, [field]: value }));
    fail(undefined);
  };
  const start = async (event: Event) => {
    event.preventDefault();
    busy(true);
    fail(undefined);
    try {
      const { agent, instance, pool, prompt, session: name } = form;
      const run = await startRun({ agent, instance: instance.trim(), pool: pool || undefined, prompt, session: name.trim() || undefined });
      close();
      location.hash = `#/runs/${encodeURIComponent(run.id)}`;
    } catch (failure) {
      fail(failure);
      busy(false);
    }
  };
  if (!first) {
    return (
      <Dialog title="Start an agent" close={close}>
        <Empty title="You can start none of the agents.">
          {agents.map(({ name, problem }) => <p key={name}><code>{name}</code>: {problem ?? <>whoever runs the server puts <code>webhook: true</code> into its file</>}</p>)}
        </Empty>
        <div class="actions"><button type="button" onClick={close}>Close</button></div>
      </Dialog>
    );
  }
  const chosen = able.find((agent) => agent.name === form.agent);
  const known = [...new Set(runs.filter((run) => run.agent === form.agent).map((run) => run.instance))];
  return (
    <Dialog title="Start an agent" close={close}>
      <form onSubmit={start}>
        <div class="two">
          <Field label="Agent" hint={chosen?.description}>
            {(id) => <select id={id} value={form.agent} onChange={change("agent")}>{able.map(({ name }) => <option key={name}>{name}</option>)}</select>}
          </Field>
          <Field label="Instance" hint="Runs of one instance share a sandbox and its conversations.">
            {(id) => (
              <>
                <input id={id} required value={form.instance} onInput={change("instance")} placeholder="such as pr7" list={instances} autocomplete="off" spellcheck={false} />
                <datalist id={instances}>{known.map((name) => <option key={name} value={name} />)}</datalist>
              </>
            )}
          </Field>
        </div>
        <Field label="Prompt">
          {(id) => <textarea id={id} class="prose-input" required rows={5} value={form.prompt} onInput={change("prompt")} placeholder="What it is to do" />}
        </Field>
        <div class="two">
          <Field label="Session" hint="The conversation that goes on. Empty: the usual one.">
            {(id) => <input id={id} value={form.session} onInput={change("session")} placeholder="default" autocomplete="off" spellcheck={false} />}
          </Field>
          {pools.length > 1 ? (
            <Field label="Pool">
              {(id) => <select id={id} value={form.pool} onChange={change("pool")}>{pools.map((name) => <option key={name}>{name}</option>)}</select>}
            </Field>
          ) : null}
        </div>
        <Failure error={error} />
        <div class="actions">
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class="primary" disabled={isBusy}>{isBusy ? "Starting…" : "Start"}</button>
        </div>
      </form>
    </Dialog>
  );
}
