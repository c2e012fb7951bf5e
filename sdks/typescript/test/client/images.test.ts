import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { arch, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { EyotClient, EyotError, type PullProgress } from "@eyot/client";
import { create } from "tar";
import { ground, lacks } from "../ground.js";

const DEADLINE = { timeout: 60_000 };
let folder: string;
let tarball: string;
let client: EyotClient;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "eyot-ts-images-"));
  mkdirSync(join(folder, "root/bin"), { recursive: true });
  writeFileSync(join(folder, "root/bin/sh"), "#!");
  tarball = join(folder, "root.tar");
  await create({ cwd: join(folder, "root"), file: tarball }, ["bin"]);
  client = new EyotClient({ stateDir: join(folder, "state") });
});
after(async () => {
  await client.close();
  rmSync(folder, { recursive: true, force: true });
});

const isKind = (kind: string) => (error: unknown) => error instanceof EyotError && error.kind === kind;
const names = async (): Promise<string[]> => (await client.images.list()).map(({ name }) => name);

/** A registry with one image, `app:1`, of one layer; it never answers for any other. */
async function registry(layer: Buffer): Promise<{ server: Server; host: string }> {
  const digest = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  const packed = gzipSync(layer);
  const architecture = arch() === "arm64" ? "arm64" : "amd64";
  const config = Buffer.from(JSON.stringify({ architecture, os: "linux", config: {}, rootfs: { type: "layers", diff_ids: [digest(layer)] } }));
  const described = (bytes: Buffer, kind: string) => ({ mediaType: `application/vnd.oci.image.${kind}`, digest: digest(bytes), size: bytes.length });
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const layers = [described(packed, "layer.v1.tar+gzip")];
  const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, config: described(config, "config.v1+json"), layers }));
  const served = new Map([["/v2/app/manifests/1", manifest], ...[config, packed].map((blob) => [`/v2/app/blobs/${digest(blob)}`, blob] as const), ["/v2/", Buffer.from("{}")]]);
  const server = createServer((request, response) => {
    const content = served.get(request.url ?? "");
    if (content) response.writeHead(200, { "content-type": mediaType, "content-length": content.length }).end(request.method === "HEAD" ? undefined : content);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { server, host: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test("an image is imported, listed, used and removed", DEADLINE, async (context) => {
  if (await lacks(context, client, "images")) return;
  assert.deepEqual(await names(), []);
  const [imported] = await client.images.importArchive(tarball, { name: "base:1" });
  assert.equal(imported?.name, "base:1");
  assert.deepEqual(await client.images.list(), [imported]);
  assert.ok(imported.sizeBytes > 0 && imported.complete && imported.layers === 1);
  await assert.rejects(client.images.importArchive(tarball), isKind("invalid"));
  const sandbox = await client.create({ name: "over", image: "base:1" });
  await assert.rejects(client.images.remove("base:1"), isKind("conflict"));
  await sandbox.destroy();
  assert.deepEqual((await client.images.remove("base:1")).images, ["base:1"]);
  assert.deepEqual(await names(), []);
  await assert.rejects(client.images.remove("base:1"), isKind("not_found"));
});

test("an image is pulled with its progress, and an abort ends a pull", DEADLINE, async (context) => {
  if (await lacks(context, client, "images")) return;
  const chunks: Buffer[] = [];
  for await (const chunk of create({ cwd: join(folder, "root") }, ["bin"])) chunks.push(chunk as Buffer);
  const { server, host } = await registry(Buffer.concat(chunks));
  const told: PullProgress[] = [];
  const pulled = await client.images.pull(`${host}/app:1`, { onProgress: (progress) => told.push(progress) });
  assert.equal(pulled.name, `${host}/app:1`);
  const last = told.at(-1);
  assert.ok(last && last.totalBytes > 0 && last.receivedBytes === last.totalBytes && last.blobsDone === 2, JSON.stringify(told));
  assert.deepEqual(await names(), [`${host}/app:1`]);
  const abort = new AbortController();
  const gone = new Promise<void>((done) => {
    server.on("request", (request) => {
      if (!request.url?.includes("/none/")) return;
      request.once("close", done);
      abort.abort();
    });
  });
  await assert.rejects(client.images.pull(`${host}/none:1`, { signal: abort.signal }), { name: "AbortError" });
  await gone;
  server.closeAllConnections();
  server.close();
});

test("a key that only opens pools is refused", DEADLINE, async (context) => {
  if (await lacks(context, client, "images")) return;
  const here = await ground();
  const tenant = new EyotClient({ url: here.socket, apiKey: here.key });
  assert.deepEqual(await tenant.images.list(), []);
  await assert.rejects(tenant.images.importArchive(tarball, { name: "base:1" }), isKind("permission"));
  await assert.rejects(tenant.images.remove("base:1"), isKind("permission"));
  await assert.rejects(tenant.images.pull("127.0.0.1:9/app:1"), isKind("permission"));
  await tenant.close();
  await here.close();
});
