/** The programs of `examples/`, and of the page about agents. */

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import { EyotClient } from "@eyot/client";
import { lacks, program } from "../ground.js";
import { modelServer } from "../model_server.js";

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

test("the program of the page about agents runs", async () => {
  const folder = mkdtempSync(join(BUILT, "example-"));
  const model = await modelServer();
  try {
    const page = readFileSync(join(EXAMPLES, "..", "docs", "agents.md"), "utf8");
    const source = /```ts\n(.*?)```/s.exec(page)?.[1] ?? "";
    // Its `await using` is for newer ones than the oldest Node.
    const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
    writeFileSync(join(folder, "agents.js"), ts.transpileModule(source, { compilerOptions }).outputText);
    mkdirSync(join(folder, "agents"));
    writeFileSync(join(folder, "agents", "assistant.md"), "You help people to plan their day.\n");
    const { EYOT_SERVER: _, ...others } = process.env;
    const own = { EYOT_BIN: program(), EYOT_STATE: join(folder, "state"), EYOT_PROVIDER: "memory", OLLAMA_HOST: model.url.replace("/v1", "") };
    const options = { cwd: folder, env: { ...others, ...own }, timeout: 120_000 };
    const { stdout } = await promisify(execFile)(process.execPath, ["agents.js"], options);
    assert.match(stdout, /^weather took \d+ ms\nIt said: {"city":"Oslo","degrees":21}\s*\nIt said: And in Rome\?\s*\n$/);
  } finally {
    model.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
