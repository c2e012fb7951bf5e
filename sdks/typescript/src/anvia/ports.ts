/** Published ports (0.4): real TCP ports on 127.0.0.1 here, each connection carried to the sandbox. */

import { setTimeout as pause } from "node:timers/promises";
import { EyotError } from "../error.js";
import type { PortForward } from "../forward.js";
import type { Sandbox } from "../sandbox.js";
import { SandboxPortError, SandboxTimeoutError } from "./errors.js";
import { isGone } from "./failure.js";
import type { SandboxPublishedPort, SandboxWaitForPortOptions } from "./types.js";

const DEFAULT_INTERVAL_MS = 250;
/** `TCP_LISTEN`, as the kernel writes it. */
const LISTEN = "0A";

/** The ports of one session. */
export class Ports {
  readonly published: readonly SandboxPublishedPort[];
  readonly #forwards: readonly PortForward[];

  private constructor(
    private readonly sandbox: Sandbox,
    forwards: readonly PortForward[],
  ) {
    this.#forwards = forwards;
    this.published = forwards.map(({ sandboxPort, host, port }) => ({ containerPort: sandboxPort, host, hostPort: port, protocol: "tcp" }));
  }

  /** Publishes them, in this order; all or none. */
  static async publish(sandbox: Sandbox, ports: readonly number[]): Promise<Ports> {
    const tried = await Promise.allSettled(ports.map((port) => sandbox.forward(port)));
    const forwards = tried.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const failed = tried.find((one) => one.status === "rejected");
    if (failed === undefined) return new Ports(sandbox, forwards);
    for (const forward of forwards) forward.close();
    throw new SandboxPortError("Sandbox ports could not be published on 127.0.0.1.", { cause: failed.reason });
  }

  /** Waits until something listens on the port for others than itself. */
  async wait(port: number, options: SandboxWaitForPortOptions, defaultTimeoutMs: number): Promise<SandboxPublishedPort> {
    const { timeoutMs = defaultTimeoutMs, intervalMs = DEFAULT_INTERVAL_MS, signal } = options;
    checkPositive("timeoutMs", timeoutMs);
    checkPositive("intervalMs", intervalMs);
    const published = this.published.find(({ containerPort }) => containerPort === port);
    if (published === undefined) throw new SandboxPortError(`Sandbox port is not published: ${port}/tcp`);
    signal?.throwIfAborted();
    const expiry = AbortSignal.timeout(timeoutMs);
    const either = signal === undefined ? expiry : AbortSignal.any([expiry, signal]);
    try {
      while (!(await this.#isListening(port, either))) await pause(intervalMs, undefined, { signal: either });
      return published;
    } catch (error) {
      signal?.throwIfAborted();
      if (expiry.aborted && !isGone(error)) {
        throw new SandboxTimeoutError(`Waiting for sandbox port ${port}/tcp timed out.`, { cause: error });
      }
      throw error;
    }
  }

  /** Ends every connection, and listens no longer. */
  close(): void {
    for (const forward of this.#forwards) forward.close();
  }

  async #isListening(port: number, signal: AbortSignal): Promise<boolean> {
    const tables = await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map((path) => this.#table(path, signal)));
    return tables.some((table) => listensForOthers(table, port));
  }

  /** A kernel without IPv6 has no second one. */
  async #table(path: string, signal: AbortSignal): Promise<string> {
    try {
      return await this.sandbox.readText(path, { signal });
    } catch (error) {
      if (error instanceof EyotError && error.kind === "not_found" && !error.noSandbox) return "";
      throw error;
    }
  }
}

/** Whether a table of the kernel's has a socket that listens on the port of every address: 0.0.0.0 or ::. */
export function listensForOthers(table: string, port: number): boolean {
  const local = new RegExp(`^(0{8}|0{32}):${port.toString(16).toUpperCase().padStart(4, "0")}$`);
  return table.split("\n").some((line) => {
    const [, address = "", , state] = line.trim().split(/\s+/);
    return state === LISTEN && local.test(address);
  });
}

function checkPositive(name: string, value: number): void {
  if (Number.isInteger(value) && value > 0) return;
  throw new SandboxPortError(`Port wait ${name} must be a positive integer.`);
}
