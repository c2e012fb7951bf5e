/**
 * Paths as `@anvia/sandbox` takes them: relative to the workspace, with the original's messages. They are read as text only;
 * that a link leads nowhere outside is for the sandbox to see to.
 */

import { posix } from "node:path";
import { SandboxPathError } from "./errors.js";

/** Which paths {@link normalizeSandboxPath} takes. */
export type SandboxPathRules = {
  /** Whether the workspace itself (`.`) may be meant, as for a listing and for `cwd`; by default `false`. */
  allowRoot?: boolean | undefined;
};

/**
 * The path without detours: `\` is read as `/`, `a/../b` becomes `b`. A slash at the end stays, except that `./` is `.`.
 *
 * @throws {SandboxPathError} where it is empty, has a null byte, is absolute, leads out, or is the workspace where that can't be meant.
 */
export function normalizeSandboxPath(path: string, rules: SandboxPathRules = {}): string {
  if (path.length === 0) throw new SandboxPathError("Sandbox path cannot be empty.");
  if (path.includes("\0")) throw new SandboxPathError("Sandbox path cannot contain null bytes.");
  const normal = posix.normalize(path.replaceAll("\\", "/"));
  if (posix.isAbsolute(normal)) throw new SandboxPathError(`Sandbox path must be relative: ${path}`);
  if (normal === ".." || normal.startsWith("../")) throw new SandboxPathError(`Sandbox path cannot leave the workspace: ${path}`);
  if (normal !== "." && normal !== "./") return normal;
  if (rules.allowRoot) return ".";
  throw new SandboxPathError("Sandbox path must refer to a file or directory inside the workspace.");
}

/**
 * The absolute path inside the sandbox.
 *
 * @param workdir the session's, absolute.
 * @param path relative to it; `.` is the workspace itself.
 * @throws {SandboxPathError} as {@link normalizeSandboxPath}, which lets the workspace itself pass here.
 */
export function containerPath(workdir: string, path: string): string {
  return posix.join(workdir, normalizeSandboxPath(path, { allowRoot: true }));
}

/**
 * The directory that a path's last name is in, relative to the workspace; `.` where it is the workspace itself.
 *
 * @throws {SandboxPathError} as {@link normalizeSandboxPath}; the workspace itself has no parent here.
 */
export function parentSandboxPath(path: string): string {
  return posix.dirname(normalizeSandboxPath(path));
}
