/** The error of a server that is not reached. It names the address, and what may help. */

import { EyotError } from "./error.js";
import type { Address } from "./transport.js";

/** The errors of a connection before there is one. */
const NOT_CONNECTED = ["ECONNREFUSED", "ENOENT", "EACCES", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"];

const OF_CERTIFICATES = "NODE_EXTRA_CA_CERTS names a PEM file with the certificates that the server's may come from";
const OF_TLS = "does the server speak https? One without a certificate has an address that begins with http://";
const OF_OUR_OWN = "this client started it, and it has ended; a new client starts another";
const OF_ANOTHER = "is the address right? `eyot serve` starts a server";

/** The error of a request, or of a WebSocket, that does not get through. */
export function unreachable(error: unknown, address: Address, Kind: typeof EyotError = EyotError): EyotError {
  if (error instanceof EyotError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const reason = error instanceof Error ? error.message || code || error.name : String(error);
  const message = `the server at ${textOf(address)} can't be reached: ${reason}`;
  return new Kind(message, { kind: "unavailable", reason, hint: hintOf(code, address), cause: error });
}

function hintOf(code: string, { from }: Address): string | undefined {
  if (/CERT|SIGNATURE/.test(code)) return OF_CERTIFICATES;
  if (code === "EPROTO" || code.startsWith("ERR_SSL")) return OF_TLS;
  if (!NOT_CONNECTED.includes(code)) return undefined;
  if (from === "own") return OF_OUR_OWN;
  return from === "environment" ? `EYOT_SERVER names it: ${OF_ANOTHER}` : OF_ANOTHER;
}

/** An address as it is given to a client, without a password. */
export function textOf({ base, socketPath }: Address): string {
  return socketPath === undefined ? base.origin + base.pathname.replace(/\/$/, "") : `unix:${socketPath}`;
}
