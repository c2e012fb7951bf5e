/** Checks of what a caller gives, before anything is sent: what is wrong is `invalid`, and names the parameter. */

import { EyotError } from "./error.js";

const LAST_PORT = 65_535;
const LAST_SIGNAL = 64;

/** Linux's numbers of the signals that the command `eyot kill` knows by name. */
const SIGNALS = new Map([
  ["HUP", 1],
  ["INT", 2],
  ["QUIT", 3],
  ["ABRT", 6],
  ["KILL", 9],
  ["USR1", 10],
  ["USR2", 12],
  ["PIPE", 13],
  ["ALRM", 14],
  ["TERM", 15],
  ["CONT", 18],
  ["STOP", 19],
  ["TSTP", 20],
  ["WINCH", 28],
]);

/** The error about a parameter; the reason goes on behind its name. */
export function refused(what: string, field: string, reason: string): EyotError {
  return new EyotError(`${what}: \`${field}\` ${reason}`, { kind: "invalid", field, reason });
}

/** A wrong value in a sentence: itself where that is short, else its type. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value === "string") return "a text";
  return typeof value === "function" ? "a function" : String(value);
}

/** Refuses a path in a sandbox that is no text. */
export function checkPath(path: unknown, what: string, field = "path"): void {
  if (typeof path !== "string") throw refused(what, field, `must be a text, such as \`notes.txt\`, not ${shown(path)}`);
}

/** A name or an id as a part of a URL's path. An empty one would make the path of something else. */
export function segment(name: string, of: string): string {
  checkName(name, of);
  return encodeURIComponent(name);
}

/** Refuses a name or an id that is empty, or no text. */
export function checkName(name: unknown, of: string): void {
  if (typeof name === "string" && name !== "") return;
  const reason = `the name or the id of ${of} is needed, not ${name === "" ? "an empty text" : shown(name)}`;
  throw new EyotError(reason, { kind: "invalid", field: of.slice(of.lastIndexOf(" ") + 1) });
}

/** Refuses what is no port of a sandbox. */
export function checkPort(port: unknown, what: string): void {
  const isPort = typeof port === "number" && Number.isInteger(port) && port >= 1 && port <= LAST_PORT;
  if (!isPort) throw refused(what, "port", `must be a number from 1 to ${LAST_PORT}, not ${shown(port)}`);
}

/** The Linux number of a signal, which may be named with or without `SIG`, in any case. */
export function signalNumber(signal: number | string, what: string): number {
  const number = typeof signal === "string" ? named(signal) : signal;
  if (number === undefined) throw refused(what, "signal", `is unknown: ${signal}; use TERM, KILL, INT, HUP or a number`);
  if (Number.isInteger(number) && number >= 1 && number <= LAST_SIGNAL) return number;
  throw refused(what, "signal", `must be a name or a number from 1 to ${LAST_SIGNAL}, not ${shown(number)}`);
}

function named(signal: string): number | undefined {
  const name = signal.toUpperCase().replace(/^SIG/, "");
  return /^[0-9]+$/.test(name) ? Number(name) : SIGNALS.get(name);
}

/** Refuses what a command can't read. */
export function checkInput(data: unknown, what: string, field = "data"): void {
  if (typeof data === "string" || data instanceof Uint8Array) return;
  throw refused(what, field, `must be a text or bytes (a \`Uint8Array\`), not ${shown(data)}`);
}

/** Refuses what is no content of a file: an absent body would make an empty file. */
export function checkContent(content: unknown, what: string, field = "data"): void {
  if (typeof content === "string" || content instanceof Uint8Array || isPieces(content)) return;
  throw refused(what, field, `must be a text, bytes (a \`Uint8Array\`), or a stream of bytes, not ${shown(content)}`);
}

function isPieces(content: unknown): boolean {
  return typeof content === "object" && content !== null && Symbol.asyncIterator in content;
}

/** Refuses files of which one has no content, before the first is written. */
export function checkFiles(files: unknown, what: string, check: (content: unknown, what: string, field: string) => void): void {
  if (typeof files !== "object" || files === null || Array.isArray(files)) {
    throw refused(what, "files", `must be an object of paths and contents, such as \`{ "a.txt": "text" }\`, not ${shown(files)}`);
  }
  for (const [path, content] of Object.entries(files)) check(content, what, `files[${JSON.stringify(path)}]`);
}
