// Daytona's own SDK for JavaScript, as its guides use it. Each case is a function; its name is the argument.

import assert from "node:assert/strict";
import { Daytona } from "@daytonaio/sdk";

const daytona = new Daytona();

async function withSandbox(use, params = { language: "python" }) {
  const sandbox = await daytona.create(params);
  try {
    await use(sandbox);
  } finally {
    await sandbox.delete();
  }
}

const cases = {
  async the_quickstart_runs() {
    const sandbox = await daytona.create({ language: "python" });
    const response = await sandbox.process.codeRun('print("Hello World from code!")');
    assert.equal(response.exitCode, 0);
    assert.equal(response.result.trim(), "Hello World from code!");
    await sandbox.delete();
  },

  async commands_run_and_their_ends_are_told() {
    await withSandbox(
      async (sandbox) => {
        const ran = await sandbox.process.executeCommand("echo $WORD; pwd; exit 3", "/tmp", { WORD: "said" });
        assert.equal(ran.exitCode, 3);
        assert.equal(ran.result, "said\n/tmp\n");
        assert.equal((await sandbox.process.executeCommand("echo $KEPT")).result, "kept\n");
        await assert.rejects(sandbox.process.executeCommand("sleep 100", "/", {}, 1));
      },
      { language: "python", envVars: { KEPT: "kept" } },
    );
  },

  async files_are_written_read_and_listed() {
    await withSandbox(async (sandbox) => {
      const home = await sandbox.getUserHomeDir();
      const content = Buffer.from([0, 1, 2, 255, 13, 10, 45, 45]);
      await sandbox.fs.createFolder(`${home}/new`, "755");
      await sandbox.fs.uploadFile(content, `${home}/new/file.bin`);
      assert.deepEqual(Buffer.from(await sandbox.fs.downloadFile(`${home}/new/file.bin`)), content);
      const [listed] = await sandbox.fs.listFiles(`${home}/new`);
      assert.deepEqual([listed.name, listed.isDir, listed.size], ["file.bin", false, content.length]);
      await sandbox.fs.moveFiles(`${home}/new/file.bin`, `${home}/new/other`);
      assert.equal((await sandbox.fs.getFileDetails(`${home}/new/other`)).name, "other");
      await sandbox.fs.deleteFile(`${home}/new/other`);
      assert.deepEqual(await sandbox.fs.listFiles(`${home}/new`), []);
      await assert.rejects(sandbox.fs.downloadFile(`${home}/missing`));
    });
  },

  async a_session_keeps_its_shell_between_commands() {
    await withSandbox(async (sandbox) => {
      const process = sandbox.process;
      await process.createSession("s1");
      await process.executeSessionCommand("s1", { command: "cd /tmp; WORD=kept" });
      const ran = await process.executeSessionCommand("s1", { command: "pwd; echo $WORD; echo bad >&2" });
      assert.deepEqual([ran.exitCode, ran.stdout, ran.stderr], [0, "/tmp\nkept\n", "bad\n"]);
      const begun = await process.executeSessionCommand("s1", { command: "sleep 0.2; echo late", runAsync: true });
      let state;
      do {
        state = await process.getSessionCommand("s1", begun.cmdId);
      } while (state.exitCode === undefined || state.exitCode === null);
      assert.equal((await process.getSessionCommandLogs("s1", begun.cmdId)).stdout, "late\n");
      await process.deleteSession("s1");
    });
  },

  async a_terminal_is_typed_into_and_tells_its_end() {
    await withSandbox(async (sandbox) => {
      let shown = "";
      const onData = (data) => (shown += new TextDecoder().decode(data));
      const terminal = await sandbox.process.createPty({ id: "t1", cols: 90, rows: 20, onData });
      await terminal.waitForConnection();
      await terminal.sendInput("stty size; echo $((6 * 7)); exit 4\n");
      const end = await terminal.wait();
      assert.equal(end.exitCode, 4);
      assert.match(shown, /20 90\r\n42\r\n/);
    });
  },

  async sandboxes_are_labelled_found_stopped_and_started() {
    await withSandbox(
      async (sandbox) => {
        assert.deepEqual([sandbox.name, sandbox.state], ["mine", "started"]);
        await sandbox.setLabels({ project: "b" });
        await sandbox.process.executeCommand("echo kept > /root/file");
        await sandbox.stop();
        assert.equal(sandbox.state, "stopped");
        await sandbox.start();
        const again = await daytona.get("mine");
        assert.deepEqual([again.id, again.labels.project], [sandbox.id, "b"]);
        assert.equal((await again.process.executeCommand("cat /root/file")).result, "kept\n");
        await assert.rejects(daytona.create({ name: "mine" }));
        await assert.rejects(daytona.get("another"));
      },
      { language: "python", name: "mine", labels: { project: "a" } },
    );
  },

  async a_wrong_key_is_refused() {
    const stranger = new Daytona({ apiKey: "dtn_wrong" });
    await assert.rejects(stranger.create({ language: "python" }));
  },
};

await cases[process.argv[2]]();
process.exit(0);
