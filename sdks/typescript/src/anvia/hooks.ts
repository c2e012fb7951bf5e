/** The hooks of a session: called in this process, in order, and waited for. What one throws, the call throws. */

import type { SandboxExecEvent, SandboxExecResult, SandboxHooks, SandboxSessionEvent } from "./types.js";

/** What every event of an execution says of the program. */
export type Executed = { command: string; args?: readonly string[] | undefined; cwd?: string | undefined };

/** The hooks, and which session they are told of. */
export class Hooks {
  constructor(
    private readonly hooks: SandboxHooks,
    private readonly session: SandboxSessionEvent,
  ) {}

  async sessionCreate(): Promise<void> {
    await this.hooks.onSessionCreate?.({ ...this.session });
  }

  async execStart(executed: Executed): Promise<void> {
    await this.hooks.onExecStart?.(this.#event(executed));
  }

  async execEnd(executed: Executed, result: SandboxExecResult): Promise<void> {
    await this.hooks.onExecEnd?.({ ...this.#event(executed), result });
  }

  async fileWrite(path: string, size: number): Promise<void> {
    await this.hooks.onFileWrite?.({ ...this.session, path, size });
  }

  async destroy(): Promise<void> {
    await this.hooks.onDestroy?.({ ...this.session });
  }

  #event({ command, args, cwd }: Executed): SandboxExecEvent {
    return { ...this.session, command, args: [...(args ?? [])], ...(cwd === undefined ? {} : { cwd }) };
  }
}
