/** What a sandbox was made with: its image, limits, deadlines, network rules, labels and variables. */

import type { ComponentChildren } from "preact";
import { bytes, duration } from "./format.js";
import { type LimitName, limitOf, limitText } from "./limits.js";
import type { Sandbox } from "./types.js";

/** Says which limit a sandbox has, and whether it is held. */
function limit(sandbox: Sandbox, name: LimitName, say: (figure: number) => string): string {
  const found = limitOf(sandbox, name);
  return found ? limitText(found, say) : "none";
}

/** Says when a sandbox ends: a time that has come is named so. */
function deadline(sandbox: Sandbox): string {
  if (!sandbox.expires_at) return "none";
  const at = Date.parse(sandbox.expires_at);
  const left = at - Date.now();
  return `${new Date(at).toLocaleString()}, ${left > 0 ? `in ${duration(left)}` : "now"}`;
}

function idle({ idle_timeout_ms, spec }: Sandbox): string {
  if (idle_timeout_ms === null) return "never";
  return `${spec.lifecycle?.on_idle === "sleep" ? "sleeps" : "is destroyed"} after ${duration(idle_timeout_ms)}`;
}

function Rules({ sandbox }: { sandbox: Sandbox }) {
  const { allow = [], deny = [] } = sandbox.spec.egress ?? {};
  if (sandbox.isolation.network !== "egress") return null;
  return (
    <>
      <Fact name="Allowed hosts">{allow.length > 0 ? <List all={allow} /> : "every public address"}</Fact>
      {deny.length > 0 ? <Fact name="Denied hosts"><List all={deny} /></Fact> : null}
    </>
  );
}

function List({ all }: { all: string[] }) {
  return <>{all.map((one) => <code class="word" key={one}>{one}</code>)}</>;
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

export function Details({ sandbox }: { sandbox: Sandbox }) {
  const { mounts = [], user } = sandbox.spec;
  const labels = Object.entries(sandbox.labels).map(([key, value]) => `${key}=${value}`);
  return (
    <details class="about">
      <summary>Details</summary>
      <dl>
        <Fact name="Id"><code class="word">{sandbox.id}</code></Fact>
        <Fact name="Image"><code class="word">{sandbox.spec.image ?? "default"}</code></Fact>
        <Fact name="Provider">{sandbox.provider}</Fact>
        <Fact name="Created">{new Date(sandbox.created_ms).toLocaleString()}</Fact>
        <Fact name="Expires">{deadline(sandbox)}</Fact>
        <Fact name="When idle">{idle(sandbox)}</Fact>
        <Fact name="Memory limit">{limit(sandbox, "memory", bytes)}</Fact>
        <Fact name="Processor limit">{limit(sandbox, "cpus", String)}</Fact>
        <Fact name="Process limit">{limit(sandbox, "pids", String)}</Fact>
        <Fact name="Disk limit">{limit(sandbox, "disk", bytes)}</Fact>
        <Fact name="Network">{sandbox.isolation.network}</Fact>
        <Rules sandbox={sandbox} />
        <Fact name="User">{user ?? "default"}</Fact>
        <Fact name="Directory"><code class="word">{sandbox.workdir}</code></Fact>
        <Fact name="Labels">{labels.length > 0 ? <List all={labels} /> : "none"}</Fact>
        <Fact name="Variables">{sandbox.env_names.length > 0 ? <List all={sandbox.env_names} /> : "none"}</Fact>
        {mounts.length > 0 ? <Fact name="Mounts"><List all={mounts.map(({ source, target, writable }) => `${source}:${target}${writable ? ":rw" : ""}`)} /></Fact> : null}
      </dl>
    </details>
  );
}
