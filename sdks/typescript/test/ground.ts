/** A real server for the tests: the program that EYOT_BIN names, on a unix socket and a port, with its state in a folder of its own. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { EyotClient, EyotError } from "@eyot/client";

/** The server's program; a test run without it fails. */
export function program(): string {
  const path = process.env["EYOT_BIN"];
  if (!path) throw new Error("set EYOT_BIN to the eyot program to test against");
  return path;
}

/** A server, and a key for it. */
export interface Ground {
  /** `unix:/path`. */
  socket: string;
  /** `http://127.0.0.1:port`. */
  url: string;
  /** Opens the pool `default`. */
  key: string;
  folder: string;
  /** Ends the server as a crash would. */
  crash(): Promise<void>;
  /** Starts it again, where it was, and waits until it has said this. */
  restart(words?: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Skips a test on a provider, the one that EYOT_PROVIDER names, that lacks one of these capabilities; `images` is one too.
 * Returns whether it does.
 */
export async function lacks(context: TestContext, client: EyotClient, ...needs: string[]): Promise<boolean> {
  const { provider, capabilities } = await client.capabilities();
  // Images are no capability: a provider that has none refuses to list them.
  const refused = (error: unknown): false => {
    if (error instanceof EyotError && error.kind === "unsupported") return false;
    throw error;
  };
  // In memory there are only those that were made of snapshots.
  const hasImages = !needs.includes("images") || (provider !== "memory" && (await client.images.list().then(() => true, refused)));
  const missing = needs.filter((need) => (need === "images" ? !hasImages : !capabilities.includes(need)));
  const broken = missing.filter((need) => !MAY_BE_MISSING_NATIVELY.includes(need));
  if (provider === "native" && broken.length > 0) throw new Error(`the native provider does not say that it has ${broken.join(", ")}`);
  if (missing.length > 0) context.skip(`a sandbox of the provider \`${provider}\` has no ${missing.join(", ")}`);
  return missing.length > 0;
}

/** A kernel or a host may leave these out. Without anything else the native provider is broken, and no test is skipped for it. */
const MAY_BE_MISSING_NATIVELY = ["network_egress"];

/** What kind of server it is. */
export interface GroundOptions {
  /** By default the one that EYOT_PROVIDER names, else `native`. */
  provider?: "memory";
  env?: Record<string, string>;
  /** Makes what the server needs in the folder, and says its further arguments. */
  prepare?: (folder: string) => string[];
}

/** Starts a server that wants keys. */
export async function ground({ provider, env = {}, prepare = () => [] }: GroundOptions = {}): Promise<Ground> {
  const eyot = program();
  const folder = mkdtempSync(join(tmpdir(), "eyot-ts-"));
  const state = ["--state", join(folder, "state")];
  const asked = [...state, "--json", "keys", "create", "tests", "--pool", "default"];
  const said = execFileSync(eyot, asked, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const key = (JSON.parse(said) as { secret: string }).secret;
  const socket = `unix:${join(folder, "s.sock")}`;
  const from = provider === undefined ? [] : ["--provider", provider];
  const more = prepare(folder);
  const start = (address: string): ChildProcess => {
    const serve = ["serve", "--listen", socket, "--listen", address, ...more];
    return spawn(eyot, [...state, ...from, ...serve], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, ...env } });
  };
  let child = start("127.0.0.1:0");
  const url = await announced(child);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  };
  const close = async (): Promise<void> => {
    await end("SIGTERM");
    // A server's sandboxes outlive it.
    execFileSync(eyot, [...state, "--quiet", "rm", "--all"], { stdio: "ignore" });
    rmSync(folder, { recursive: true, force: true });
  };
  const restart = async (words?: string): Promise<void> => {
    child = start(new URL(url).host);
    await announced(child, words);
  };
  return { socket, url, key, folder, crash: () => end("SIGKILL"), restart, close };
}

function announced(child: ChildProcess, words = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const url = /serving at (http:\S+)/.exec(said)?.[1];
      if (url && said.includes("serving at unix:") && said.includes(words)) resolve(url);
    });
    child.once("exit", () => reject(new Error(said)));
    child.once("error", reject);
  });
}

/** Asks again and again until it is so. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 60_000;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error("it did not come to be within 60 s");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
