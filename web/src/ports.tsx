/** Ports that something listens on, and links to see them in a browser. */

import { useState } from "preact/hooks";
import { ask, inThisLife, json, ofSandbox, query } from "./api.js";
import { clock } from "./format.js";
import { useLoaded } from "./live.js";
import { Empty, Failure, Field, Loading } from "./parts.js";
import type { Preview, Sandbox } from "./types.js";

/** The kernel's tables of the sandbox's own network. */
const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];
/** The state of a socket that listens, and the ports of the sandbox's own proxy and name server. */
const LISTENS = "0A";
const OWN = [3128, 1080, 53];

async function listening(sandbox: Sandbox, signal: AbortSignal): Promise<number[]> {
  const read = async (path: string) => (await ask(ofSandbox(sandbox.id, `/files${query({ path })}`), { ...inThisLife(sandbox), signal })).text();
  // There is none of IPv6 where there is no IPv6.
  const [first, second] = await Promise.allSettled(TABLES.map(read));
  if (first?.status === "rejected") throw first.reason;
  const ports = new Set<number>();
  for (const line of `${first?.value ?? ""}\n${second?.status === "fulfilled" ? second.value : ""}`.split("\n")) {
    const [, local, , state] = line.trim().split(/\s+/);
    const port = Number.parseInt(local?.split(":")[1] ?? "", 16);
    if (state === LISTENS && port > 0) ports.add(port);
  }
  const isEgress = sandbox.isolation.network === "egress";
  return [...ports].filter((port) => !isEgress || !OWN.includes(port)).sort((one, other) => one - other);
}

export function Ports({ sandbox }: { sandbox: Sandbox }) {
  const { value: ports, failure, again } = useLoaded((signal) => listening(sandbox, signal), [sandbox.life]);
  const [extra, setExtra] = useState<number[]>([]);
  const [typed, setTyped] = useState("");
  const all = [...new Set([...(ports ?? []), ...extra])];
  return (
    <div class="ports">
      <div class="title-row">
        <form class="inline-form" onSubmit={(event) => { event.preventDefault(); setExtra((now) => [...now, Number(typed)]); setTyped(""); }}>
          <Field label="Another port">
            {(id) => <input id={id} type="number" min="1" max="65535" step="1" required value={typed} placeholder="8000" onInput={(event) => setTyped(event.currentTarget.value)} />}
          </Field>
          <button type="submit">Add</button>
        </form>
        <button type="button" onClick={again}>Look again</button>
      </div>
      <Failure error={failure} again={again} />
      {!ports && !failure ? <Loading what="ports" /> : null}
      {ports && all.length === 0 ? (
        <Empty title="Nothing listens in the sandbox.">
          <p>Start a server in it, on 127.0.0.1 or 0.0.0.0, and look again. <a href={`#/sandboxes/${sandbox.id}/processes`}>Start one</a></p>
        </Empty>
      ) : null}
      <ul class="cards">{all.map((port) => <Port key={port} sandbox={sandbox} port={port} listens={ports?.includes(port) ?? false} />)}</ul>
    </div>
  );
}

function Port({ sandbox, port, listens }: { sandbox: Sandbox; port: number; listens: boolean }) {
  const [preview, set] = useState<Preview>();
  const [isPublic, setPublic] = useState(false);
  const [isOpened, opened] = useState(false);
  const [error, fail] = useState<unknown>();
  const path = ofSandbox(sandbox.id, `/ports/${port}/preview`);
  const make = () => {
    fail(undefined);
    opened(false);
    json<Preview>(path, { method: "POST", json: { public: isPublic } }).then(set, fail);
  };
  const revoke = () => {
    ask(path, { method: "DELETE" }).then(() => set(undefined), fail);
  };
  const isByPath = preview && new URL(preview.url).host === location.host;
  return (
    <li class="card">
      <div class="card-head"><strong class="figure">{port}</strong> {listens ? <span class="state running">listens</span> : <span class="state">not seen to listen</span>}</div>
      {preview ? (
        <>
          <p>
            <a class="button primary" href={preview.url} target="_blank" rel="noopener noreferrer" onClick={() => opened(!preview.public)}>Open the preview</a>{" "}
            <button type="button" onClick={make}>New link</button> <button type="button" class="danger" onClick={revoke}>Revoke all</button>
          </p>
          <p class="hint">{preview.public ? "Anyone with the link can open it" : isOpened ? "Single-use link, already opened" : "Single-use link"}; until {clock(Date.parse(preview.expires_at))}.</p>
          {isByPath ? <p class="hint">The server has no host names for previews, so the browser isolates this one: its page keeps no cookies, and a private one loads only what is in the page itself. `eyot serve --preview-domain` fixes that.</p> : null}
        </>
      ) : (
        <p class="card-row">
          <button type="button" class="primary" onClick={make}>Make a link</button>
          <label class="check"><input type="checkbox" checked={isPublic} onChange={(event) => setPublic(event.currentTarget.checked)} /> for anyone who has it</label>
        </p>
      )}
      <Failure error={error} />
    </li>
  );
}
