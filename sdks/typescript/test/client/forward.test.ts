import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import { EyotClient, EyotError, type Sandbox } from "@eyot/client";
import { type Ground, ground, lacks } from "../ground.js";

let here: Ground;
let sandbox: Sandbox;
const clients: EyotClient[] = [];

before(async () => {
  here = await ground();
  clients.push(new EyotClient({ url: here.socket, apiKey: here.key }), new EyotClient({ url: here.url, apiKey: here.key }));
  sandbox = await (clients[0] as EyotClient).create({ name: "ports" });
});
after(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await here.close();
});

/** What a port answers to this, once both sides have ended. */
function exchange(port: number, said: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: "127.0.0.1", port, allowHalfOpen: true });
    let answer = "";
    socket.setEncoding("utf8").on("data", (text: string) => (answer += text));
    socket.once("close", () => resolve(answer)).once("error", reject);
    socket.end(said);
  });
}

test("a port of a sandbox without a network is a port here, over a socket and over TCP, until it is closed", async (context) => {
  if (await lacks(context, clients[0] as EyotClient, "dial")) return;
  const server = `
import socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.read()[::-1])
socketserver.ThreadingTCPServer.allow_reuse_address = True
server = socketserver.ThreadingTCPServer(("127.0.0.1", 4567), Echo)
print("up", flush=True)
server.serve_forever()`;
  const { id } = await sandbox.start(["python3", "-c", server]);
  let said = "";
  // A line may come in pieces.
  for await (const { data } of sandbox.logs(id, { follow: true, stream: "stdout" })) if ((said += Buffer.from(data).toString()) === "up\n") break;
  for (const client of clients) {
    const forward = await client.sandbox("ports").forward(4567);
    assert.deepEqual([forward.host, forward.sandboxPort], ["127.0.0.1", 4567]);
    const large = "ab".repeat(1_000_000);
    const answers = await Promise.all([exchange(forward.port, "abc"), exchange(forward.port, ""), exchange(forward.port, large)]);
    assert.deepEqual(answers.map(({ length }) => length), [3, 0, large.length]);
    assert.deepEqual([answers[0], answers[2]?.slice(0, 2)], ["cba", "ba"]);
    const { port } = forward;
    forward.close();
    forward.close();
    await assert.rejects(exchange(port, "x"), { code: "ECONNREFUSED" });
  }
});

test("a connection to where nothing listens is reset, and the next one is tried anew", async () => {
  const forward = await sandbox.forward(4568);
  await assert.rejects(exchange(forward.port, "x"), { code: "ECONNRESET" });
  await assert.rejects(exchange(forward.port, "x"), { code: "ECONNRESET" });
  forward.close();
});

for (const port of [0, -1, 1.5, 65_536, 99_999, "8000", undefined]) {
  test(`a port that there can't be is refused at once: ${port}`, async () => {
    const wrong = port as number;
    for (const call of [sandbox.forward(wrong), sandbox.preview(wrong), sandbox.endPreviews(wrong)]) {
      await assert.rejects(call, (error: unknown) => {
        assert.ok(error instanceof EyotError && error.kind === "invalid" && error.field === "port", String(error));
        assert.match(error.message, /^(forward|preview|end previews): `port` must be a number from 1 to 65535, not /);
        return true;
      });
    }
  });
}
