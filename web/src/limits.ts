/** The limits of a sandbox, and whether its host holds them. */

import type { Limits, Sandbox } from "./types.js";

const MIB = 1024 * 1024;

/** The limits of a native sandbox that names none. They are there where they are held. */
const NATIVE: Partial<Record<LimitName, number>> = { memory: 2048 * MIB, pids: 512 };

export type LimitName = "memory" | "cpus" | "pids" | "disk";

export interface Limit {
  /** In bytes, processors or processes. */
  figure: number;
  isEnforced: boolean;
}

/** Returns a limit of a sandbox, or nothing where it has none. */
export function limitOf({ spec, provider, isolation }: Sandbox, name: LimitName): Limit | undefined {
  const isEnforced = isolation.limits[name] !== "none";
  const usual = provider === "native" && isEnforced ? NATIVE[name] : undefined;
  const figure = figureOf(spec.limits ?? {}, name) ?? usual;
  return figure === undefined ? undefined : { figure, isEnforced };
}

/** Returns what a spec says of a limit. */
function figureOf(limits: Limits, name: LimitName): number | null | undefined {
  switch (name) {
    case "memory": return limits.memory_mib == null ? undefined : limits.memory_mib * MIB;
    case "disk": return limits.disk_mib == null ? undefined : limits.disk_mib * MIB;
    default: return limits[name];
  }
}

/** Says a limit: `512 MiB`, or `512 MiB, not enforced here`. */
export function limitText(limit: Limit, say: (figure: number) => string): string {
  return limit.isEnforced ? say(limit.figure) : `${say(limit.figure)}, not enforced here`;
}
