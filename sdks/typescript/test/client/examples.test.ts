/** The programs of `examples/`. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { EyotClient } from "@eyot/client";
import { lacks, program } from "../ground.js";

const EXAMPLES = fileURLToPath(new URL("../../../../examples", import.meta.url));
const BUILT = fileURLToPath(new URL("..", import.meta.url));

test("a job is done from an upload to its picture", async (context) => {
  // Within the package, whose name is then known.
  const folder = mkdtempSync(join(BUILT, "example-"));
  try {
    await using client = new EyotClient({ stateDir: join(folder, "state") });
    if (await lacks(context, client, "network_egress")) return;
    cpSync(join(EXAMPLES, "project"), join(folder, "project"), { recursive: true });
    const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
    const compiled = ts.transpileModule(readFileSync(join(EXAMPLES, "plot.ts"), "utf8"), { compilerOptions });
    writeFileSync(join(folder, "plot.js"), compiled.outputText);
    const { EYOT_SERVER: _, ...others } = process.env;
    const env = { ...others, EYOT_BIN: program(), EYOT_STATE: join(folder, "state") };
    const said = execFileSync(process.execPath, ["plot.js"], { cwd: folder, env, encoding: "utf8", timeout: 120_000 });
    assert.match(said, /168 primes below 1000\n$/);
    assert.deepEqual([...readFileSync(join(folder, "plot.png")).subarray(1, 4)], [...Buffer.from("PNG")]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
