/** Files and folders of this machine on their way to a sandbox, and back. */

import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, posix, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type ReadEntry, create, extract } from "tar";
import { EyotError } from "./error.js";

/** A file of this machine: its content and its permissions. */
export async function localFile(path: string): Promise<{ content: AsyncIterable<Uint8Array>; permissions: number }> {
  return { content: createReadStream(path), permissions: (await stat(path)).mode & 0o777 };
}

/** A folder's content as tar, by names relative to it; `undefined` if it is empty. */
export async function packed(folder: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  const names = (await readdir(folder)).sort();
  // A name that begins with `@` would be an archive's.
  return names.length === 0 ? undefined : create({ cwd: folder, portable: true }, names.map((name) => `./${name}`));
}

export async function isFolder(path: string): Promise<boolean> {
  return (await stat(path)).isDirectory();
}

/** Puts a file that comes in pieces in its place, as a whole. */
export async function putFile(target: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  await beside(target, async (folder) => {
    const received = join(folder, "received");
    await pipeline(Readable.from(pieces), createWriteStream(received)).catch(named(target));
    await rename(received, target).catch(named(target));
  });
}

/** Puts a folder that comes as tar in its place, as a whole: one that is new, or empty. */
export async function putFolder(target: string, tar: AsyncIterable<Uint8Array>): Promise<void> {
  await beside(target, async (folder) => {
    await unpack(tar, folder);
    const [top] = await readdir(folder);
    try {
      await rename(join(folder, top ?? ""), target);
    } catch (cause) {
      throw new EyotError(`download a folder: \`${target}\` is there, and is not an empty folder`, { kind: "already_exists", cause });
    }
  });
}

async function beside(target: string, put: (folder: string) => Promise<void>): Promise<void> {
  const parent = dirname(resolve(target));
  await mkdir(parent, { recursive: true }).catch(named(target));
  const folder = await mkdtemp(join(parent, ".eyot-")).catch(named(target));
  try {
    await put(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes an error of this machine's files name the target, not the copy beside it, of which the caller knows nothing. */
function named(target: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.syscall === undefined || error.code === undefined) throw error;
    const [reason] = error.message.split(/, \w+( '|$)/);
    const { code, errno, syscall } = error;
    throw Object.assign(new Error(`${reason}, download to '${target}'`, { cause: error }), { code, errno, syscall, path: target });
  };
}

/** A sandbox may pack anything: nothing may lie, or lead, outside of the folder. */
async function unpack(tar: AsyncIterable<Uint8Array>, folder: string): Promise<void> {
  const unsafe = (reason: string, cause?: unknown): EyotError =>
    new EyotError(`download a folder: it is not safe to unpack: ${reason}`, { kind: "invalid", reason, cause });
  let leadingOut: string | undefined;
  const filter = (path: string, entry: unknown): boolean => {
    const { type, linkpath } = entry as ReadEntry;
    if (type === "SymbolicLink" && leadsOut(path, linkpath ?? "")) leadingOut ??= path;
    return leadingOut === undefined;
  };
  try {
    await pipeline(Readable.from(tar), extract({ cwd: folder, strict: true, preserveOwner: false, filter }));
  } catch (error) {
    if (error instanceof EyotError) throw error;
    throw unsafe(error instanceof Error ? error.message : String(error), error);
  }
  if (leadingOut !== undefined) throw unsafe(`the link \`${leadingOut}\` leads out of it`);
}

/** Whether a link may lead out of the first folder of its path. `..` behind a name might, since the name may be a link. */
function leadsOut(path: string, target: string): boolean {
  const [top = ""] = path.split("/");
  const behind = target.replace(/^(\.{1,2}(\/+|$))+/, "");
  const end = posix.join(posix.dirname(path), target);
  return posix.isAbsolute(target) || behind.split("/").includes("..") || !(end === top || end === `${top}/` || end.startsWith(`${top}/`));
}
