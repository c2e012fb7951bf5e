/** A proxy that closes each stream of a run behind its first event, once cleanly and once not, and so on. */

import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy. */
export interface CuttingProxy {
  url: string;
  /** How many streams were cut. */
  cut(): number;
  close(): void;
}

/** Starts one before a server. */
export async function cuttingProxy(upstream: string): Promise<CuttingProxy> {
  let cut = 0;
  const server = http.createServer((request, response) => {
    const { method, headers } = request;
    const asked = http.request(upstream + request.url, { method: method ?? "GET", headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (!request.url?.endsWith("/stream") || answer.statusCode !== 200) return void answer.pipe(response);
      let event = "";
      answer.setEncoding("utf8").on("data", (piece: string) => {
        event += piece;
        const end = event.indexOf("\n\n", event.indexOf("data:"));
        if (!event.includes("data:") || end < 0) return;
        answer.destroy();
        cut += 1;
        if (cut % 2 === 0) response.end(event.slice(0, end + 2));
        else response.write(event.slice(0, end + 2), () => response.destroy());
      });
      answer.on("end", () => response.end());
    });
    asked.on("error", () => response.destroy());
    request.pipe(asked);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut: () => cut, close };
}
