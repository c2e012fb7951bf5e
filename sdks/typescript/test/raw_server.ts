/** A server that answers upgrades byte by byte, as a test wants it: for what a real one does only when it hangs or breaks. */

import { createHash } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** What WebSockets are accepted with (RFC 6455). */
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** A connection that asked to be upgraded. */
export interface Asked {
  socket: Socket;
  /** The answer that makes it a WebSocket. */
  accept: string;
}

/** A server. */
export interface RawServer {
  url: string;
  port: number;
  /** The next connection that asks to be upgraded. */
  upgrade(): Promise<Asked>;
  close(): void;
}

/** Starts one on a port, or on the path of a unix socket. Plain requests are for `answer`. */
export async function rawServer(answer: http.RequestListener = () => {}, path?: string): Promise<RawServer> {
  const server = http.createServer(answer);
  const upgrades: Asked[] = [];
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket.on("error", () => {}));
    socket.once("close", () => open.delete(socket));
  });
  server.on("upgrade", (request, stream) => {
    const socket = stream as Socket;
    const digest = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${GUID}`).digest("base64");
    const lines = ["HTTP/1.1 101 Switching Protocols", "connection: upgrade", "upgrade: websocket", `sec-websocket-accept: ${digest}`];
    // Node leaves a connection half open.
    socket.once("end", () => socket.destroy());
    upgrades.push({ socket, accept: `${lines.join("\r\n")}\r\n\r\n` });
    server.emit("asked");
  });
  server.listen(path === undefined ? { port: 0, host: "127.0.0.1" } : { path });
  await once(server, "listening");
  const port = path === undefined ? (server.address() as AddressInfo).port : 0;
  const upgrade = async (): Promise<Asked> => {
    while (upgrades.length === 0) await once(server, "asked");
    return upgrades.shift() as Asked;
  };
  const close = (): void => {
    server.close();
    for (const socket of open) socket.destroy();
  };
  return { url: path === undefined ? `http://127.0.0.1:${port}` : `unix:${path}`, port, upgrade, close };
}

/** A message of a server's, as one frame; text or bytes. */
export function frame(message: string | Uint8Array): Buffer {
  const body = Buffer.from(message as string);
  const kind = typeof message === "string" ? 0x81 : 0x82;
  const length = body.length < 126 ? [body.length] : [126, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from([kind, ...length]), body]);
}

/** The end of a command that wrote this. */
export function ended(stdout: string): Buffer {
  const figures = { stdout_bytes: stdout.length, stderr_bytes: 0, duration_ms: 1 };
  const facts = { stdout_truncated: false, stderr_truncated: false, timed_out: false, aborted: false, may_still_be_running: false, output_open: false };
  return frame(JSON.stringify({ end: { outcome: { exited: 0 }, exit_code: 0, stdout, stderr: "", ...figures, ...facts } }));
}
