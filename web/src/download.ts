/** Ways out of a sandbox. */

import { ask, ofSandbox, query } from "./api.js";
import type { Sandbox } from "./types.js";

/** How long the browser has to take what it was handed, in milliseconds. */
const TAKEN_MS = 60_000;

/** Hands a file, or a directory as a tar archive, to the browser's downloads. */
export async function download(sandbox: Sandbox, path: string, isDirectory: boolean): Promise<void> {
  const response = await ask(ofSandbox(sandbox.id, `/${isDirectory ? "tree" : "files"}${query({ path })}`));
  hand(await response.blob(), (path.split("/").pop() || "root") + (isDirectory ? ".tar" : ""));
}

/** Hands bytes to the browser's downloads. */
export function hand(bytes: Blob, name: string): void {
  const url = URL.createObjectURL(bytes);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), TAKEN_MS);
}
