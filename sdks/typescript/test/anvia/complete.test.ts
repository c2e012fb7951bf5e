/** The list of rules has no gaps: every number, and every fault of the table, is the name of a test. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const HERE = new URL("../../test/anvia/", import.meta.url);
const FAULTS_TABLE = new URL("../../../../docs/anvia.md", import.meta.url);
const LAST_OF_TOOLS = 66;
const LAST_FAULT = 12;

const names = readdirSync(HERE)
  .filter((file) => file.endsWith(".test.ts"))
  .flatMap((file) => [...readFileSync(new URL(file, HERE), "utf8").matchAll(/^ *test\(["`]([^"`]+)/gm)].map(([, name]) => name ?? ""));

test("every rule of sessions and tools, 1 to 66, is a test by its number", () => {
  const tried = new Set(names.flatMap((name) => [...name.matchAll(/\brule (\d+)/g)].map(([, number]) => Number(number))));
  const missing = Array.from({ length: LAST_OF_TOOLS }, (_, at) => at + 1).filter((number) => !tried.has(number));
  assert.deepEqual(missing, []);
});

test("every fault, F1 to F12, is a test by its number and a row of the documentation", () => {
  const table = readFileSync(FAULTS_TABLE, "utf8");
  for (let number = 1; number <= LAST_FAULT; number += 1) {
    assert.ok(names.some((name) => name.startsWith(`F${number}:`)), `no test of F${number}`);
    assert.match(table, new RegExp(`^\\| F${number} \\|`, "m"));
  }
});
