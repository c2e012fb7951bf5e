/** What `DockerSandbox` is asked for: the defaults of `@anvia/sandbox`, and what becomes of it in a spec of Eyot's. */

import type { ClientOptions, EyotClient } from "../client.js";
import type { Lifecycle, SandboxSpec } from "../spec.js";
import { SandboxPortError } from "./errors.js";
import { sandboxName, sanitized, workspaceId } from "./names.js";
import type {
  DockerSandboxNetworkOptions,
  DockerSandboxOptions,
  SandboxCreateSessionOptions,
  SandboxLifecycleOptions,
  SandboxNetworkMode,
  SandboxWorkspaceOptions,
} from "./types.js";

/** What isolates the sandboxes: containers of a Docker Engine, or this host's namespaces without any Engine. */
export type IsolationProvider = "docker" | "native";

/** What `DockerSandbox` takes beside the original's options. */
export type EyotSandboxOptions = DockerSandboxOptions & {
  /**
   * By default what `EYOT_PROVIDER` says, else `docker`. `native` needs no Engine: without an `image`, a session has this host's
   * own programs.
   */
  provider?: IsolationProvider | undefined;
  /**
   * The server to use: a client, or where it is. By default `EYOT_SERVER`, else one that is started for this process, from
   * `EYOT_BIN` or `eyot` on the PATH.
   */
  eyot?: EyotClient | ClientOptions | undefined;
};

/** Options with their provider. */
export type SettledOptions = EyotSandboxOptions & { provider: IsolationProvider };

/** The options with the provider that holds, and an image where that needs one. */
export function settled(options: EyotSandboxOptions, image: string): SettledOptions {
  const provider = options.provider ?? process.env["EYOT_PROVIDER"] ?? "docker";
  if (provider !== "docker" && provider !== "native") {
    throw new TypeError(`The provider of a sandbox must be "docker" or "native", not "${provider}".`);
  }
  return { ...options, provider, image: options.image ?? (provider === "docker" ? image : undefined) };
}

export const DEFAULT_IMAGE = "node:22-bookworm";
export const PYTHON_IMAGE = "python:3.13-bookworm";
export const DENO_IMAGE = "denoland/deno:debian";

export const DEFAULT_WORKDIR = "/workspace";
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_MAX_OUTPUT_BYTES = 1_048_576;
const DEFAULT_MAX_PROCESSES = 4;
/** How much longer than here the server waits before it ends an idle session: it need not know what is done here with it. */
const IDLE_GRACE_MS = 5_000;

/** What a session may use, with nothing left open but what has no limit. */
export type SessionLimits = {
  timeoutMs: number;
  maxOutputBytes: number;
  maxFileBytes: number | undefined;
  maxProcesses: number;
};

/** The limits that are kept on this side. */
export function sessionLimits({ limits }: DockerSandboxOptions): SessionLimits {
  return {
    timeoutMs: limits?.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxOutputBytes: limits?.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES,
    maxFileBytes: limits?.maxFileBytes,
    maxProcesses: limits?.maxProcesses ?? DEFAULT_MAX_PROCESSES,
  };
}

/** The deadlines that hold, if any. */
export function deadlines(lifecycle: SandboxLifecycleOptions = {}): { ttlMs?: number; idleTimeoutMs?: number } {
  const { ttlMs, idleTimeoutMs, autoDestroy = true } = lifecycle;
  if (!autoDestroy) return {};
  return { ...(ttlMs === undefined ? {} : { ttlMs }), ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }) };
}

/** The network as one word; what was given as an object is its mode. */
export function networkMode(network: DockerSandboxOptions["network"]): SandboxNetworkMode {
  if (network === undefined) return false;
  return typeof network === "object" ? (network as DockerSandboxNetworkOptions).mode : network;
}

/** Whether it is a network of the host's, or one of its Engine's by name: who starts a server for that may use them anyway. */
export function namesHostNetwork(mode: SandboxNetworkMode): boolean {
  return typeof mode === "string" && !["none", "bridge", "egress"].includes(mode);
}

/** The ports to publish, checked before anything is asked of anybody. */
export function checkedPorts(ports: readonly number[] = [], network: SandboxNetworkMode): readonly number[] {
  for (const [at, port] of ports.entries()) {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new SandboxPortError(`Sandbox port must be an integer from 1 to 65535: ${port}`);
    }
    if (ports.indexOf(port) !== at) throw new SandboxPortError(`Sandbox port is duplicated: ${port}`);
  }
  if (ports.length > 0 && !isBridged(network)) {
    throw new SandboxPortError("Published sandbox ports require network: true or a bridge-capable Docker network.");
  }
  return [...ports];
}

function isBridged(network: SandboxNetworkMode): boolean {
  if (typeof network === "boolean") return network;
  return network !== "none" && network !== "host" && !network.startsWith("container:");
}

/** What a session is made from. Its manifest's files are written afterwards, through the session. */
export function specOf(id: string, options: SettledOptions, asked: SandboxCreateSessionOptions): SandboxSpec & { container?: object } {
  const { provider, user, limits = {}, security = {} } = options;
  const workspace = asked.workspace ?? options.workspace;
  const { image } = options;
  return {
    name: sandboxName(id),
    ...(image === undefined ? {} : { image }),
    workdir: options.workdir ?? DEFAULT_WORKDIR,
    workspace: workspaceSpec(workspace),
    env: { ...asked.manifest?.env },
    ...(user === undefined ? {} : { user }),
    metadata: { ...asked.metadata },
    labels: labelsOf(id, workspace, options, asked),
    ...networkSpec(networkMode(options.network), provider, options.pull ?? "missing"),
    limits: {
      ...(limits.memoryMb === undefined ? {} : { memoryMib: limits.memoryMb }),
      ...(limits.cpus === undefined ? {} : { cpus: limits.cpus }),
      ...(limits.pidsLimit === undefined ? {} : { pids: limits.pidsLimit }),
    },
    lifecycle: lifecycleSpec(options.lifecycle),
    security: {
      readonlyRootfs: security.readonlyRootfs ?? false,
      noNewPrivileges: security.noNewPrivileges ?? true,
      dropCapabilities: [...(security.dropCapabilities ?? ["ALL"])],
    },
  };
}

/** The server keeps both deadlines too, so that they hold when this process is gone. */
function lifecycleSpec(lifecycle: SandboxLifecycleOptions | undefined): Lifecycle {
  const { ttlMs, idleTimeoutMs } = deadlines(lifecycle);
  return {
    ...(ttlMs === undefined ? {} : { ttlMs: Math.max(1, Math.ceil(ttlMs)) }),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs: Math.ceil(idleTimeoutMs) + IDLE_GRACE_MS }),
  };
}

function workspaceSpec(workspace: SandboxWorkspaceOptions | undefined): NonNullable<SandboxSpec["workspace"]> {
  if (workspace?.mode !== "persistent") return { mode: "ephemeral" };
  return { mode: "persistent", id: workspaceId(workspace.id), destroyOnSessionDestroy: workspace.destroyOnSessionDestroy ?? false };
}

function labelsOf(
  id: string,
  workspace: SandboxWorkspaceOptions | undefined,
  options: DockerSandboxOptions,
  asked: SandboxCreateSessionOptions,
): Record<string, string> {
  const metadata = Object.entries(asked.metadata ?? {}).map(([key, value]) => [`anvia.sandbox.metadata.${key}`, value]);
  return {
    "anvia.sandbox": "true",
    "anvia.sandbox.id": id,
    "anvia.sandbox.workspace.mode": workspace?.mode ?? "ephemeral",
    ...(workspace?.mode === "persistent" ? { "anvia.sandbox.workspace.id": sanitized(workspace.id) } : {}),
    ...options.labels,
    ...Object.fromEntries(metadata),
  };
}

/** `true` is the Engine's default network; natively, what a proxy lets out. Another word names a network of the Engine's. */
function networkSpec(mode: SandboxNetworkMode, provider: IsolationProvider, pull: string): Record<string, unknown> {
  const container = { pull };
  if (mode === false || mode === "none") return { network: "none", container };
  if (mode === true) return { network: provider === "docker" ? "bridge" : "egress", container };
  if (mode === "host" || mode === "bridge" || mode === "egress") return { network: mode, container };
  return { network: "bridge", container: { ...container, network: mode } };
}
