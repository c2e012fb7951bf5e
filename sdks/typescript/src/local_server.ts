/** A server of one's own: a child process on a unix socket that only its owner can open. */

import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { EyotError } from "./error.js";
import type { Address } from "./transport.js";
import { textOf } from "./unreachable.js";

/** How long a server has to come up. */
const FIRST_MS = 15_000;
/** How long a server has to end before it is killed. */
const LAST_MS = 10_000;
/** How much of what it says on its way is kept for an error. */
const KEPT_CHARS = 4096;

/** A server that runs as a child process. */
export interface LocalServer {
  /** `unix:/path`. */
  url: string;
  /** Ends it, and waits for that. */
  close(): Promise<void>;
}

/** The program: `EYOT_BIN`, else `eyot` on the PATH; `undefined`: it is not installed. */
export function findProgram(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if (env["EYOT_BIN"]) return env["EYOT_BIN"];
  const places = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return places.map((folder) => join(folder, "eyot")).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What server to start. */
export interface ServerOptions {
  /** Where its sandboxes come from; by default what the configuration says, else `native`. */
  provider?: "native" | "docker" | "memory";
  /** Where it keeps them; by default its own folder. */
  stateDir?: string;
  /** Specs may use the host's own network, and name those of its container engine; by default not. */
  allowHostNetworks?: boolean;
  /** The folder of its agents, files NAME.md; by default `agents` in the folder where it keeps its sandboxes. */
  agentsDir?: string;
  /** The model of agents whose file names none: PROVIDER/MODEL. */
  model?: string;
}

/** How a server is started with what a client can give to its own. */
const COMMANDS: Record<keyof ServerOptions, string> = {
  provider: "eyot --provider PROVIDER serve",
  stateDir: "eyot --state DIR serve",
  allowHostNetworks: "eyot serve --allow-host-networks",
  agentsDir: "eyot serve --agents DIR",
  model: "eyot serve --model PROVIDER/MODEL",
};

/** Refuses options of a server that the client starts, where it starts none: they would be ignored. */
export function checkIsStarted(options: ServerOptions, address: Address): void {
  const field = (Object.keys(COMMANDS) as (keyof ServerOptions)[]).find((name) => options[name]);
  if (field === undefined) return;
  const [told, without] = address.from === "environment" ? ["EYOT_SERVER names", "unset EYOT_SERVER"] : ["this one is of", "give no URL"];
  const hint = `start that server with it: \`${COMMANDS[field]}\`; or ${without}, and the client starts one`;
  throw new EyotError(`\`${field}\` is for a server that the client starts, and ${told} ${textOf(address)}`, { kind: "invalid", field, hint });
}

/** Starts a server and waits until it listens. It ends with `close`, and with this process. */
export async function startServer(program: string, options: ServerOptions = {}): Promise<LocalServer> {
  const { stateDir, provider, allowHostNetworks = false, agentsDir, model } = options;
  const folder = mkdtempSync(join(tmpdir(), "eyot-"));
  const url = `unix:${join(folder, "eyot.sock")}`;
  const state = stateDir === undefined ? [] : ["--state", stateDir];
  // Neither its own address nor a configuration file must send it to another server.
  const { EYOT_SERVER: _, ...env } = process.env;
  // It watches us, so that it ends even when we are killed.
  const serve = ["--server", "", "serve", "--no-keys", "--listen", url, "--parent-pid", String(process.pid)];
  const from = provider === undefined ? [] : ["--provider", provider];
  const networks = allowHostNetworks ? ["--allow-host-networks"] : [];
  const agents = [...(agentsDir === undefined ? [] : ["--agents", agentsDir]), ...(model === undefined ? [] : ["--model", model])];
  const args = [...state, ...from, ...serve, ...networks, ...agents];
  // In a session of its own: a ^C is for the program, which may want to clean up before it ends the server.
  const child = spawn(program, args, { env, stdio: ["ignore", "ignore", "pipe"], detached: true });
  const killWithUs = (): void => {
    child.kill("SIGTERM");
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", killWithUs);
  const close = async (): Promise<void> => {
    await end(child);
    process.off("exit", killWithUs);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await listening(child, program);
  } catch (error) {
    await close();
    throw error;
  }
  // A program that forgets to close it can end.
  child.unref();
  (child.stderr as unknown as { unref(): void }).unref();
  return { url, close };
}

function listening(child: ChildProcess, program: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    const failed = (reason: string, cause?: unknown, hint?: string): void => {
      clearTimeout(deadline);
      const message = `start a server with \`${program}\`: ${reason}`;
      reject(new EyotError(message, { kind: "unavailable", reason, hint, cause }));
    };
    const late = (): void => failed(`it is not up after ${FIRST_MS / 1000} s: ${said.trim() || "it said nothing"}`);
    const deadline = setTimeout(late, FIRST_MS);
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-KEPT_CHARS);
      if (!said.includes("serving at unix:")) return;
      clearTimeout(deadline);
      resolve();
    });
    child.once("error", (error) => failed(error.message, error));
    // All that it said has come then, which is not so when it exits.
    child.once("close", (code, signal) => {
      const { sentence, hint } = lastWords(said);
      failed(sentence ?? `it ended (${signal ?? code}): ${said.trim()}`, undefined, hint);
    });
  });
}

/** An error of the program: `eyot: SENTENCE`, perhaps `hint: SENTENCE`, then its usage. */
function lastWords(said: string): { sentence?: string; hint?: string | undefined } {
  const all = `\n${said.trim()}`;
  const at = all.lastIndexOf("\neyot: ");
  if (at < 0) return {};
  const [first = "", ...lines] = all.slice(at + 1).split("\n").map((line) => line.trim());
  const hint = lines.find((line) => line.startsWith("hint: "))?.slice("hint: ".length);
  const values = lines.find((line) => line.startsWith("[possible values: "))?.slice(1, -1);
  return { sentence: first.slice("eyot: ".length), hint: hint ?? values };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const killer = setTimeout(() => child.kill("SIGKILL"), LAST_MS);
  await ended;
  clearTimeout(killer);
}
