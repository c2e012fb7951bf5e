/** `eyot init flue` in a project with the real compiler, the real runtime and this client as npm packs it. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { program } from "../ground.js";

const CLIENT = fileURLToPath(new URL("../..", import.meta.url));
const PACKAGES = ["@flue/runtime", "typescript", "@types/node", "tar", "ws"];

let packed: string;

before(() => {
  packed = mkdtempSync(join(tmpdir(), "eyot-packed-"));
  const args = ["pack", "--silent", "--ignore-scripts", "--pack-destination", packed];
  const archive = execFileSync("npm", args, { cwd: CLIENT, encoding: "utf8" }).trim();
  execFileSync("tar", ["-xzf", join(packed, archive), "-C", packed]);
});
after(() => cleared(packed));

interface Done {
  file: string;
  typecheck: { status: string; output?: string };
  missing: string[];
  snippet: string;
}

/** A project that has all that it takes. */
function project(options: Record<string, unknown>): string {
  const folder = mkdtempSync(join(tmpdir(), "eyot-init-"));
  const link = (target: string, name: string): void => {
    mkdirSync(dirname(join(folder, "node_modules", name)), { recursive: true });
    symlinkSync(target, join(folder, "node_modules", name));
  };
  cpSync(join(packed, "package"), join(folder, "node_modules/@eyot/client"), { recursive: true });
  for (const name of PACKAGES) link(join(CLIENT, "node_modules", name), name);
  link(join(CLIENT, "node_modules/typescript/bin/tsc"), ".bin/tsc");
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const compilerOptions = { strict: true, target: "ES2022", skipLibCheck: true, types: ["node"], ...options };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  return folder;
}

function init(folder: string, ...args: string[]): { code: number | null; done: Done } {
  // The compiler runs on the Node that this is.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"]}` };
  const { status, stdout, stderr } = spawnSync(program(), ["--json", "init", "flue", folder, ...args], { encoding: "utf8", env });
  assert.ok(stdout, stderr);
  return { code: status, done: JSON.parse(stdout) as Done };
}

const cleared = (folder: string): void => rmSync(folder, { recursive: true, force: true });

test("what init writes passes the project's compiler, and so does an agent with its snippet", () => {
  const folder = project({ module: "NodeNext", moduleResolution: "NodeNext" });
  try {
    mkdirSync(join(folder, ".flue/agents"), { recursive: true });
    const { code, done } = init(folder);
    assert.deepEqual([code, done.file, done.typecheck.status, done.missing], [0, ".flue/sandboxes/eyot.ts", "passed", []], JSON.stringify(done));
    writeFileSync(join(folder, ".flue/agents/coder.ts"), done.snippet);
    const compilerOptions = { noEmit: true, allowImportingTsExtensions: true };
    writeFileSync(join(folder, "tsconfig.agent.json"), JSON.stringify({ extends: "./tsconfig.json", files: [".flue/agents/coder.ts"], compilerOptions }));
    const compiler = join(CLIENT, "node_modules/typescript/bin/tsc");
    const checked = spawnSync(process.execPath, [compiler, "-p", join(folder, "tsconfig.agent.json")], { encoding: "utf8" });
    assert.equal(checked.status, 0, checked.stdout);
  } finally {
    cleared(folder);
  }
});

test("a project of a bundler's is checked with its own options, a source folder outside its root included", () => {
  const folder = project({ module: "ESNext", moduleResolution: "Bundler", allowImportingTsExtensions: true, noEmit: true, rootDir: "src" });
  try {
    mkdirSync(join(folder, ".flue"));
    const { code, done } = init(folder);
    assert.deepEqual([code, done.typecheck.status], [0, "passed"], JSON.stringify(done));
  } finally {
    cleared(folder);
  }
});

test("the package has all that its names lead to, and its licenses", () => {
  const folder = project({});
  try {
    const use = 'for (const name of ["", "/flue", "/ai"]) console.log(Object.keys(await import(`@eyot/client${name}`)).sort().join());';
    const said = execFileSync(process.execPath, ["--input-type=module", "--eval", use], { cwd: folder, encoding: "utf8" });
    assert.match(said, /^CommandFailed,EyotClient,EyotError,RunFailed,Sandbox\n.*eyotPool.*\n.*toolMap/);
    for (const name of ["LICENSE-MIT", "LICENSE-APACHE", "README.md"]) assert.ok(existsSync(join(packed, "package", name)), name);
  } finally {
    cleared(folder);
  }
});

test("what the compiler refuses is a failure of init", () => {
  const folder = project({ module: "CommonJS", moduleResolution: "Node10", ignoreDeprecations: "5.0" });
  try {
    const { code, done } = init(folder);
    assert.deepEqual([code, done.typecheck.status], [1, "failed"]);
    assert.match(done.typecheck.output ?? "", /@eyot\/client\/flue/);
  } finally {
    cleared(folder);
  }
});
