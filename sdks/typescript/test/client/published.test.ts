import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { test } from "node:test";

/** The package's own folder: tests are run from there. */
const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  exports: Record<string, string | { types: string }>;
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
};

test("the published types need no package that is not installed with this one", () => {
  const begins = Object.values(manifest.exports).flatMap((entry) => (typeof entry === "string" ? [] : [resolve(entry.types)]));
  const seen = new Set<string>(begins);
  const packages = new Set<string>();
  for (const file of seen) {
    for (const [, name = ""] of readFileSync(file, "utf8").matchAll(/(?<!["\w])(?:from|import\() ?"([^"]+)"/g)) {
      if (name.startsWith(".")) seen.add(resolve(dirname(file), name.replace(/\.js$/, ".d.ts")));
      else packages.add(name);
    }
  }
  // `ws` is installed, but its types are not.
  const typed = ["zod", ...Object.keys(manifest.peerDependencies)];
  assert.deepEqual([...packages].filter((name) => !name.startsWith("node:") && !typed.includes(name)), []);
});
