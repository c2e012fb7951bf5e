import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { EyotClient, EyotError } from "@eyot/client";
import { type RawServer, ended, frame, rawServer } from "../raw_server.js";

const isKind = (kind: string) => (error: unknown) => error instanceof EyotError && error.kind === kind;
/** Long enough for anything here; what hangs fails by it. */
const LIMIT = { timeout: 20_000 };

/** A server and a client of it, which end with the test. */
async function pair(context: TestContext, answer?: http.RequestListener, path?: string): Promise<{ server: RawServer; client: EyotClient }> {
  const server = await rawServer(answer, path);
  const client = new EyotClient({ url: server.url });
  context.after(async () => {
    server.close();
    await client.close();
  });
  return { server, client };
}

test("an abort ends a call whose server never answers", LIMIT, async (context) => {
  const { server, client } = await pair(context);
  const abort = new AbortController();
  const call = client.sandbox("x").exec("true", { signal: abort.signal });
  const { socket } = await server.upgrade();
  const gone = once(socket.resume(), "close");
  abort.abort(new Error("enough"));
  const { aborted, outcome } = await call;
  assert.deepEqual([aborted, outcome], [true, "cancelled"]);
  await gone;
});

test("an abort ends a call whose server took the command and hangs", LIMIT, async (context) => {
  const { server, client } = await pair(context);
  const abort = new AbortController();
  const call = client.sandbox("x").exec("true", { signal: abort.signal });
  const rejected = assert.rejects(call, isKind("unavailable"));
  const { socket, accept } = await server.upgrade();
  socket.write(accept);
  await once(socket, "data");
  context.mock.timers.enable({ apis: ["setTimeout"] });
  abort.abort();
  await once(socket, "data");
  const gone = once(socket, "close");
  context.mock.timers.tick(10_000);
  await rejected;
  await gone;
});

test("an abort waits for the end that a server is still telling", LIMIT, async (context) => {
  const { server, client } = await pair(context);
  const abort = new AbortController();
  const call = client.sandbox("x").exec("true", { signal: abort.signal });
  const { socket, accept } = await server.upgrade();
  socket.write(accept);
  await once(socket, "data");
  context.mock.timers.enable({ apis: ["setTimeout"] });
  abort.abort();
  await once(socket, "data");
  context.mock.timers.tick(9_999);
  socket.write(ended("whole"));
  assert.equal((await call).stdout, "whole");
  context.mock.timers.tick(10_000);
});

test("an answer that breaks off where an upgrade was asked for is an error", LIMIT, async (context) => {
  const { server, client } = await pair(context);
  const rejected = assert.rejects(client.sandbox("x").execStream("true"), isKind("unavailable"));
  const { socket } = await server.upgrade();
  socket.end("HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\nabc");
  await rejected;
});

test("what a server says in one breath with the upgrade is not lost", LIMIT, async (context) => {
  const { server, client } = await pair(context);
  const call = client.sandbox("x").execStream("true").then((stream) => stream.result());
  const command = await server.upgrade();
  command.socket.write(Buffer.concat([Buffer.from(command.accept), frame('"started"'), ended("early")]));
  assert.equal((await call).stdout, "early");
  const forward = await client.sandbox("x").forward(22);
  const socket = net.connect(forward.port, forward.host);
  context.after(() => socket.destroy());
  const greeted = once(socket, "data");
  const tunnel = await server.upgrade();
  tunnel.socket.write(Buffer.concat([Buffer.from(tunnel.accept), frame(Buffer.from("SSH-2.0-x"))]));
  assert.equal(String((await greeted)[0]), "SSH-2.0-x");
  forward.close();
});

test("a unix socket whose path has a space or a percent sign is found", LIMIT, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "eyot ts %20-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const { server, client } = await pair(context, undefined, join(folder, "a b.sock"));
  const call = client.sandbox("x").execStream("true").then((stream) => stream.result());
  const { socket, accept } = await server.upgrade();
  socket.write(Buffer.concat([Buffer.from(accept), ended("found")]));
  assert.equal((await call).stdout, "found");
});

test("closing the client ends its streams, its forwards and what is still being opened", LIMIT, async (context) => {
  const { server, client } = await pair(context);
  const opened = client.sandbox("x").execStream("true");
  const command = await server.upgrade();
  command.socket.resume().write(command.accept);
  const lost = assert.rejects((await opened).result(), isKind("unavailable"));
  const forward = await client.sandbox("x").forward(22);
  const local = net.connect(forward.port, forward.host).on("error", () => {});
  const tunnel = await server.upgrade();
  tunnel.socket.resume().write(Buffer.concat([Buffer.from(tunnel.accept), frame(Buffer.from("hello"))]));
  await once(local, "data");
  const pending = assert.rejects(client.sandbox("x").execStream("true"), isKind("unavailable"));
  const late = await server.upgrade();
  const gone = [command.socket, tunnel.socket, late.socket.resume(), local].map((socket) => once(socket, "close"));
  await client.close();
  await Promise.all([lost, pending, ...gone]);
  const refused = net.connect(forward.port, forward.host);
  assert.equal(((await once(refused, "error")) as [NodeJS.ErrnoException])[0].code, "ECONNREFUSED");
});

test("an answer that is no problem of Eyot's, from a proxy say, has the kind of its status and its text", LIMIT, async (context) => {
  const kinds = { 401: "permission", 403: "permission", 404: "not_found", 413: "too_large", 418: "invalid", 500: "internal", 502: "unavailable", 503: "unavailable", 504: "timeout" };
  let status = 0;
  const { client } = await pair(context, (_, response) => response.writeHead(status).end("<h1>of a proxy</h1>"));
  for (const [code, kind] of Object.entries(kinds)) {
    status = Number(code);
    await assert.rejects(client.list(), (error: unknown) => {
      assert.ok(error instanceof EyotError);
      assert.deepEqual([error.kind, error.status], [kind, status]);
      assert.match(error.message, /of a proxy/);
      return true;
    });
  }
});

test("what streams can be let go of before anything of it was read, and while it is waited for", LIMIT, async (context) => {
  let asked = (_: http.ServerResponse): void => {};
  const { client } = await pair(context, (_, response) => {
    response.writeHead(200).write("data: {}\n\n");
    asked(response);
  });
  const of = <T>(stream: Promise<T>): Promise<[T, http.ServerResponse]> => Promise.all([stream, new Promise<http.ServerResponse>((resolve) => (asked = resolve))]);
  const sandbox = client.sandbox("x");
  for (const open of [() => sandbox.readStream("f"), () => sandbox.watch()]) {
    const [unread, first] = await of<AsyncIterableIterator<unknown>>(open());
    const closed = once(first, "close");
    await unread.return?.();
    await closed;
    assert.equal((await unread.next()).done, true);
    const [read, second] = await of<AsyncIterableIterator<unknown>>(open());
    const gone = once(second, "close");
    assert.equal((await read.next()).done, false);
    const waiting = read.next();
    await read.return?.();
    await gone;
    assert.equal((await waiting).done, true);
  }
});

test("a connection that was idle for 30 s is not used again", LIMIT, async (context) => {
  const ports: (number | undefined)[] = [];
  const { client } = await pair(context, (request, response) => {
    ports.push(request.socket.remotePort);
    response.end("{}");
  });
  let now = Date.now();
  context.mock.method(Date, "now", () => now);
  for (const later of [0, 29_000, 29_000, 30_001]) {
    now += later;
    await client.version();
  }
  assert.deepEqual(ports.slice(1).map((port, n) => port === ports[n]), [true, true, false]);
});

/** The timer of the connection to this port: `02` is keepalive (proc(5)), and after how many hundredths of a second. */
function timer(port: number): [kind: string, hundredths: number] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync("/proc/self/net/tcp", "utf8").split("\n").map((line) => line.trim().split(/\s+/));
  const [kind = "", after = ""] = lines.find((fields) => fields[2]?.endsWith(wanted) && fields[3] === "01")?.[5]?.split(":") ?? [];
  return [kind, Number.parseInt(after, 16)];
}

test("a peer that vanishes is looked for, whatever the connection carries", LIMIT, async (context) => {
  for (const use of ["answer", "upgrade"] as const) {
    let told = (): void => {};
    const requested = new Promise<void>((resolve) => (told = resolve));
    const { server, client } = await pair(context, () => told());
    const abort = new AbortController();
    const call = use === "answer" ? client.sandbox("x").readFile("f", { signal: abort.signal }) : client.sandbox("x").execStream("true", { signal: abort.signal });
    const rejected = assert.rejects(call, { name: "AbortError" });
    await (use === "answer" ? requested : server.upgrade());
    const [kind, hundredths] = timer(server.port);
    assert.equal(kind, "02", use);
    assert.ok(hundredths > 1_000 && hundredths <= 3_000, `${use}: ${hundredths}`);
    abort.abort();
    await rejected;
  }
});

test("an error of a connection names the address and what helps", LIMIT, async (context) => {
  const { server } = await pair(context);
  server.close();
  const folder = mkdtempSync(join(tmpdir(), "eyot-ts-"));
  context.after(() => rmSync(folder, { recursive: true }));
  for (const [url, code] of [[server.url, "ECONNREFUSED"], [`unix:${folder}/s.sock`, "ENOENT"]] as const) {
    const lost = new EyotClient(url);
    const says = (error: unknown) => {
      assert.ok(error instanceof EyotError && error.kind === "unavailable");
      assert.ok(error.message.startsWith(`the server at ${url} can't be reached: connect ${code}`), error.message);
      assert.equal(error.hint, "is the address right? `eyot serve` starts a server");
      return true;
    };
    await assert.rejects(lost.version(), says);
    await assert.rejects(lost.sandbox("x").execStream("true"), says);
  }
});

test("an error of a connection says that EYOT_SERVER names the address, and shows no password", LIMIT, async (context) => {
  const before = process.env["EYOT_SERVER"];
  process.env["EYOT_SERVER"] = "http://ada:secret@127.0.0.1:9/";
  context.after(() => {
    if (before === undefined) delete process.env["EYOT_SERVER"];
    else process.env["EYOT_SERVER"] = before;
  });
  await assert.rejects(new EyotClient().version(), (error: unknown) => {
    assert.ok(error instanceof EyotError);
    assert.match(error.message, /^the server at http:\/\/127\.0\.0\.1:9 can't be reached: /);
    assert.match(error.hint ?? "", /^EYOT_SERVER names it: /);
    return true;
  });
});

test("an address with https of a server without is found out", LIMIT, async (context) => {
  const { server } = await pair(context);
  await assert.rejects(new EyotClient(server.url.replace("http:", "https:")).version(), (error: unknown) => {
    assert.ok(error instanceof EyotError);
    assert.match(error.hint ?? "", /^does the server speak https\?/);
    return true;
  });
});

test("a call that the client's own close cuts says that the client is closed", LIMIT, async (context) => {
  let told = (): void => {};
  const requested = new Promise<void>((resolve) => (told = resolve));
  const { server, client } = await pair(context, () => told());
  const isClosed = { message: "the client is closed", kind: "unavailable" };
  const sandbox = client.sandbox("x");
  const cut = [assert.rejects(sandbox.readFile("f"), isClosed), assert.rejects(sandbox.execStream("true"), isClosed)];
  await Promise.all([requested, server.upgrade()]);
  await client.close();
  await Promise.all(cut);
  await assert.rejects(sandbox.readFile("f"), isClosed);
});
