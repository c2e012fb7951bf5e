// E2B's SDK for JavaScript, as its users write with it. It finds the server by E2B_API_URL, E2B_SANDBOX_URL and
// E2B_API_KEY; nothing here is Eyot's. The argument names the case.
import assert from "node:assert/strict";
import http from "node:http";
import { CommandExitError, FileType, NotFoundError, Sandbox } from "e2b";

const cases = {
  async commands_run_and_their_output_streams(sandbox) {
    const pieces = [];
    const ran = await sandbox.commands.run('echo "Hello $NAME"; echo problem >&2; sleep 0.1; echo bye', {
      envs: { NAME: "E2B" },
      onStdout: (text) => void pieces.push(text),
    });
    assert.equal(ran.exitCode, 0);
    assert.equal(ran.stdout, "Hello E2B\nbye\n");
    assert.equal(ran.stderr, "problem\n");
    assert.equal(pieces.join(""), ran.stdout);
    await assert.rejects(sandbox.commands.run("exit 3"), (error) => error instanceof CommandExitError && error.exitCode === 3);
    const where = await sandbox.commands.run("pwd && whoami", { cwd: "/tmp" });
    assert.equal(where.stdout, "/tmp\nuser\n");
    await assert.rejects(sandbox.commands.run("true", { cwd: "/no/such/directory" }));
  },

  async a_command_that_takes_too_long_is_ended(sandbox) {
    await assert.rejects(sandbox.commands.run("sleep 600", { timeoutMs: 1_000 }));
    assert.equal((await sandbox.commands.run("echo alive")).stdout, "alive\n");
  },

  async files_are_written_read_and_listed(sandbox) {
    const written = await sandbox.files.write("notes/today.txt", "one\ntwo\n");
    assert.equal(written.path, "/home/user/notes/today.txt");
    assert.equal(await sandbox.files.read("/home/user/notes/today.txt"), "one\ntwo\n");
    const bytes = new Uint8Array([0, 255, 10, 13]);
    await sandbox.files.write([
      { path: "/tmp/a.bin", data: new Blob([bytes]) },
      { path: "/tmp/b.txt", data: "b" },
    ]);
    assert.deepEqual(await sandbox.files.read("/tmp/a.bin", { format: "bytes" }), bytes);
    const listed = await sandbox.files.list("notes");
    assert.deepEqual(listed.map(({ name, type, path, size }) => ({ name, type, path, size })), [
      { name: "today.txt", type: FileType.FILE, path: "/home/user/notes/today.txt", size: 8 },
    ]);
    assert.equal(await sandbox.files.makeDir("notes/deep/er"), true);
    assert.equal(await sandbox.files.makeDir("notes/deep/er"), false);
    const moved = await sandbox.files.rename("notes/today.txt", "notes/deep/kept.txt");
    assert.equal(moved.path, "/home/user/notes/deep/kept.txt");
    assert.equal((await sandbox.files.getInfo("notes/deep")).type, FileType.DIR);
    assert.equal(await sandbox.files.exists("notes/today.txt"), false);
    await sandbox.files.remove("notes");
    assert.equal(await sandbox.files.exists("notes"), false);
    await assert.rejects(sandbox.files.read("notes/deep/kept.txt"), NotFoundError);
  },

  async a_process_runs_in_the_background_reads_input_and_is_killed(sandbox) {
    let heard = "";
    let wake = () => {};
    const onStdout = (text) => {
      heard += text;
      wake();
    };
    const echo = await sandbox.commands.run("cat", { background: true, stdin: true, onStdout });
    await sandbox.commands.sendStdin(echo.pid, "to the process\n");
    while (!heard.includes("to the process")) await new Promise((done) => (wake = done));
    const running = await sandbox.commands.list();
    assert.ok(running.some((process) => process.pid === echo.pid && process.args.includes("cat")));
    await sandbox.commands.closeStdin(echo.pid);
    assert.equal((await echo.wait()).exitCode, 0);
    const endless = await sandbox.commands.run("sleep 600", { background: true });
    assert.equal(await endless.kill(), true);
    await assert.rejects(endless.wait(), CommandExitError);
    assert.equal(await sandbox.commands.kill(endless.pid), false);
  },

  async a_client_connects_to_a_process_that_another_started(sandbox) {
    const started = await sandbox.commands.run("read line; echo got $line", { background: true, stdin: true });
    await started.disconnect();
    const connected = await sandbox.commands.connect(started.pid);
    await sandbox.commands.sendStdin(started.pid, "it\n");
    assert.equal((await connected.wait()).stdout, "got it\n");
  },

  async a_terminal_is_typed_into_and_resized(sandbox) {
    let screen = "";
    let wake = () => {};
    const until = async (text) => {
      while (!screen.includes(text)) await new Promise((done) => (wake = done));
    };
    const onData = (bytes) => {
      screen += Buffer.from(bytes).toString();
      wake();
    };
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData, envs: { PS1: "$ " } });
    const type = (text) => sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode(text));
    await type("stty size; echo ready\n");
    await until("24 80");
    await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 30 });
    await type("stty size\n");
    await until("30 100");
    assert.equal(await sandbox.pty.kill(terminal.pid), true);
  },

  async a_directory_is_watched(sandbox) {
    await sandbox.files.makeDir("watched");
    let wake = () => {};
    const seen = [];
    const watch = await sandbox.files.watchDir("watched", (event) => {
      seen.push(event);
      wake();
    });
    await sandbox.files.write("watched/new.txt", "x");
    while (!seen.some((event) => event.name === "new.txt")) await new Promise((done) => (wake = done));
    await watch.stop();
  },

  async sandboxes_are_listed_found_and_killed(sandbox) {
    const other = await Sandbox.create({ metadata: { purpose: "list", "odd key": "a/b c" } });
    const page = await Sandbox.list({ query: { metadata: { "odd key": "a/b c" } } }).nextItems();
    assert.deepEqual(page.map((info) => [info.sandboxId, info.metadata.purpose]), [[other.sandboxId, "list"]]);
    assert.ok((await Sandbox.list().nextItems()).some((info) => info.sandboxId === sandbox.sandboxId));
    const again = await Sandbox.connect(other.sandboxId);
    await again.files.write("/tmp/x", "by the second");
    assert.equal(await other.files.read("/tmp/x"), "by the second");
    await other.setTimeout(600_000);
    const left = (await other.getInfo()).endAt.getTime() - Date.now();
    assert.ok(left > 500_000 && left <= 601_000, `${left} ms are left`);
    assert.equal(await other.isRunning(), true);
    assert.equal(await other.kill(), true);
    assert.equal(await other.isRunning(), false);
    assert.equal(await Sandbox.kill(other.sandboxId), false);
    await assert.rejects(other.commands.run("true"));
  },

  async a_paused_sandbox_keeps_its_files(sandbox) {
    await sandbox.files.write("kept.txt", "kept");
    await sandbox.pause();
    const page = await Sandbox.list({ query: { state: ["paused"] } }).nextItems();
    assert.ok(page.some((info) => info.sandboxId === sandbox.sandboxId));
    const resumed = await Sandbox.connect(sandbox.sandboxId);
    assert.equal(await resumed.files.read("kept.txt"), "kept");
  },

  async a_server_inside_answers_at_the_host_of_its_port(sandbox) {
    const page = "from http.server import *; HTTPServer(('127.0.0.1', 8000), SimpleHTTPRequestHandler).serve_forever()";
    await sandbox.files.write("/tmp/site/index.html", "served from inside");
    const server = await sandbox.commands.run(`python3 -c "${page}"`, { background: true, cwd: "/tmp/site" });
    const port = "for i in $(seq 200); do (echo > /dev/tcp/127.0.0.1/8000) 2>/dev/null && exit; sleep 0.05; done; exit 1";
    await sandbox.commands.run(port);
    // The name is the server's to resolve; here it is this machine's.
    const { hostname, port: at } = new URL(process.env.E2B_API_URL);
    const body = await new Promise((done, failed) => {
      const headers = { Host: sandbox.getHost(8000) };
      const asked = http.get({ hostname, port: at, path: "/", headers }, (answer) => {
        let text = "";
        answer.on("data", (piece) => (text += piece));
        answer.on("end", () => done(text));
      });
      asked.on("error", failed);
    });
    assert.equal(body, "served from inside");
    await server.kill();
  },

  async a_wrong_key_is_refused(sandbox) {
    await assert.rejects(Sandbox.create({ apiKey: "e2b_0000" }), { name: "AuthenticationError" });
    assert.ok(sandbox.sandboxId);
  },
};

const name = process.argv[2];
const sandbox = await Sandbox.create();
try {
  await cases[name](sandbox);
} finally {
  await Sandbox.kill(sandbox.sandboxId);
}
