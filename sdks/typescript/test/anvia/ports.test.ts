/** Published ports: rules 47 to 49, and the guards of rule 55. */

import assert from "node:assert/strict";
import net from "node:net";
import { before, test } from "node:test";
import {
  type DockerSandboxSession,
  SandboxPortError,
  type SandboxSession,
  SandboxTimeoutError,
  isSandboxPortSession,
  isSandboxProcessSession,
} from "@eyot/client/anvia";
import { onEach } from "./ground.js";

/** A server in the sandbox's Node: it answers each line in capitals, and says good-bye when the client's side has ended. */
const SERVER = `require("net").createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("data", (bytes) => socket.write(bytes.toString().toUpperCase()));
  socket.on("end", () => socket.end("bye"));
}).listen(Number(process.argv[1]), process.argv[2]);`;

onEach("ports", (ground) => {
  let session: DockerSandboxSession;
  before(async () => {
    session = await ground.session({ network: true }, { ports: [4001, 4000] });
  });
  const serve = (port: number, address: string) => session.startProcess({ command: "node", args: ["-e", SERVER, String(port), address] });

  test("rule 47: ports are whole numbers from 1 to 65535, each once, on a network that can carry them", async () => {
    const before = await ground.names();
    const refused = async (network: boolean | string, ports: number[], words: RegExp) => {
      await assert.rejects(ground.sandbox({ network }).createSession({ ports }), (error: unknown) => {
        return error instanceof SandboxPortError && words.test(error.message);
      });
    };
    for (const port of [0, 65_536, -1, 1.5, Number.NaN]) await refused(true, [port], /1 to 65535/);
    await refused(true, [80, 80], /duplicated/);
    for (const network of [false, "none", "host", "container:x"]) await refused(network, [80], /bridge-capable Docker network\.$/);
    await assert.rejects(ground.sandbox({ network: { mode: "none" } }).createSession({ ports: [80] }), SandboxPortError);
    assert.deepEqual(await ground.names(), before);
    const edges = await ground.session({ network: true }, { ports: [1, 65_535] });
    await edges.destroy();
  });

  test("rule 48: published ports are on 127.0.0.1, in the order in which they were asked for", async () => {
    const [first, second] = session.publishedPorts;
    assert.deepEqual([first?.containerPort, second?.containerPort, session.publishedPorts.length], [4001, 4000, 2]);
    for (const port of session.publishedPorts) {
      assert.deepEqual([port.host, port.protocol], ["127.0.0.1", "tcp"]);
      assert.ok(Number.isInteger(port.hostPort) && port.hostPort > 0);
    }
    assert.deepEqual((await ground.session()).publishedPorts, []);
  });

  test("rule 48: bytes go both ways over a real TCP port, and each side ends by itself", async () => {
    await serve(4000, "0.0.0.0");
    const { host, hostPort } = await session.waitForPort(4000);
    const exchange = async (said: string) => {
      const socket = net.connect({ host, port: hostPort, allowHalfOpen: true });
      let answer = "";
      socket.setEncoding("utf8").on("data", (text: string) => (answer += text));
      socket.end(said);
      await new Promise((resolve, reject) => socket.once("close", resolve).once("error", reject));
      return answer;
    };
    const large = "abc".repeat(300_000);
    const answers = await Promise.all([exchange("hello"), exchange(""), exchange(large)]);
    assert.deepEqual(answers, ["HELLObye", "bye", `${large.toUpperCase()}bye`]);
  });

  test("rule 48: a connection to a port where nothing listens is ended", async () => {
    const { host, hostPort } = session.publishedPorts[0] ?? assert.fail();
    const socket = net.connect({ host, port: hostPort });
    await new Promise((resolve) => socket.once("close", resolve).on("error", () => {}));
  });

  test("rule 49: a port is ready when something listens on it for others, loopback alone does not count", async () => {
    await serve(4001, "127.0.0.1");
    await assert.rejects(session.waitForPort(4001, { timeoutMs: 1500, intervalMs: 50 }), (error: unknown) => {
      return error instanceof SandboxTimeoutError && error.message.endsWith("timed out.");
    });
    const other = await ground.session({ network: true }, { ports: [4002] });
    await other.startProcess({ command: "node", args: ["-e", SERVER, "4002", "::"] });
    assert.equal((await other.waitForPort(4002, { intervalMs: 20 })).containerPort, 4002);
    await other.destroy();
  });

  test("rule 49: what is not published and numbers that make no sense are refused, an abort is the signal's reason", async () => {
    await assert.rejects(session.waitForPort(80), { name: "SandboxPortError", message: "Sandbox port is not published: 80/tcp" });
    for (const options of [{ timeoutMs: 0 }, { timeoutMs: -1 }, { intervalMs: 0 }, { intervalMs: Number.NaN }]) {
      await assert.rejects(session.waitForPort(4001, options), SandboxPortError);
    }
    const own = new Error("enough");
    await assert.rejects(session.waitForPort(4001, { signal: AbortSignal.abort(own) }), (error) => error === own);
    const abort = new AbortController();
    const waiting = session.waitForPort(4001, { signal: abort.signal });
    abort.abort(own);
    await assert.rejects(waiting, (error) => error === own);
  });

  test("rule 55: a session has all that the guards look for, and another object may lack it", () => {
    assert.ok(isSandboxPortSession(session) && isSandboxProcessSession(session));
    const plain = { id: "x", provider: "x", workdir: "/" } as SandboxSession;
    assert.ok(!isSandboxPortSession(plain) && !isSandboxProcessSession(plain));
  });

  test("a destroyed session's ports listen no longer", async () => {
    const gone = await ground.session({ network: true }, { ports: [4003] });
    const port = gone.publishedPorts[0]?.hostPort ?? assert.fail();
    await gone.destroy();
    const socket = net.connect({ host: "127.0.0.1", port });
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => socket.once("error", resolve));
    assert.equal(error.code, "ECONNREFUSED");
  });
});
