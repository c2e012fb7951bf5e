/** Files: rules 27 to 39, as far as a session has to do with them. */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import {
  type DockerSandboxSession,
  SandboxDockerCommandError,
  SandboxFileSizeError,
  SandboxPathError,
} from "@eyot/client/anvia";
import { onEach, recorded } from "./ground.js";

onEach("files", (ground) => {
  let session: DockerSandboxSession;
  before(async () => {
    session = await ground.session();
  });
  const sh = (line: string) => session.exec({ command: "sh", args: ["-c", line] });
  const names = async (path?: string) => (await session.listFiles(path)).map((entry) => entry.path).sort();

  test("rule 27: every operation takes paths of the workspace only, with the original's words", async () => {
    const operations: ((path: string) => Promise<unknown>)[] = [
      (path) => session.readFile(path),
      (path) => session.readTextFile(path),
      (path) => session.readTextFilePage(path),
      (path) => session.writeFile(path, "x"),
      (path) => session.writeTextFile(path, "x"),
      (path) => session.listFiles(path),
      (path) => session.exec({ command: "true", cwd: path }),
      (path) => session.startProcess({ command: "true", cwd: path }),
    ];
    for (const operation of operations) {
      for (const [path, message] of [
        ["", "Sandbox path cannot be empty."],
        ["a\0b", "Sandbox path cannot contain null bytes."],
        ["/etc/passwd", "Sandbox path must be relative: /etc/passwd"],
        ["../x", "Sandbox path cannot leave the workspace: ../x"],
        ["a/../../x", "Sandbox path cannot leave the workspace: a/../../x"],
        ["..\\x", "Sandbox path cannot leave the workspace: ..\\x"],
      ] as const) {
        await assert.rejects(operation(path), (error: unknown) => error instanceof SandboxPathError && error.message === message);
      }
    }
    const itself = "Sandbox path must refer to a file or directory inside the workspace.";
    for (const path of [".", "a/.."]) {
      await assert.rejects(session.readFile(path), { message: itself });
      await assert.rejects(session.writeFile(path, ""), { message: itself });
      assert.ok(Array.isArray(await session.listFiles(path)));
    }
  });

  test("rule 28: odd but good paths are taken", async () => {
    await session.writeFile("a\\b.txt", "1");
    assert.equal(await session.readTextFile("a//b.txt"), "1");
    await session.writeFile("...", "2");
    await session.writeFile("safe/../x", "3");
    assert.deepEqual([await session.readTextFile("..."), await session.readTextFile("x")], ["2", "3"]);
    await assert.rejects(session.readFile("./"), SandboxPathError);
    await assert.rejects(session.readFile("a/"), SandboxDockerCommandError);
  });

  test("rule 29, mended: a link is followed inside the workspace, and never out of it", async () => {
    await sh("mkdir -p real && echo linked > real/file && ln -s real alias && ln -s /etc/hostname out");
    assert.equal(await session.readTextFile("alias/file"), "linked\n");
    await assert.rejects(session.readFile("out"), SandboxPathError);
  });

  test("rule 30: bytes come back as they were, text is UTF-8 with U+FFFD for what is not, and without its mark", async () => {
    const bytes = Uint8Array.from({ length: 100_000 }, (_, at) => at % 256);
    await session.writeFile("bytes", bytes);
    const read = await session.readFile("bytes");
    assert.ok(read instanceof Uint8Array && Buffer.compare(read, bytes) === 0);
    await session.writeFile("text", new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xff, 0x62]));
    assert.equal(await session.readTextFile("text"), "a\uFFFDb");
  });

  test("rule 31: a missing file and a directory are refused, saying so", async () => {
    await session.writeFile("dir/file", "");
    for (const [path, reason] of [["missing", /does not exist/], ["dir", /is a directory/]] as const) {
      await assert.rejects(session.readFile(path), (error: unknown) => {
        assert.ok(error instanceof SandboxDockerCommandError);
        assert.match(error.message, reason);
        assert.match(error.result.stderr, reason);
        assert.equal(error.result.exitCode, 1);
        return true;
      });
    }
  });

  test("rule 32: maxFileBytes holds at its edge for reads and writes, and the message names both numbers", async () => {
    const small = await ground.session({ limits: { maxFileBytes: 10 } });
    await small.writeFile("edge", "0123456789");
    assert.equal((await small.readFile("edge")).length, 10);
    const message = "Sandbox file exceeds maxFileBytes (11 > 10): edge";
    await assert.rejects(small.writeFile("edge", "0123456789a"), (error: unknown) => error instanceof SandboxFileSizeError && error.message === message);
    assert.equal(await small.readTextFile("edge"), "0123456789");
    await small.exec({ command: "sh", args: ["-c", "printf 0123456789a > edge"] });
    await assert.rejects(small.readFile("edge"), (error: unknown) => error instanceof SandboxFileSizeError && error.message === message);
    await assert.rejects(small.writeFile("é", "ééééééé"), { message: "Sandbox file exceeds maxFileBytes (14 > 10): é" });
    await small.destroy();
  });

  test("rule 33: a write makes parents and tells its normalised path and its size in bytes", async () => {
    const log: [string, Record<string, unknown>][] = [];
    const hooked = await ground.session({ hooks: recorded(log) });
    log.length = 0;
    await hooked.writeFile("a/./b\\c", "é");
    await hooked.writeTextFile("d", "");
    const { id: sessionId, provider, workdir } = hooked;
    assert.deepEqual(log, [
      ["file", { sessionId, provider, workdir, path: "a/b/c", size: 2 }],
      ["file", { sessionId, provider, workdir, path: "d", size: 0 }],
    ]);
    assert.equal(await hooked.readTextFile("a/b/c"), "é");
    await hooked.destroy();
  });

  test("rule 33: a directory that can't be made is named, in the original's words", async () => {
    await session.writeFile("a-file", "x");
    const name = "SandboxDockerCommandError";
    const message = "Unable to create sandbox directory: a-file/sub";
    await assert.rejects(session.writeFile("a-file/sub/x", "y"), { name, message });
    const workspace = { mode: "persistent", id: `files-${process.pid}`, destroyOnSessionDestroy: true } as const;
    const first = await ground.session({}, { workspace });
    await first.writeFile("a-file", "x");
    await assert.rejects(ground.session({}, { workspace, manifest: { directories: ["a-file/sub"] } }), { name, message });
    await first.destroy();
  });

  test("rule 14: the workspace itself is a directory that a manifest may name", async () => {
    const made = await ground.session({}, { manifest: { directories: [".", "a/b"] } });
    assert.deepEqual(await made.listFiles("a"), [{ path: "a/b", type: "directory", size: (await made.listFiles("a"))[0]?.size }]);
  });

  test("rule 34: a write replaces the whole file, and one onto a directory is refused and changes nothing", async () => {
    await session.writeFile("whole", "a longer text");
    await session.writeFile("whole", "short");
    assert.equal(await session.readTextFile("whole"), "short");
    assert.equal((await sh("stat -c %a whole")).stdout, "644\n");
    await session.writeFile("d1/kept", "");
    await assert.rejects(session.writeFile("d1", "x"), SandboxDockerCommandError);
    assert.deepEqual(await names("d1"), ["d1/kept"]);
  });

  test("rule 35: a listing has what is in a directory with its type and size, and not what is below it", async () => {
    await sh("mkdir -p l/sub && printf 12345 > l/file && ln -s file l/link && mkfifo l/pipe && touch l/.dot && echo x > l/sub/deep");
    const entries = new Map((await session.listFiles("l")).map((entry) => [entry.path, entry]));
    assert.deepEqual([...entries.keys()].sort(), ["l/.dot", "l/file", "l/link", "l/pipe", "l/sub"]);
    const types = ["l/file", "l/sub", "l/link", "l/pipe"].map((path) => entries.get(path)?.type);
    assert.deepEqual(types, ["file", "directory", "symlink", "other"]);
    assert.deepEqual([entries.get("l/file")?.size, entries.get("l/link")?.size, entries.get("l/.dot")?.size], [5, 4, 0]);
    assert.ok((await names()).includes("l"));
    assert.deepEqual(await session.listFiles("l/file"), []);
    await assert.rejects(session.listFiles("nowhere"), (error: unknown) => {
      return error instanceof SandboxDockerCommandError && error.message === "Unable to list sandbox path: nowhere";
    });
  });

  test("rule 35: a listing is in the directory's own order", async () => {
    await sh("mkdir order && cd order && for n in $(seq 200); do : > $n-name; done");
    const own = (await sh("ls -U order")).stdout.trim().split("\n");
    assert.deepEqual((await session.listFiles("order")).map(({ path }) => path.slice("order/".length)), own);
  });

  test("rule 36: a page's bounds are positive whole numbers, 500 lines and 65 536 bytes unless said otherwise", async () => {
    await session.writeFile("lines", Array.from({ length: 600 }, (_, n) => `${n + 1}\n`).join(""));
    for (const name of ["startLine", "lineCount", "maxBytes"]) {
      for (const value of [0, -1, 1.5, Number.NaN]) {
        await assert.rejects(session.readTextFilePage("lines", { [name]: value }), RangeError);
      }
    }
    const page = await session.readTextFilePage("lines");
    const { content, ...facts } = page;
    assert.ok(content.startsWith("1\n2\n") && content.endsWith("\n500\n"));
    assert.deepEqual(facts, { startLine: 1, endLine: 500, nextStartLine: 501, truncated: true, truncatedBy: "lines" });
    await session.writeFile("long", "x".repeat(70_000));
    const cut = await session.readTextFilePage("long");
    assert.deepEqual([cut.content.length, cut.truncatedBy, cut.endLine, cut.nextStartLine], [65_536, "bytes", 1, null]);
  });

  test("rule 37: pages end at lines, and past the end there is nothing", async () => {
    await session.writeFile("three", "one\r\ntwo\nthree");
    const page = (startLine: number, lineCount: number) => session.readTextFilePage("three", { startLine, lineCount });
    const whole = { truncated: false, truncatedBy: null, nextStartLine: null };
    assert.deepEqual(await page(1, 3), { content: "one\r\ntwo\nthree", startLine: 1, endLine: 3, ...whole });
    const two = { content: "one\r\ntwo\n", startLine: 1, endLine: 2, nextStartLine: 3, truncated: true, truncatedBy: "lines" };
    assert.deepEqual(await page(1, 2), two);
    assert.deepEqual(await page(3, 5), { content: "three", startLine: 3, endLine: 3, ...whole });
    assert.deepEqual(await page(4, 5), { content: "", startLine: 4, endLine: null, ...whole });
    await session.writeFile("empty", "");
    assert.deepEqual(await session.readTextFilePage("empty"), { content: "", startLine: 1, endLine: null, ...whole });
  });

  test("rule 38: a cut by bytes falls between characters, and says where to go on only at a line's end", async () => {
    await session.writeFile("wide", "abc😀def\nnext\n");
    const wide = await session.readTextFilePage("wide", { maxBytes: 6 });
    const bytes = { startLine: 1, endLine: 1, truncated: true, truncatedBy: "bytes" };
    assert.deepEqual(wide, { content: "abc", nextStartLine: null, ...bytes });
    await session.writeFile("short", "one\ntwo\n");
    assert.deepEqual(await session.readTextFilePage("short", { maxBytes: 4 }), { content: "one\n", nextStartLine: 2, ...bytes });
  });

  test("rule 39: what is no regular file has no pages, and maxFileBytes is not for them", async () => {
    await sh("mkdir -p pages && mkfifo pages/pipe");
    for (const path of ["pages", "pages/pipe", "missing"]) {
      await assert.rejects(session.readTextFilePage(path), (error: unknown) => {
        assert.ok(error instanceof SandboxDockerCommandError);
        assert.deepEqual([error.message, error.result.exitCode], [`Unable to read sandbox text file: ${path}`, 66]);
        return true;
      });
    }
    const small = await ground.session({ limits: { maxFileBytes: 2 } });
    await small.exec({ command: "sh", args: ["-c", "echo longer > file"] });
    assert.equal((await small.readTextFilePage("file")).content, "longer\n");
    await small.destroy();
  });
});
