/** The sample program, run as a program on each ground: its import is all that knows of Eyot. Compared line by line. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { program } from "../ground.js";
import { IMAGE, freshId, onEach } from "./ground.js";

const SAMPLE = fileURLToPath(new URL("sample.js", import.meta.url));
const SOURCE = new URL("../../test/anvia/sample.ts", import.meta.url);
const EXPECTED = new URL("../../test/anvia/sample.expected.txt", import.meta.url);

test("the sample has one import, of what @anvia/sandbox exports, and nothing else of Eyot's", () => {
  const source = readFileSync(SOURCE, "utf8");
  const imports = [...source.matchAll(/from "([^"]+)"/g)].map(([, name]) => name);
  assert.deepEqual(imports, ["@eyot/client/anvia"]);
  assert.doesNotMatch(source.replace(/"@eyot\/client\/anvia"|^ \*.*$/gm, ""), /eyot|native/i);
});

onEach("the sample program", (ground) => {
  test("prints what the rules say, line by line", async () => {
    const folder = mkdtempSync(join(tmpdir(), "eyot-sample-"));
    const env = {
      ...process.env,
      // It starts a server of its own.
      EYOT_BIN: program(),
      EYOT_STATE: folder,
      EYOT_PROVIDER: ground.provider,
      ...(ground.isDocker ? { SAMPLE_IMAGE: IMAGE } : {}),
    };
    delete (env as NodeJS.ProcessEnv)["EYOT_SERVER"];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [SAMPLE, freshId()], { env });
    assert.equal(stderr, "");
    const [said, expected] = [stdout, readFileSync(EXPECTED, "utf8")].map((text) => text.split("\n"));
    for (const [at, line] of (expected ?? []).entries()) assert.equal(said?.[at], line, `line ${at + 1}`);
    assert.equal(said?.length, expected?.length);
    rmSync(folder, { recursive: true, force: true });
  });
});
