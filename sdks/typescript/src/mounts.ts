/** The folders of a server's host that a sandbox has, as they go over the wire. */

import { realpathSync } from "node:fs";
import { isAbsolute } from "node:path";
import { EyotError } from "./error.js";
import type { Mount } from "./spec.js";

const OF_ITS_HOST = "it is a folder of the server's host; with a server that the client starts it may be one of the working directory";

/** Mounts whose sources are absolute. What is none is left to the server, which says so. */
export function mountsBody(mounts: readonly (Mount | string)[], isOwn: boolean): unknown[] {
  if (!Array.isArray(mounts)) throw noMount('`mounts` is a list, such as `["./data:/data:ro"]`');
  return mounts.map((given) => {
    const mount = typeof given === "string" ? ofText(given) : given;
    if (typeof mount?.source !== "string" || isAbsolute(mount.source)) return mount;
    if (!isOwn) throw invalid(`must be absolute: ${mount.source}`, OF_ITS_HOST);
    return { ...mount, source: found(mount.source) };
  });
}

/** From SOURCE:TARGET, SOURCE:TARGET:ro, SOURCE:TARGET:rw or SOURCE:TARGET:cow. The source may have colons. */
function ofText(text: string): Mount {
  const [, named = "", given] = /^(.*?)(?::([^:/]*))?$/s.exec(text) ?? [];
  const [, source = "", target = ""] = /^(.+):(\/[^:]*)$/s.exec(named) ?? [];
  if (target === "") {
    throw noMount(`\`${text}\` is no mount; write SOURCE:TARGET:ro, as in ./data:/data:ro, or :rw where the sandbox writes`);
  }
  if (given !== undefined && given !== "ro" && given !== "rw" && given !== "cow") {
    throw noMount(`\`${given}\` is not an option of a mount; write ${named}:ro, or ${named}:rw where the sandbox writes`);
  }
  return { source, target, writable: given === "rw", ...(given === "cow" ? { cow: true } : {}) };
}

function noMount(reason: string): EyotError {
  return new EyotError(`create sandbox: ${reason}`, { kind: "invalid", field: "mounts", reason });
}

/** The folder that is named from where this program works, which is where its own server does. */
function found(source: string): string {
  try {
    return realpathSync(source);
  } catch (error) {
    throw invalid(`the folder \`${source}\` of this host, from \`${process.cwd()}\`: ${(error as Error).message}`);
  }
}

function invalid(reason: string, hint?: string): EyotError {
  return new EyotError(`create sandbox: \`mounts.source\` ${reason}`, { kind: "invalid", field: "mounts.source", reason, hint });
}
