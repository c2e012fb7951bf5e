/** The images that a server's sandboxes are made from. */

import { createReadStream } from "node:fs";
import { checkContent } from "./arguments.js";
import { fromWire } from "./case.js";
import { EyotError } from "./error.js";
import type { CallOptions } from "./files.js";
import { namedEvents } from "./sse.js";
import type { Transport } from "./transport.js";

/** An image of a server. */
export interface ImageInfo {
  /** Its name, as short as it can be. */
  name: string;
  /** The digest of its manifest. */
  digest: string;
  layers: number;
  /** The size of its blobs, as they are kept. Layers that images share count for each. */
  sizeBytes: number;
  /** The time at which it was made, as the image says (RFC 3339). */
  created: string | null;
  /** Tells whether every part is there. */
  complete: boolean;
}

/** The progress of a pull. */
export interface PullProgress {
  receivedBytes: number;
  /** The size of the blobs that were begun; it grows until the last one is. */
  totalBytes: number;
  /** The blobs that were begun, and those that are in the store. */
  blobs: number;
  blobsDone: number;
}

/** What a removal removed. */
export interface RemovedImages {
  /** Names of images. */
  images: string[];
  layers: number;
  blobs: number;
  blobBytes: number;
}

export interface PullOptions extends CallOptions {
  /** Is told the progress, up to ten times a second. */
  onProgress?: (progress: PullProgress) => void;
}

export interface ImportOptions extends CallOptions {
  /** The image's name; by default the name in the archive. A tarball of a root file system has none. */
  name?: string;
}

export interface RemoveImageOptions extends CallOptions {
  /** Removes the name even if sandboxes are made over the image; they keep their layers. */
  force?: boolean;
}

/** The images of a server. Keys share them. */
export class Images {
  readonly #transport: () => Promise<Transport>;

  constructor(transport: () => Promise<Transport>) {
    this.#transport = transport;
  }

  /** Lists all images by name. */
  async list(options: CallOptions = {}): Promise<ImageInfo[]> {
    const transport = await this.#transport();
    return fromWire<{ images: ImageInfo[] }>(await transport.json({ method: "GET", path: "/v1/images", ...options })).images;
  }

  /** Pulls an image from its registry, even if there is one of that name. An abort of the `signal` ends the pull; a later one goes on. */
  async pull(name: string, { onProgress, signal }: PullOptions = {}): Promise<ImageInfo> {
    const transport = await this.#transport();
    const answer = await transport.stream({ method: "POST", path: "/v1/images/pull", query: { name }, signal });
    for await (const { event, value } of namedEvents(answer)) {
      if (event === "image") return fromWire(value);
      if (event === "progress") onProgress?.(fromWire(value));
    }
    throw new EyotError(`pull image \`${name}\`: the server's answer broke off`, { kind: "unavailable" });
  }

  /**
   * Imports the images of an archive, a path or its bytes: an OCI layout as tar, what `docker save` writes, or a tarball of a root
   * file system. With keys this takes one that `eyot serve --image-key` names.
   */
  async importArchive(archive: string | Uint8Array | AsyncIterable<Uint8Array>, { name, signal }: ImportOptions = {}): Promise<ImageInfo[]> {
    checkContent(archive, "import images", "archive");
    const transport = await this.#transport();
    const body = typeof archive === "string" ? createReadStream(archive) : archive;
    const answer = await transport.json({ method: "POST", path: "/v1/images/import", query: { name }, body, signal });
    return fromWire<{ images: ImageInfo[] }>(answer).images;
  }

  /** Removes an image, and what no other image and no sandbox needs of it; `conflict` if sandboxes are made over it. */
  async remove(name: string, { force, signal }: RemoveImageOptions = {}): Promise<RemovedImages> {
    const transport = await this.#transport();
    return fromWire(await transport.json({ method: "DELETE", path: "/v1/images", query: { name, force }, signal }));
  }
}
