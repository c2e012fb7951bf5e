/** Making a sandbox. */

import { useState } from "preact/hooks";
import { json } from "./api.js";
import { Dialog, Failure, Field } from "./parts.js";
import type { Sandbox } from "./types.js";

interface Form {
  name: string;
  pool: string;
  image: string;
  network: string;
  memory: string;
  cpus: string;
  idle: string;
  onIdle: string;
  labels: string;
}

/** What was typed, as the API takes it. What was left empty is the server's business. */
function bodyOf(form: Form): unknown {
  const number = (text: string) => (text.trim() === "" ? undefined : Number(text));
  const labels: Record<string, string> = {};
  for (const line of form.labels.split("\n").map((text) => text.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`the label “${line}” is not of the form key=value`);
    labels[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  const limits = { memory_mib: number(form.memory), cpus: number(form.cpus) };
  const idle = number(form.idle);
  const lifecycle = idle === undefined ? undefined : { idle_timeout_ms: Math.round(idle * 60_000), on_idle: form.onIdle };
  return {
    pool: form.pool || undefined,
    spec: {
      name: form.name.trim() || undefined,
      image: form.image.trim() || undefined,
      network: form.network || undefined,
      limits,
      lifecycle,
      labels: Object.keys(labels).length > 0 ? labels : undefined,
    },
  };
}

export function Create({ pools, close, made }: { pools: string[]; close: () => void; made: (sandbox: Sandbox) => void }) {
  const [form, set] = useState<Form>({ name: "", pool: pools[0] ?? "", image: "", network: "", memory: "", cpus: "", idle: "", onIdle: "sleep", labels: "" });
  const [isBusy, busy] = useState(false);
  const [error, fail] = useState<unknown>();
  const change = (field: keyof Form) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget;
    set((now) => ({ ...now, [field]: value }));
    fail(undefined);
  };
  const create = async (event: Event) => {
    event.preventDefault();
    busy(true);
    fail(undefined);
    try {
      made(await json<Sandbox>("/v1/sandboxes", { method: "POST", json: bodyOf(form) }));
      close();
    } catch (failure) {
      fail(failure);
      busy(false);
    }
  };
  return (
    <Dialog title="New sandbox" close={close}>
      <form onSubmit={create}>
        <div class="two">
          <Field label="Name" hint="Lowercase letters, digits and hyphens. Leave empty to generate one.">
            {(id) => <input id={id} value={form.name} onInput={change("name")} pattern="[a-z0-9][a-z0-9\-]{0,40}" autocomplete="off" spellcheck={false} autofocus />}
          </Field>
          <Field label="Pool">
            {(id) => pools.length > 1
              ? <select id={id} value={form.pool} onChange={change("pool")}>{pools.map((pool) => <option key={pool}>{pool}</option>)}</select>
              : <input id={id} value={form.pool} onInput={change("pool")} placeholder="default" readOnly={pools.length === 1} autocomplete="off" spellcheck={false} />}
          </Field>
          <Field label="Image" hint="Empty: the server's default, which needs no download.">
            {(id) => <input id={id} value={form.image} onInput={change("image")} placeholder="debian:12" autocomplete="off" spellcheck={false} />}
          </Field>
          <Field label="Network">
            {(id) => (
              <select id={id} value={form.network} onChange={change("network")}>
                <option value="">the server's default</option>
                <option value="none">none: reaches nobody</option>
                <option value="egress">egress: the internet, through rules</option>
              </select>
            )}
          </Field>
          <Field label="Memory, MiB">
            {(id) => <input id={id} type="number" min="16" step="1" value={form.memory} onInput={change("memory")} placeholder="2048" />}
          </Field>
          <Field label="Processors">
            {(id) => <input id={id} type="number" min="0.01" step="any" value={form.cpus} onInput={change("cpus")} placeholder="no limit" />}
          </Field>
          <Field label="Idle after, minutes">
            {(id) => <input id={id} type="number" min="0.1" step="any" value={form.idle} onInput={change("idle")} placeholder="never" />}
          </Field>
          <Field label="When idle">
            {(id) => (
              <select id={id} value={form.onIdle} onChange={change("onIdle")} disabled={form.idle.trim() === ""}>
                <option value="sleep">sleep: files stay</option>
                <option value="destroy">be destroyed</option>
              </select>
            )}
          </Field>
        </div>
        <Field label="Labels" hint="One key=value a line.">
          {(id) => <textarea id={id} rows={2} value={form.labels} onInput={change("labels")} spellcheck={false} />}
        </Field>
        <Failure error={error} />
        <div class="actions">
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class="primary" disabled={isBusy}>{isBusy ? "Creating…" : "Create"}</button>
        </div>
      </form>
    </Dialog>
  );
}
