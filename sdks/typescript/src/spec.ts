/** What a sandbox is made from, and what is known of one. */

import { checkFiles, checkInput } from "./arguments.js";
import { toWire } from "./case.js";
import { mountsBody } from "./mounts.js";
import { type OptionsOf, type PartFields, checkSpec } from "./foreign_options.js";

/** What to create; every part has a default. */
export interface SandboxSpec {
  /** Unique in its pool: 1 to 41 of `a-z`, `0-9`, `-`; by default made from the id. */
  name?: string;
  /** `host` (the default), or the name of an image such as `node:22`. */
  image?: string;
  /** Where commands start; by default where the image says, else `/workspace`. */
  workdir?: string;
  /** Where the working directory's files live. */
  workspace?: { mode: "ephemeral" } | { mode: "persistent"; id: string; destroyOnSessionDestroy?: boolean };
  /** What is put into it before anybody uses it; paths are relative to the working directory. */
  manifest?: { files?: Record<string, string | Uint8Array>; directories?: string[]; env?: Record<string, string> };
  /** Variables for every command. */
  env?: Record<string, string>;
  /** Who runs commands; by default `user` (1000), or whom the image names. */
  user?: string;
  /** The id of a snapshot of the pool, whose files it begins with in place of an image: see `client.fork`. */
  snapshot?: string;
  /** Facts that are kept, and told in `info.spec`. `list` finds nothing by them: that is what labels are for. */
  metadata?: Record<string, string>;
  /** Labels to select by. */
  labels?: Record<string, string>;
  /** What it may reach; by default nothing. `true` is `egress`. A server takes `host` only if it was told to. */
  network?: boolean | "none" | "egress" | "bridge" | "host";
  /** With `egress`: which addresses. */
  egress?: { allow?: string[]; deny?: string[] };
  /**
   * Folders of the server's host; as text `SOURCE:TARGET`, which the sandbox only reads, or `SOURCE:TARGET:rw`. Only a server on
   * this machine without keys takes them.
   */
  mounts?: (Mount | string)[];
  /** Ports that a container engine publishes on its host's loopback: see `publishedPorts`. */
  ports?: number[];
  limits?: Limits;
  lifecycle?: Lifecycle;
  security?: { readonlyRootfs?: boolean; noNewPrivileges?: boolean; dropCapabilities?: string[] };
  /** Protections without which the create must fail. */
  require?: ("memory" | "cpus" | "pids" | "disk" | "landlock" | "seccomp" | "identity_range" | "own_kernel")[];
}

/** A folder of the server's host inside the sandbox. */
export interface Mount {
  /** The folder (or file) on the host, absolute; with a server that the client starts, from the working directory. */
  source: string;
  /** Where it appears inside. */
  target: string;
  /** The sandbox may write to it; by default not. */
  writable?: boolean;
  /** The sandbox changes a copy of its own, and the folder stays as it is. */
  cow?: boolean;
}

const LIMITS: OptionsOf<Limits> = {
  timeoutMs: true,
  maxOutputBytes: true,
  maxFileBytes: true,
  memoryMib: true,
  cpus: true,
  pids: true,
  diskMib: true,
};
const LIFECYCLE: OptionsOf<Lifecycle> = { ttlMs: true, idleTimeoutMs: true, onIdle: true, autoDestroy: true };
const MANIFEST: OptionsOf<NonNullable<SandboxSpec["manifest"]>> = { files: true, directories: true, env: true };
const EGRESS: OptionsOf<NonNullable<SandboxSpec["egress"]>> = { allow: true, deny: true };
const SECURITY: OptionsOf<NonNullable<SandboxSpec["security"]>> = { readonlyRootfs: true, noNewPrivileges: true, dropCapabilities: true };
const PARTS: PartFields = { limits: LIMITS, lifecycle: LIFECYCLE, manifest: MANIFEST, egress: EGRESS, security: SECURITY };

const SPEC: OptionsOf<SandboxSpec> = {
  name: true,
  image: true,
  snapshot: true,
  workdir: true,
  workspace: true,
  manifest: true,
  env: true,
  user: true,
  metadata: true,
  labels: true,
  network: true,
  egress: true,
  mounts: true,
  ports: true,
  limits: true,
  lifecycle: true,
  security: true,
  require: true,
};

/** Refuses a spec with something that there is not. */
export function checkedSpec(given: SandboxSpec): void {
  checkSpec(given, SPEC, PARTS);
  const { files } = given.manifest ?? {};
  if (files !== undefined) checkFiles(files, "create sandbox", checkInput);
}

/** A spec as it goes over the wire; `isOwn`: to a server that the client started. */
export function specBody(given: SandboxSpec & { container?: object }, isOwn: boolean): unknown {
  const { ports, mounts, ...spec } = given;
  const folders = mounts === undefined ? {} : { mounts: mountsBody(mounts, isOwn) };
  const container = ports === undefined ? {} : { container: { ...spec.container, ports } };
  return toWire({ ...spec, ...folders, ...container });
}

/** What a sandbox may use; what is absent is the provider's default. */
export interface Limits {
  /** The deadline of a command that names none. */
  timeoutMs?: number;
  /** How many bytes of each stream of a command are kept. */
  maxOutputBytes?: number;
  /** The largest file that is read or written. */
  maxFileBytes?: number;
  memoryMib?: number;
  cpus?: number;
  pids?: number;
  diskMib?: number;
}

/** How long a sandbox lives. */
export interface Lifecycle {
  /** It is destroyed this long after it was made. */
  ttlMs?: number;
  /** After this long without use, `onIdle` happens. */
  idleTimeoutMs?: number;
  /** By default `destroy`. */
  onIdle?: "destroy" | "sleep";
  /** `false` switches both off. */
  autoDestroy?: boolean;
}

/** What to change of a sandbox; what is absent stays. */
export interface SandboxChanges {
  /** Labels to set; those that are `null` are removed. */
  labels?: Record<string, string | null>;
  /** Its deadlines; `null` is none. The ttl counts from the create. */
  lifecycle?: { ttlMs?: number | null; idleTimeoutMs?: number | null; onIdle?: "destroy" | "sleep"; autoDestroy?: boolean };
  /** The rules of the network `egress`, as a whole. Connections that they do not allow are closed. */
  egress?: { allow?: string[]; deny?: string[] };
}

/** What is known of a sandbox. */
export interface SandboxInfo {
  /** Never used twice. */
  id: string;
  name: string;
  pool: string;
  provider: string;
  status: string;
  /** Which of its lives this is: another text after every wake. */
  life: string;
  workdir: string;
  createdMs: number;
  /** When its ttl ends (RFC 3339); `null`: never. */
  expiresAt: string | null;
  idleTimeoutMs: number | null;
  labels: Record<string, string>;
  /** What it was made from, without the values of variables and the contents of files. */
  spec: Record<string, unknown>;
  envNames: string[];
  /** What holds around it. */
  isolation: Record<string, unknown>;
}
