/** The folders of a server's host that a sandbox has, as they go over the wire. */

import { realpathSync } from "node:fs";
import { isAbsolute } from "node:path";
import { EyotError } from "./error.js";
import type { Mount } from "./spec.js";

const OF_ITS_HOST = "it is a folder of the server's host; with a server that the client starts it may be one of the working directory";

/** Mounts whose sources are absolute. What is none is left to the server, which says so. */
export function mountsBody(mounts: readonly Mount[], isOwn: boolean): unknown[] {
  return mounts.map((mount) => {
    if (typeof mount?.source !== "string" || isAbsolute(mount.source)) return mount;
    if (!isOwn) throw invalid(`must be absolute: ${mount.source}`, OF_ITS_HOST);
    return { ...mount, source: found(mount.source) };
  });
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
