/** A connection to a port of a sandbox, carried by a WebSocket. */

import type { Socket } from "node:net";
import type WebSocket from "ws";
import type { Transport } from "./transport.js";
import { connected } from "./websocket.js";

/** How many bytes may wait for the server before the connection is no longer read. */
const MAX_WAITING_BYTES = 1024 * 1024;
const NOTHING = new Uint8Array(0);

/** Carries this connection, which is still paused, to where the path leads; if that can't be reached, it is reset. */
export function carry(socket: Socket, transport: Transport, path: string): void {
  const gone = new AbortController();
  socket.once("close", () => gone.abort());
  // What is wrong with a connection ends it; there is nobody to tell.
  socket.on("error", () => socket.destroy());
  connected(transport, path, gone.signal).then(
    (tunnel) => (socket.destroyed ? tunnel.terminate() : join(socket, tunnel)),
    () => socket.resetAndDestroy(),
  );
}

/** Carries bytes both ways until both sides have ended, or either is gone. */
function join(socket: Socket, tunnel: WebSocket): void {
  let isAnswered = false;
  const finish = (): void => {
    if (isAnswered && socket.readableEnded) tunnel.close();
  };
  socket.on("data", (bytes) => {
    tunnel.send(bytes, () => tunnel.bufferedAmount < MAX_WAITING_BYTES && socket.resume());
    if (tunnel.bufferedAmount >= MAX_WAITING_BYTES) socket.pause();
  });
  socket.on("end", () => {
    tunnel.send(NOTHING, () => {});
    finish();
  });
  socket.on("drain", () => tunnel.resume());
  socket.on("close", () => tunnel.terminate());
  tunnel.on("message", (bytes: Buffer) => {
    if (bytes.length === 0) {
      isAnswered = true;
      socket.end();
      finish();
    } else if (!socket.write(bytes)) tunnel.pause();
  });
  tunnel.on("error", () => socket.destroy());
  tunnel.on("close", () => (isAnswered ? socket.end() : socket.destroy()));
  tunnel.resume();
  socket.resume();
}
