/** `DockerSandbox`: what makes sessions. Making one of it touches nothing. */

import type { EyotClient } from "../client.js";
import type { Sandbox as EyotSandbox } from "../sandbox.js";
import type { SandboxSpec } from "../spec.js";
import { serverError } from "./failure.js";
import { sanitized } from "./names.js";
import {
  DEFAULT_IMAGE,
  DENO_IMAGE,
  type EyotSandboxOptions,
  type IsolationProvider,
  PYTHON_IMAGE,
  type SettledOptions,
  checkedPorts,
  deadlines,
  networkMode,
  sessionLimits,
  settled,
  specOf,
} from "./options.js";
import { normalizeSandboxPath } from "./paths.js";
import { Ports } from "./ports.js";
import { checkProvider, clientOf } from "./server.js";
import { Session } from "./session.js";
import type { DockerSandboxSession, Sandbox, SandboxCreateSessionOptions, SandboxManifest } from "./types.js";

/** Makes sessions in containers of a Docker Engine; with `provider: "native"`, in this host's namespaces. */
export class DockerSandbox implements Sandbox {
  /** `docker`, as the original's, unless `native` was asked for. */
  readonly provider: IsolationProvider;
  readonly #options: SettledOptions;
  readonly #client: EyotClient;

  constructor(options: EyotSandboxOptions = {}) {
    this.#options = settled(options, DEFAULT_IMAGE);
    this.provider = this.#options.provider;
    this.#client = clientOf(this.#options);
  }

  /** With an image for Node.js, the default. */
  static node(options: EyotSandboxOptions = {}): DockerSandbox {
    return new DockerSandbox(settled(options, DEFAULT_IMAGE));
  }

  /** With an image for Python. */
  static python(options: EyotSandboxOptions = {}): DockerSandbox {
    return new DockerSandbox(settled(options, PYTHON_IMAGE));
  }

  /** With an image for Deno. */
  static deno(options: EyotSandboxOptions = {}): DockerSandbox {
    return new DockerSandbox(settled(options, DENO_IMAGE));
  }

  async createSession(asked: SandboxCreateSessionOptions = {}): Promise<DockerSandboxSession> {
    const options = this.#options;
    const ports = checkedPorts(asked.ports, networkMode(options.network));
    checkPaths(asked.manifest);
    const id = sanitized(asked.id);
    const spec = specOf(id, options, asked);
    const sandbox = await this.#made(spec);
    const session = await this.#opened(id, sandbox, ports);
    try {
      await session.fill(asked.manifest?.directories, asked.manifest?.files);
      await session.announce();
      return session;
    } catch (error) {
      await session.rollBack();
      throw error;
    }
  }

  async #made(spec: SandboxSpec): Promise<EyotSandbox> {
    try {
      await checkProvider(this.#client, this.provider);
      return await this.#client.create(spec);
    } catch (error) {
      throw serverError(error);
    }
  }

  async #opened(id: string, sandbox: EyotSandbox, asked: readonly number[]): Promise<Session> {
    const { hooks = {}, lifecycle } = this.#options;
    try {
      const ports = await Ports.publish(sandbox, asked);
      const { workdir } = sandbox.info ?? (await sandbox.refresh());
      const limits = sessionLimits(this.#options);
      return new Session({ id, provider: this.provider, sandbox, workdir, ports, limits, deadlines: deadlines(lifecycle), hooks });
    } catch (error) {
      await sandbox.abandon().catch(() => {});
      throw serverError(error);
    }
  }
}

/** Refuses a path that leads out before anything is made. */
function checkPaths({ directories = [], files = {} }: SandboxManifest = {}): void {
  for (const path of directories) normalizeSandboxPath(path, { allowRoot: true });
  for (const path of Object.keys(files)) normalizeSandboxPath(path);
}
