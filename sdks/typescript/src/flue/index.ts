/**
 * Eyot's sandboxes for Flue's agents (`@flue/runtime`, a peer dependency, from 0.8.1 to 2.x).
 *
 * A factory does nothing until it is asked, may be asked again and again, and never destroys: who made a sandbox, or its
 * `lifecycle`, ends it.
 */

import { createHash } from "node:crypto";
import type { SandboxFactory, SessionEnv } from "@flue/runtime";
import type { EyotClient } from "../client.js";
import type { Sandbox } from "../sandbox.js";
import type { SandboxSpec } from "../spec.js";
import { refuseSecondCopy } from "./copies.js";
import { type DriverOptions, EyotDriver } from "./driver.js";
import { type OrphanObserver, envFromDriver } from "./runtime.js";

export { EyotDriver } from "./driver.js";
export type { DriverOptions } from "./driver.js";
export type { OrphanObserver } from "./runtime.js";

/** How Flue gets a sandbox. */
export interface FlueOptions extends DriverOptions {
  /** Where commands and relative paths start, absolute; by default the sandbox's working directory. */
  cwd?: string;
  /** Replaces Flue's own list of tools. */
  tools?: NonNullable<SandboxFactory["tools"]>;
  /** Told what became of a command whose caller was let go by an abort (2.x). */
  onOrphanSettled?: OrphanObserver;
}

/** How a pool of sandboxes is made. */
export interface PoolOptions extends FlueOptions {
  /** What a new sandbox is made from. Its name comes from Flue's id. */
  spec?: Omit<SandboxSpec, "name">;
  /** The name of an id's sandbox; by default {@link nameOfId}. */
  name?: (id: string) => string;
}

/** A factory for every generation of Flue. */
export type EyotFactory = SandboxFactory & {
  createSandbox(options: { id: string }): Promise<SessionEnv>;
  createSessionEnv(options: { id: string; cwd?: string }): Promise<SessionEnv>;
};

/** One sandbox that exists, whatever the id. */
export function eyot(sandbox: Sandbox, options: FlueOptions = {}): EyotFactory {
  return factory(() => Promise.resolve(sandbox), options);
}

/** A sandbox for each id: the one that has the id's name, woken if it sleeps, or a new one. */
export function eyotPool(client: EyotClient, options: PoolOptions = {}): EyotFactory {
  const { spec, name = nameOfId } = options;
  return factory((id) => client.getOrCreate({ ...spec, name: name(id) }), options);
}

const LONGEST_NAME = 41;
const HASH_CHARS = 12;

/** The id itself where it can be a sandbox's name; else what can be kept of it, and a hash. Different ids, different names. */
export function nameOfId(id: string): string {
  if (id.length <= LONGEST_NAME && /^[a-z0-9][a-z0-9-]*$/.test(id)) return id;
  const kept = id.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, LONGEST_NAME - HASH_CHARS - 1);
  const hash = createHash("sha256").update(id).digest("hex").slice(0, HASH_CHARS);
  return [kept.replace(/^-|-$/g, ""), hash].filter((part) => part !== "").join("-");
}

function factory(find: (id: string) => Promise<Sandbox>, options: FlueOptions): EyotFactory {
  const make = async (id: string, cwd: string | undefined): Promise<SessionEnv> => {
    refuseSecondCopy();
    const sandbox = await find(id);
    const { workdir } = sandbox.info ?? (await sandbox.refresh());
    const base = cwd ?? options.cwd ?? workdir;
    return envFromDriver(new EyotDriver(sandbox, base, options), base, options.onOrphanSettled);
  };
  return {
    createSandbox: ({ id }) => make(id, undefined),
    // 0.8 passes its `cwd` on and resolves it against the answer's: a relative one must not be resolved twice.
    createSessionEnv: ({ id, cwd }: { id: string; cwd?: string }) => make(id, cwd?.startsWith("/") ? cwd : undefined),
    ...(options.tools ? { tools: options.tools } : {}),
  };
}
