/**
 * A port of a sandbox as a port of this host's loopback: each connection is carried by a WebSocket of its own to the server,
 * which connects to the sandbox's 127.0.0.1. It holds no program up that has nothing else to do.
 */

import { once } from "node:events";
import net, { type AddressInfo, type Socket } from "node:net";

/** Carries a connection to the port. */
type Carry = (socket: Socket) => void;

/** A port of a sandbox that can be reached at `host:port` from here. */
export class PortForward {
  readonly host = "127.0.0.1";
  readonly #listener: net.Server;
  readonly #open = new Set<Socket>();

  private constructor(
    /** The port inside. */
    readonly sandboxPort: number,
    /** The port here. */
    readonly port: number,
    listener: net.Server,
    carry: Carry,
  ) {
    this.#listener = listener;
    listener.on("connection", (socket) => {
      this.#open.add(socket);
      socket.once("close", () => this.#open.delete(socket));
      carry(socket);
    });
  }

  /** Listens on a port of the system's choosing; `closed` is told when it no longer does. */
  static async listen(sandboxPort: number, carry: Carry, closed: () => void): Promise<PortForward> {
    // A client that has ended its side may still be answered; and none is read before there is somebody to send it to.
    const listener = net.createServer({ allowHalfOpen: true, pauseOnConnect: true });
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    listener.once("close", closed).unref();
    return new PortForward(sandboxPort, (listener.address() as AddressInfo).port, listener, carry);
  }

  /** Listens no longer, and ends what is open. Twice is fine. */
  close(): void {
    if (this.#listener.listening) this.#listener.close();
    for (const socket of this.#open) socket.destroy();
  }
}
