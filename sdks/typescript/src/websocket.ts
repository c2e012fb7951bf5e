/** WebSockets to a server, over TCP or a unix socket. */

import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import net from "node:net";
import WebSocket from "ws";
import { type EyotError, errorOfAnswer } from "./error.js";
import { type Transport, abortError, lookForPeer } from "./transport.js";

/**
 * A socket that is open, or the answer's problem. It is paused, so that nothing is lost before somebody listens: `resume` it
 * then. It ends with the transport. There is no deadline, since a sandbox may have to be woken first; there is the signal.
 */
export async function connected(transport: Transport, path: string, signal?: AbortSignal): Promise<WebSocket> {
  if (signal?.aborted) throw abortError(signal);
  const socket = asked(transport, path);
  socket.once("open", () => socket.pause());
  socket.once("close", transport.hold(() => socket.terminate()));
  const giveUp = (): void => socket.terminate();
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    await Promise.race([once(socket, "open"), refused(socket)]);
    if (!signal?.aborted) return socket;
    throw abortError(signal);
  } catch (error) {
    socket.on("error", () => {});
    socket.terminate();
    throw transport.explained(error, signal);
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
}

function asked(transport: Transport, path: string): WebSocket {
  const { base, socketPath } = transport.address;
  const url = `${base.protocol === "https:" ? "wss:" : "ws:"}//${base.host}${base.pathname.replace(/\/$/, "")}${path}`;
  return new WebSocket(url, {
    headers: { ...transport.headers(), host: base.host },
    perMessageDeflate: false,
    // Not `ws+unix:`, a URL, in which a path with a space is another one.
    ...(socketPath === undefined ? {} : { createConnection: () => net.connect(socketPath) }),
    finishRequest: (request) => {
      request.once("socket", lookForPeer);
      request.end();
    },
  });
}

/** Is rejected with what the server answers instead of opening the socket. */
function refused(socket: WebSocket): Promise<never> {
  return new Promise((_, reject) => {
    socket.once("unexpected-response", (_request, response) => refusal(response).then(reject, reject));
  });
}

async function refusal(response: IncomingMessage): Promise<EyotError> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return errorOfAnswer(response.statusCode ?? 0, Buffer.concat(pieces).toString("utf8"));
}
