/**
 * Where the rules of `@anvia/sandbox` are tried: on a Docker Engine and natively, each with a server of its own.
 * `EYOT_ANVIA_ON=native` (or `docker`) tries one of them. Without an Engine that has the tests' images (`cargo xtask engine`) what
 * needs it is shown as skipped, with that reason.
 */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { EyotClient } from "@eyot/client";
import {
  DockerSandbox,
  type DockerSandboxSession,
  type EyotSandboxOptions,
  type SandboxCreateSessionOptions,
  type SandboxHooks,
} from "@eyot/client/anvia";
import { program } from "../ground.js";

/** What there is in the Engine for the tests: Debian with Node 22. */
export const IMAGE = "eyot-test-node:22";

/** Where sessions are made in a test. */
export class Ground {
  #server: ChildProcess | undefined;
  #folder = "";
  #client: EyotClient | undefined;
  readonly #sessions = new Set<DockerSandboxSession>();

  constructor(readonly provider: "docker" | "native") {}

  /** The server's client. */
  get client(): EyotClient {
    if (this.#client === undefined) throw new Error("the server is not started");
    return this.#client;
  }

  /** `unix:/path`. */
  get url(): string {
    return `unix:${join(this.#folder, "s.sock")}`;
  }

  get isDocker(): boolean {
    return this.provider === "docker";
  }

  /** The original's constructor, with what chooses the ground. */
  sandbox(options: EyotSandboxOptions = {}): DockerSandbox {
    const image = this.isDocker ? { image: IMAGE } : {};
    return new DockerSandbox({ provider: this.provider, eyot: this.client, pull: "never", ...image, ...options });
  }

  /** A session that ends with the tests. */
  async session(options: EyotSandboxOptions = {}, asked: SandboxCreateSessionOptions = {}): Promise<DockerSandboxSession> {
    const session = await this.sandbox(options).createSession(asked);
    this.#sessions.add(session);
    return session;
  }

  /** The names of the sandboxes that there are. */
  async names(): Promise<string[]> {
    return (await this.client.list()).map(({ info }) => info?.name ?? "");
  }

  async start(): Promise<void> {
    this.#folder = mkdtempSync(join(tmpdir(), "eyot-anvia-"));
    const asked = ["--server", "", "--state", join(this.#folder, "state"), "--provider", this.provider];
    const serve = ["serve", "--no-keys", "--allow-host-networks", "--listen", this.url];
    this.#server = spawn(program(), [...asked, ...serve], { stdio: ["ignore", "ignore", "pipe"] });
    await announced(this.#server);
    this.#client = new EyotClient({ url: this.url });
  }

  async stop(): Promise<void> {
    try {
      await Promise.all([...this.#sessions].map((session) => session.destroy()));
      // A server's sandboxes outlive it.
      await Promise.all((await this.client.list()).map((sandbox) => sandbox.destroy()));
    } finally {
      await this.client.close();
      await this.#end();
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }

  async #end(): Promise<void> {
    if (this.#server === undefined || this.#server.exitCode !== null) return;
    const ended = once(this.#server, "exit");
    this.#server.kill("SIGTERM");
    await ended;
  }
}

/** Declares the same tests on each ground. */
export function onEach(what: string, declare: (ground: Ground) => void): void {
  const asked = process.env["EYOT_ANVIA_ON"]?.split(",") ?? ["docker", "native"];
  for (const provider of asked as ("docker" | "native")[]) {
    const skip = provider === "docker" ? missingEngine() : false;
    describe(`${what}, on ${provider}`, { skip }, () => {
      const ground = new Ground(provider);
      before(() => ground.start());
      after(() => ground.stop());
      declare(ground);
    });
  }
}

/** Why nothing can be tried on Docker here. */
function missingEngine(): string | false {
  try {
    execFileSync("docker", ["image", "inspect", IMAGE], { stdio: "ignore" });
    return false;
  } catch {
    const reason = `NOT TRIED: no Docker Engine answers that has ${IMAGE}; run: cargo xtask engine`;
    process.stderr.write(`${reason}\n`);
    return reason;
  }
}

/** What Docker knows of a session's container. */
export function container(sessionId: string): Record<string, any> {
  const docker = (...args: string[]): string => execFileSync("docker", args, { encoding: "utf8" });
  const found = docker("ps", "--all", "--quiet", "--filter", `label=anvia.sandbox.id=${sessionId}`).trim();
  return (JSON.parse(docker("inspect", found)) as [Record<string, any>])[0];
}

/** An id that nothing else has. */
export function freshId(): string {
  return `anvia-${randomUUID().slice(0, 13)}`;
}

/** Hooks that write down what they are told. */
export function recorded(log: [string, Record<string, unknown>][]): SandboxHooks {
  const write = (name: string) => (event: object) => void log.push([name, { ...event }]);
  return {
    onSessionCreate: write("create"),
    onExecStart: write("start"),
    onExecEnd: write("end"),
    onFileWrite: write("file"),
    onDestroy: write("destroy"),
  };
}

function announced(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("serving at unix:")) resolve();
    });
    child.once("exit", () => reject(new Error(said)));
    child.once("error", reject);
  });
}
