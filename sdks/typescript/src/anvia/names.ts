/** What ids become: `@anvia/sandbox` takes any text, a sandbox's name and a workspace's id are of few characters. */

import { createHash, randomUUID } from "node:crypto";

const LONGEST_NAME = 41;
const LONGEST_WORKSPACE = 63;
const HASH_CHARS = 12;

/** The id as the session has it: lower case, `-` for what is not of `a-z`, `0-9`, `_`, `.`, `-`; without any left, a UUID. */
export function sanitized(id: string | undefined): string {
  const kept = (id ?? "").toLowerCase().replace(/[^a-z0-9_.-]/g, "-").replace(/^-+|-+$/g, "");
  return kept === "" ? randomUUID() : kept;
}

/** The name of a session's sandbox: its id where that can be one; else what can be kept of it, and a hash. */
export function sandboxName(id: string): string {
  return /^[a-z0-9][a-z0-9-]*$/.test(id) && id.length <= LONGEST_NAME ? id : shortened(id, /[^a-z0-9]+/g, LONGEST_NAME);
}

/** The id of a persistent workspace, made of its own in the same way: different ids, different workspaces. */
export function workspaceId(id: string): string {
  const clean = sanitized(id);
  return /^[a-z0-9]/.test(clean) && clean.length <= LONGEST_WORKSPACE ? clean : shortened(clean, /[^a-z0-9_.-]+/g, LONGEST_WORKSPACE);
}

function shortened(id: string, foreign: RegExp, longest: number): string {
  const kept = id.replace(foreign, "-").slice(0, longest - HASH_CHARS - 1).replace(/^[^a-z0-9]+|-+$/g, "");
  const hash = createHash("sha256").update(id).digest("hex").slice(0, HASH_CHARS);
  return [kept, hash].filter((part) => part !== "").join("-");
}
