/** What a session is made from: rules 1 to 16, and 46. */

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import {
  DockerSandbox,
  SandboxDockerCommandError,
  SandboxDockerUnavailableError,
  SandboxPathError,
  SandboxPortError,
} from "@eyot/client/anvia";
import { program } from "../ground.js";
import { container, freshId, onEach, recorded } from "./ground.js";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

test("rule 1: a constructor touches nothing, and says docker unless told otherwise", () => {
  // Nobody is there, and no program is either.
  const nowhere = { url: "unix:/nowhere/eyot.sock" };
  assert.equal(new DockerSandbox({ eyot: nowhere, provider: "docker" }).provider, "docker");
  assert.equal(new DockerSandbox({ eyot: nowhere, provider: "native" }).provider, "native");
  const before = process.env["EYOT_PROVIDER"];
  try {
    delete process.env["EYOT_PROVIDER"];
    assert.equal(new DockerSandbox().provider, "docker");
    process.env["EYOT_PROVIDER"] = "native";
    assert.equal(new DockerSandbox().provider, "native");
    assert.throws(() => new DockerSandbox({ provider: "kvm" as "docker" }), /must be "docker" or "native", not "kvm"/);
  } finally {
    if (before === undefined) delete process.env["EYOT_PROVIDER"];
    else process.env["EYOT_PROVIDER"] = before;
  }
});

test("rule 10: no server and no program to start one is SandboxDockerUnavailableError, with what to do", async () => {
  const { EYOT_BIN, EYOT_SERVER, PATH, ...env } = process.env;
  const script = `
    const { DockerSandbox } = await import("@eyot/client/anvia");
    await new DockerSandbox({ provider: "docker" }).createSession().catch((error) => console.log(error.name, error.message));
    const lost = new DockerSandbox({ eyot: { url: "unix:/nowhere/eyot.sock" } });
    await lost.createSession().catch((error) => console.log(error.name));`;
  const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], { env: { ...env, PATH: "" }, encoding: "utf8" });
  const [none, lost] = said.split("\n");
  assert.match(none ?? "", /^SandboxDockerUnavailableError .*EYOT_BIN/);
  assert.equal(lost, "SandboxDockerUnavailableError");
});

test("rule 10: an Engine that does not answer is SandboxDockerUnavailableError, with what to start", async () => {
  const folder = mkdtempSync(join(tmpdir(), "eyot-no-engine-"));
  const script = `
    const { DockerSandbox } = await import("@eyot/client/anvia");
    await new DockerSandbox({ provider: "docker" }).createSession().catch((error) => console.log(error.name, error.message));`;
  const { EYOT_SERVER, ...rest } = process.env;
  const env = { ...rest, EYOT_BIN: program(), EYOT_STATE: folder, DOCKER_HOST: "unix:///nowhere/docker.sock" };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { env });
  assert.match(stdout, /^SandboxDockerUnavailableError .*no Docker Engine answers \(start it.* EYOT_PROVIDER=native makes sandboxes without one/);
  rmSync(folder, { recursive: true, force: true });
});

/** The server ends after the program and writes to its folder until then. `maxRetries` repeats the last step alone, not the files that came since. */
async function removed(folder: string): Promise<void> {
  for (const end = Date.now() + 20_000; ; await setTimeout(50)) {
    try {
      return rmSync(folder, { recursive: true, force: true });
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

test("a session that names the host's network gets it from a server that the program starts for itself", async () => {
  const folder = mkdtempSync(join(tmpdir(), "eyot-own-server-"));
  const script = `
    const { DockerSandbox } = await import("@eyot/client/anvia");
    for (const network of ["host", false]) {
      const session = await new DockerSandbox({ provider: "native", network }).createSession();
      const { stdout } = await session.exec({ command: "sh", args: ["-c", "tail -n +3 /proc/net/dev | wc -l"] });
      console.log(Number(stdout) > 1);
      await session.destroy();
    }`;
  const { EYOT_SERVER, ...rest } = process.env;
  const env = { ...rest, EYOT_BIN: program(), EYOT_STATE: folder };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { env });
  assert.equal(stdout, "true\nfalse\n");
  await removed(folder);
});

onEach("creating", (ground) => {
  test("rule 2: the defaults hold: the working directory, no network, no new privileges, no capabilities", async () => {
    const session = await ground.session();
    assert.equal(session.workdir, "/workspace");
    assert.equal(session.provider, ground.provider);
    const { stdout } = await session.exec({ command: "cat", args: ["/proc/self/status"] });
    assert.match(stdout, /NoNewPrivs:\t1/);
    // What natively stays in the bounding set, nobody can gain: there are no new privileges.
    assert.match(stdout, ground.isDocker ? /CapBnd:\t0{16}/ : /CapEff:\t0{16}/);
    const devices = await session.exec({ command: "sh", args: ["-c", "tail -n +3 /proc/net/dev | cut -d: -f1"] });
    assert.equal(devices.stdout.trim(), "lo");
    await session.destroy();
  });

  test("rule 3: an output of 1 048 576 bytes a stream is kept, and one byte more is cut", async () => {
    const session = await ground.session();
    const [edge, beyond] = await Promise.all(
      [1_048_576, 1_048_577].map((bytes) => session.exec({ command: "head", args: ["-c", String(bytes), "/dev/zero"] })),
    );
    assert.deepEqual([edge?.stdout.length, edge?.stdoutTruncated], [1_048_576, false]);
    assert.deepEqual([beyond?.stdout.length, beyond?.stdoutTruncated], [1_048_576, true]);
    await session.destroy();
  });

  test("rule 6: a session is one sandbox with one workspace, and destroy removes both", async () => {
    const id = freshId();
    const session = await ground.session({}, { id });
    assert.ok((await ground.names()).includes(id));
    const mounts = ground.isDocker ? (container(id)["Mounts"] as { Destination: string; Name: string }[]) : [];
    const volume = mounts.find(({ Destination }) => Destination === "/workspace")?.Name;
    await session.destroy();
    assert.ok(!(await ground.names()).includes(id));
    if (volume !== undefined) assert.throws(() => execFileSync("docker", ["volume", "inspect", volume], { stdio: "ignore" }));
  });

  test("rule 7: an id is a UUID unless given, and what is not of a-z, 0-9, _ . - becomes -", async () => {
    const unique = freshId();
    const [any, odd, empty] = await Promise.all([
      ground.session(),
      ground.session({}, { id: `-${unique.toUpperCase()} Ä_1-` }),
      ground.session({}, { id: "--" }),
    ]);
    assert.match(any.id, UUID);
    assert.equal(odd.id, `${unique}--_1`);
    assert.match(empty.id, UUID);
    const long = await ground.session({}, { id: `${unique}.${"x".repeat(100)}` });
    assert.equal(long.id, `${unique}.${"x".repeat(100)}`);
    await Promise.all([any, odd, empty, long].map((session) => session.destroy()));
  });

  test("rule 8: ports are checked first, the manifest comes before onSessionCreate", async () => {
    const log: [string, Record<string, unknown>][] = [];
    const before = await ground.names();
    await assert.rejects(ground.sandbox({ network: true, hooks: recorded(log) }).createSession({ ports: [0] }), SandboxPortError);
    assert.deepEqual([log, await ground.names()], [[], before]);
    const manifest = { files: { "a/b": "x" }, directories: ["d"] };
    const session = await ground.session({ hooks: recorded(log) }, { manifest });
    assert.deepEqual(log.map(([name, event]) => [name, event["path"]]), [["file", "a/b"], ["create", undefined]]);
    await session.destroy();
  });

  test("rule 9: what fails on the way leaves nothing, and is thrown as it is", async () => {
    const before = await ground.names();
    const own = new Error("mine");
    const failing = ground.sandbox({ hooks: { onSessionCreate: () => Promise.reject(own) } });
    await assert.rejects(failing.createSession(), (error) => error === own);
    await assert.rejects(ground.sandbox().createSession({ manifest: { files: { good: "", "../bad": "" } } }), SandboxPathError);
    await assert.rejects(ground.sandbox().createSession({ manifest: { files: { good: "", "good/bad": "" } } }), SandboxDockerCommandError);
    await assert.rejects(ground.sandbox().createSession({ manifest: { directories: ["/bad"] } }), SandboxPathError);
    assert.deepEqual(await ground.names(), before);
  });

  test("rule 9: a create that fails leaves a persistent workspace as it was, whatever was to become of it", async () => {
    const before = await ground.names();
    const workspace = { mode: "persistent", id: freshId(), destroyOnSessionDestroy: true } as const;
    const first = await ground.session({}, { workspace: { ...workspace, destroyOnSessionDestroy: false } });
    await first.writeFile("precious", "kept");
    await first.destroy();
    const failing = ground.sandbox({ hooks: { onSessionCreate: () => Promise.reject(new Error("mine")) } });
    await assert.rejects(failing.createSession({ workspace }), { message: "mine" });
    await assert.rejects(ground.sandbox().createSession({ workspace, manifest: { files: { "../bad": "" } } }), SandboxPathError);
    assert.deepEqual(await ground.names(), before);
    const last = await ground.session({}, { workspace });
    assert.equal(await last.readTextFile("precious"), "kept");
    await last.destroy();
    const empty = await ground.session({}, { workspace });
    assert.deepEqual(await empty.listFiles(), []);
    await empty.destroy();
  });

  test("rule 10: what the provider refuses is SandboxDockerCommandError, with its result", async () => {
    await assert.rejects(ground.sandbox({ image: "eyot-no-such-image:0" }).createSession(), (error: unknown) => {
      assert.ok(error instanceof SandboxDockerCommandError);
      assert.match(error.message, /^Docker command failed: .*eyot-no-such-image:0/);
      assert.match(error.result.stderr, /eyot-no-such-image:0/);
      return true;
    });
  });

  test("rule 10: a server of another provider is never used in its place", async () => {
    const other = ground.isDocker ? "native" : "docker";
    const wrong = new DockerSandbox({ provider: other, eyot: { url: ground.url } });
    await assert.rejects(wrong.createSession(), (error: unknown) => {
      assert.ok(error instanceof SandboxDockerUnavailableError);
      assert.match(error.message, new RegExp(`sandboxes of "${ground.provider}", not of "${other}"`));
      return true;
    });
  });

  test("rule 13: the manifest's variables are every command's and process's, and a command's own beat them", async () => {
    const session = await ground.session({}, { manifest: { env: { ONE: "1", TWO: "2" } } });
    const { stdout } = await session.exec({ command: "sh", args: ["-c", "echo $ONE $TWO"], env: { TWO: "other" } });
    assert.equal(stdout, "1 other\n");
    const started = await session.startProcess({ command: "sh", args: ["-c", "echo $ONE $TWO"] });
    await session.stopProcess(started.id);
    const again = await session.exec({ command: "sh", args: ["-c", "echo $ONE $TWO"] });
    assert.equal(again.stdout, "1 2\n");
    await session.destroy();
  });

  test("rule 14: the manifest's files and directories are there, the files told, and no command", async () => {
    const log: [string, Record<string, unknown>][] = [];
    const files = { "text.txt": "text", "bytes/raw": new Uint8Array([0, 255]) };
    const session = await ground.session({ hooks: recorded(log) }, { manifest: { files, directories: ["empty/deep"] } });
    assert.equal(await session.readTextFile("text.txt"), "text");
    assert.deepEqual(await session.readFile("bytes/raw"), files["bytes/raw"]);
    assert.deepEqual((await session.listFiles("empty")).map(({ path, type }) => [path, type]), [["empty/deep", "directory"]]);
    assert.deepEqual(log.map(([name]) => name), ["file", "file", "create"]);
    await session.destroy();
  });

  test("rule 15: labels stand as they are, and metadata behind anvia.sandbox.metadata", async () => {
    const id = freshId();
    const session = await ground.session({ labels: { team: "a b", "x.y/z": "1" } }, { id, metadata: { run: "7" } });
    const { labels } = await (await ground.client.get(id)).refresh();
    const expected = {
      team: "a b",
      "x.y/z": "1",
      "anvia.sandbox": "true",
      "anvia.sandbox.workspace.mode": "ephemeral",
      "anvia.sandbox.metadata.run": "7",
    };
    for (const [key, value] of Object.entries(expected)) assert.equal(labels[key], value, key);
    if (ground.isDocker) assert.equal(container(id)["Config"].Labels["anvia.sandbox.metadata.run"], "7");
    await session.destroy();
  });

  test("rule 16: a persistent workspace outlives its session unless told otherwise, and the session's option wins", async () => {
    const id = `Keep ${freshId()}`;
    const persistent = { mode: "persistent", id } as const;
    const read = async (workspace: object) => {
      const session = await ground.sandbox({ workspace: { mode: "persistent", id: `other-${freshId()}`, destroyOnSessionDestroy: true } }).createSession({ workspace });
      const found = await session.readTextFile("kept").catch(() => undefined);
      await session.destroy();
      return found;
    };
    const first = await ground.session({ workspace: persistent });
    await first.writeFile("kept", "still here");
    await first.destroy();
    assert.equal(await read({ mode: "persistent", id: id.toLowerCase() }), "still here");
    assert.equal(await read({ mode: "ephemeral" }), undefined);
    assert.equal(await read({ ...persistent, destroyOnSessionDestroy: true }), "still here");
    assert.equal(await read({ ...persistent, destroyOnSessionDestroy: true }), undefined);
  });

  test("the network's host is this host's own, and true leads outwards", async () => {
    const devices = (network: boolean | string) =>
      ground.session({ network }).then(async (session) => {
        const { stdout } = await session.exec({ command: "sh", args: ["-c", "tail -n +3 /proc/net/dev | cut -d: -f1"] });
        await session.destroy();
        return stdout.split(/\s+/).filter((name) => name !== "").sort();
      });
    const own = execFileSync("sh", ["-c", "tail -n +3 /proc/net/dev | cut -d: -f1"], { encoding: "utf8" });
    assert.deepEqual(await devices("none"), ["lo"]);
    // Other tests make and remove devices of this host's meanwhile.
    assert.ok((await devices("host")).filter((name) => own.includes(name)).length > 1);
    if (ground.isDocker) {
      assert.deepEqual(await devices(true), ["eth0", "lo"]);
      assert.deepEqual(await devices("bridge"), ["eth0", "lo"]);
      await assert.rejects(devices("eyot-no-such-network"), SandboxDockerCommandError);
    }
  });
});

onEach("creating with an Engine's options", (ground) => {
  test("rule 11: what is there is used, never fetches nothing, always asks the registry", { skip: !ground.isDocker && "natively images come from a store of their own" }, async () => {
    const missing = await ground.session({ pull: "missing" });
    await missing.destroy();
    // Nothing listens there.
    const image = "127.0.0.1:9/nobody/nothing:1";
    await assert.rejects(ground.sandbox({ image, pull: "never" }).createSession(), /has no image/);
    for (const pull of ["always", "missing"] as const) {
      await assert.rejects(ground.sandbox({ image, pull }).createSession(), /fetch image/);
    }
  });

  test("rule 12: a session's container is held as the original's", { skip: !ground.isDocker && "there is no container" }, async () => {
    const id = freshId();
    const session = await ground.session({ workdir: "/work", user: "1000", labels: { one: "1" } }, { id, metadata: { two: "2" } });
    const { HostConfig, Config, Mounts } = container(id);
    assert.deepEqual([HostConfig.CapDrop, HostConfig.SecurityOpt, HostConfig.NetworkMode], [["ALL"], ["no-new-privileges"], "none"]);
    assert.equal((Mounts as { Destination: string; Type: string }[]).find(({ Destination }) => Destination === "/work")?.Type, "volume");
    const { labels } = { labels: Config.Labels as Record<string, string> };
    const names = ["one", "anvia.sandbox", "anvia.sandbox.workspace.mode", "anvia.sandbox.metadata.two"];
    assert.deepEqual(names.map((name) => labels[name]), ["1", "true", "ephemeral", "2"]);
    assert.equal((await session.exec({ command: "sh", args: ["-c", "pwd; id -u"] })).stdout, "/work\n1000\n");
    await session.destroy();
  });
});

onEach("creating with limits", (ground) => {
  test("rule 5: dropCapabilities drops what it names, and an empty list nothing", { skip: !ground.isDocker && "natively every capability is always dropped" }, async () => {
    const bounding = async (dropCapabilities: string[]) => {
      const session = await ground.session({ security: { dropCapabilities } });
      const { stdout } = await session.exec({ command: "grep", args: ["CapBnd", "/proc/self/status"] });
      await session.destroy();
      return BigInt(`0x${stdout.split("\t")[1]?.trim()}`);
    };
    const CHOWN = 1n;
    assert.equal((await bounding([])) & CHOWN, CHOWN);
    assert.equal((await bounding(["CHOWN"])) & CHOWN, 0n);
    assert.equal(await bounding(["ALL"]), 0n);
  });

  test("rule 4: the presets are their images, and an explicit image wins", { skip: !ground.isDocker && "natively there are no default images" }, async () => {
    const missing = async (make: (options: object) => DockerSandbox) => {
      // What is not there is named: nothing is fetched.
      const options = { provider: "docker", eyot: ground.client, pull: "never" } as const;
      const named = make({ ...options, image: "eyot-explicit:0" });
      await assert.rejects(named.createSession(), /eyot-explicit:0/);
      return await make(options).createSession().then(
        async (session) => {
          await session.destroy();
          return "it is there";
        },
        (error: Error) => error.message,
      );
    };
    const expected = [
      [(options: object) => new DockerSandbox(options), "node:22-bookworm"],
      [DockerSandbox.node, "node:22-bookworm"],
      [DockerSandbox.python, "python:3.13-bookworm"],
      [DockerSandbox.deno, "denoland/deno:debian"],
    ] as const;
    for (const [make, image] of expected) {
      const said = await missing(make);
      assert.ok(said === "it is there" || said.includes(`no image \`${image}\``), said);
    }
  });

  test("rule 2: nothing is limited unless asked, and rule 46: what is asked for is what the Engine holds", { skip: !ground.isDocker && "natively limits are a cgroup's" }, async () => {
    const id = freshId();
    const free = await ground.session({}, { id });
    const { Memory, NanoCpus, PidsLimit, ReadonlyRootfs, NetworkMode } = container(id)["HostConfig"];
    assert.deepEqual([Memory, NanoCpus, PidsLimit ?? 0, ReadonlyRootfs, NetworkMode], [0, 0, 0, false, "none"]);
    await free.destroy();
    const other = freshId();
    const limits = { memoryMb: 64, cpus: 0.5, pidsLimit: 20 };
    const limited = await ground.session({ limits, security: { readonlyRootfs: true } }, { id: other });
    const host = container(other)["HostConfig"];
    assert.deepEqual([host.Memory, host.NanoCpus, host.ReadonlyRootfs], [64 << 20, 5e8, true]);
    // Those that serve the sandbox are counted by the Engine too.
    assert.ok(host.PidsLimit >= 20 && host.PidsLimit <= 64, String(host.PidsLimit));
    await limited.writeFile("still", "written");
    await limited.destroy();
  });
});
