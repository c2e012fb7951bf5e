/** Does a first job with the client that openapi-typescript makes of the API's document: `cargo xtask sdks document`. */

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./node_modules/.job/eyot.js";

const { EYOT_SERVER: baseUrl = "", EYOT_API_KEY: key = "" } = process.env;
const { GET, POST, PUT, DELETE } = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

const made = await POST("/v1/sandboxes", { body: { spec: { labels: { job: "typescript" }, limits: { memory_mib: 256 } } } });
assert.equal(made.response.status, 201, made.error?.detail);
const sandbox = { sandbox: made.data!.id };

const file = { path: sandbox, query: { path: "greet.sh" } };
const written = await PUT("/v1/sandboxes/{sandbox}/files", { params: file, body: "echo hello, $1", bodySerializer: (text) => text });
assert.equal(written.data?.size, 14);

const ran = await POST("/v1/sandboxes/{sandbox}/exec", { params: { path: sandbox }, body: { argv: ["sh", "greet.sh", "world"] } });
assert.equal(ran.data?.stdout, "hello, world\n");
assert.deepEqual(ran.data.outcome, { exited: 0 });

const stream = { params: { path: sandbox }, body: { command: "seq 3" }, parseAs: "text" as const };
const streamed = await POST("/v1/sandboxes/{sandbox}/exec/stream", stream);
assert.match(streamed.data ?? "", /^event: end$/m);

const read = await GET("/v1/sandboxes/{sandbox}/files", { params: file, parseAs: "text" });
assert.equal(read.data, "echo hello, $1");

const destroyed = await DELETE("/v1/sandboxes/{sandbox}", { params: { path: sandbox } });
assert.equal(destroyed.response.status, 204);
const gone = await GET("/v1/sandboxes/{sandbox}", { params: { path: sandbox } });
assert.equal(gone.error?.kind, "not_found");
