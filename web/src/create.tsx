/** Making a sandbox. */

import { useState } from "preact/hooks";
import { json } from "./api.js";
import { bytes } from "./format.js";
import { useImages } from "./images.js";
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
  env: string;
  ttl: string;
  disk: string;
  allow: string;
  deny: string;
}

/** Reads lines of the form key=value. */
function pairsOf(text: string, noun: string): Record<string, string> | undefined {
  const pairs = linesOf(text).map((line): [string, string] => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`the ${noun} “${line}” is not of the form key=value`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
  return pairs.length > 0 ? Object.fromEntries(pairs) : undefined;
}

function linesOf(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

/** Returns the deadlines. `auto_destroy` has both of them act. */
function lifecycleOf({ idle, onIdle, ttl }: Form): unknown {
  const ms = (minutes: string) => (minutes.trim() === "" ? undefined : Math.round(Number(minutes) * 60_000));
  const [idle_timeout_ms, ttl_ms] = [ms(idle), ms(ttl)];
  if (idle_timeout_ms === undefined && ttl_ms === undefined) return undefined;
  return { idle_timeout_ms, ttl_ms, on_idle: idle_timeout_ms === undefined ? undefined : onIdle };
}

/** What was typed, as the API takes it. What was left empty is the server's business. */
function bodyOf(form: Form): unknown {
  const number = (text: string) => (text.trim() === "" ? undefined : Number(text));
  const [allow, deny] = [linesOf(form.allow), linesOf(form.deny)];
  return {
    pool: form.pool || undefined,
    spec: {
      name: form.name.trim() || undefined,
      image: form.image.trim() || undefined,
      network: form.network || undefined,
      limits: { memory_mib: number(form.memory), cpus: number(form.cpus), disk_mib: number(form.disk) },
      lifecycle: lifecycleOf(form),
      labels: pairsOf(form.labels, "label"),
      env: pairsOf(form.env, "variable"),
      egress: form.network === "egress" && allow.length + deny.length > 0 ? { allow, deny } : undefined,
    },
  };
}

export function Create({ pools, close, made }: { pools: string[]; close: () => void; made: (sandbox: Sandbox) => void }) {
  const [form, set] = useState<Form>({ name: "", pool: pools[0] ?? "", image: "", network: "", memory: "", cpus: "", idle: "", onIdle: "sleep", labels: "", env: "", ttl: "", disk: "", allow: "", deny: "" });
  // A server that lists none has its images elsewhere: any name may be typed.
  const { value: images } = useImages();
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
            {(id) => <input id={id} value={form.name} onInput={change("name")} pattern="[a-z0-9][a-z0-9\-]{0,40}" title="Lowercase letters, digits and hyphens; the first a letter or a digit; at most 41 characters" autocomplete="off" spellcheck={false} autofocus />}
          </Field>
          <Field label="Pool">
            {(id) => pools.length > 1
              ? <select id={id} value={form.pool} onChange={change("pool")}>{pools.map((pool) => <option key={pool}>{pool}</option>)}</select>
              : <input id={id} value={form.pool} onInput={change("pool")} placeholder="default" readOnly={pools.length === 1} autocomplete="off" spellcheck={false} />}
          </Field>
          <Field label="Image" hint="One that is there, or any that the server may fetch. Empty: the server's default, which needs no download.">
            {(id) => (
              <>
                <input id={id} list={`${id}-images`} value={form.image} onInput={change("image")} placeholder="such as debian:12" autocomplete="off" spellcheck={false} />
                <datalist id={`${id}-images`}>{images?.map(({ name, size_bytes }) => <option key={name} value={name}>{bytes(size_bytes)}</option>)}</datalist>
              </>
            )}
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
            {(id) => <input id={id} type="number" min="16" step="1" value={form.memory} onInput={change("memory")} placeholder="the pool's default" />}
          </Field>
          <Field label="Processors">
            {(id) => <input id={id} type="number" min="0.01" step="any" value={form.cpus} onInput={change("cpus")} placeholder="the pool's default" />}
          </Field>
          <Field label="Disk, MiB">
            {(id) => <input id={id} type="number" min="1" step="1" value={form.disk} onInput={change("disk")} placeholder="the pool's default" />}
          </Field>
          <Field label="Destroy after, minutes">
            {(id) => <input id={id} type="number" min="0.1" step="any" value={form.ttl} onInput={change("ttl")} placeholder="the pool's default" />}
          </Field>
          <Field label="Idle after, minutes">
            {(id) => <input id={id} type="number" min="0.1" step="any" value={form.idle} onInput={change("idle")} placeholder="the pool's default" />}
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
        {form.network === "egress" ? (
          <div class="two">
            <Field label="Allowed hosts" hint="One a line: example.com, *.example.com:443, 10.1.0.0/16. Empty: every public address.">
              {(id) => <textarea id={id} rows={2} value={form.allow} onInput={change("allow")} spellcheck={false} />}
            </Field>
            <Field label="Denied hosts" hint="Refused even if a rule allows them.">
              {(id) => <textarea id={id} rows={2} value={form.deny} onInput={change("deny")} spellcheck={false} />}
            </Field>
          </div>
        ) : null}
        <Field label="Variables" hint="For every command, one KEY=value a line.">
          {(id) => <textarea id={id} rows={2} value={form.env} onInput={change("env")} spellcheck={false} autocomplete="off" />}
        </Field>
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
