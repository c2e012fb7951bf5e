/** WebSockets to a server, over TCP or a unix socket. */

import { once } from "node:events";
import WebSocket from "ws";
import { EyotError, errorOfAnswer } from "./error.js";
import type { Transport } from "./transport.js";

/** A socket that is open, or the answer's problem. */
export async function connected(transport: Transport, path: string): Promise<WebSocket> {
  const { base, socketPath } = transport.address;
  const root = base.pathname.replace(/\/$/, "");
  const scheme = base.protocol === "https:" ? "wss:" : "ws:";
  const url = socketPath === undefined ? `${scheme}//${base.host}${root}${path}` : `ws+unix:${socketPath}:${root}${path}`;
  const headers = { ...transport.headers(), host: base.host };
  const socket = new WebSocket(url, { headers, perMessageDeflate: false });
  const refused = new Promise<never>((_, reject) => {
    socket.once("unexpected-response", (_request, response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () => reject(errorOfAnswer(response.statusCode ?? 0, Buffer.concat(pieces).toString("utf8"))));
    });
  });
  try {
    await Promise.race([once(socket, "open"), refused]);
    return socket;
  } catch (error) {
    socket.on("error", () => {});
    socket.terminate();
    if (error instanceof EyotError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new EyotError(`the server can't be reached: ${reason}`, { kind: "unavailable", reason, cause: error });
  }
}
