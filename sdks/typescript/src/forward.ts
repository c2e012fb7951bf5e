/**
 * A port of a sandbox as a port of this host's loopback: each connection is carried by a WebSocket of its own to the server,
 * which connects to the sandbox's 127.0.0.1. It holds no program up that has nothing else to do.
 */

import { once } from "node:events";
import net, { type AddressInfo, type Socket } from "node:net";
import WebSocket from "ws";

/** How many bytes may wait for the server before the connection is no longer read. */
const MAX_WAITING_BYTES = 1024 * 1024;
const NOTHING = new Uint8Array(0);

/** Connects to the port. */
type Dial = () => Promise<WebSocket>;

/** A port of a sandbox that can be reached at `host:port` from here. */
export class PortForward {
  readonly host = "127.0.0.1";
  readonly #listener: net.Server;
  readonly #open = new Set<Socket>();

  private constructor(
    /** The port inside. */
    readonly sandboxPort: number,
    listener: net.Server,
    dial: Dial,
  ) {
    this.#listener = listener;
    listener.on("connection", (socket) => this.#carry(socket, dial));
  }

  /** Listens on a port of the system's choosing. */
  static async listen(sandboxPort: number, dial: Dial): Promise<PortForward> {
    // A client that has ended its side may still be answered; and none is read before there is somebody to send it to.
    const listener = net.createServer({ allowHalfOpen: true, pauseOnConnect: true });
    const forward = new PortForward(sandboxPort, listener, dial);
    listener.listen(0, forward.host);
    await once(listener, "listening");
    listener.unref();
    return forward;
  }

  /** The port here. */
  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  /** Listens no longer, and ends what is open. Twice is fine. */
  close(): void {
    if (this.#listener.listening) this.#listener.close();
    for (const socket of this.#open) socket.destroy();
  }

  #carry(socket: Socket, dial: Dial): void {
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
    // What is wrong with a connection ends it; there is nobody to tell.
    socket.on("error", () => socket.destroy());
    dial().then(
      (tunnel) => (socket.destroyed ? tunnel.terminate() : join(socket, tunnel)),
      () => socket.resetAndDestroy(),
    );
  }
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
  socket.resume();
}
