/**
 * Every message that Anvia 0.6.0 throws stands in the drop-in, and none besides; those that differ on purpose, and only those, are
 * listed in docs/anvia.md.
 */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import ts from "typescript";

/** A text with `…` where something is filled in. */
type Message = string;

const file = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

/** The messages that 0.6.0 throws, as they were observed. */
const THROWN: Message[] = JSON.parse(file("../../test/anvia/messages_0_6.json"));

const sources = (folder: string): string[] => {
  const path = fileURLToPath(new URL(folder, import.meta.url));
  const files = readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return files.map((name) => readFileSync(`${path}/${name}`, "utf8"));
};

/** The text of a literal. */
function message(node: ts.Node): Message | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join("");
}

/** The literals of a source that `wanted` takes. */
function literals(source: string, wanted: (node: ts.Node) => boolean): Message[] {
  const found: Message[] = [];
  const visit = (node: ts.Node): void => {
    const text = message(node);
    if (text !== undefined && wanted(node)) found.push(text);
    node.forEachChild(visit);
  };
  visit(ts.createSourceFile("source.ts", source, ts.ScriptTarget.Latest, true));
  return found;
}

/** Whether a literal is the first argument of a `new …Error(…)`, or of a function that makes one. */
function isThrown({ parent, pos }: ts.Node): boolean {
  if (!ts.isNewExpression(parent) && !ts.isCallExpression(parent)) return false;
  return parent.arguments?.[0]?.pos === pos && /(Error|^refuse|^refused)$/.test(parent.expression.getText());
}

/** Whether a literal of ours says what a message of Anvia's says: something filled in may be a word of the original's. */
function says(literal: Message, original: Message): boolean {
  const parts = literal.split("…");
  if (parts.join("").length * 2 < original.length) return false;
  const pattern = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".+");
  return new RegExp(`^${pattern}$`, "s").test(original);
}

const OURS = sources("../../src/anvia");
const LITERALS = OURS.flatMap((source) => literals(source, () => true));
const THROWN_BY_US = [...new Set(OURS.flatMap((source) => literals(source, isThrown)))];
const DOCS = file("../../../../docs/anvia.md");

/** The messages in the first column of a table of docs/anvia.md, which begins with this heading. */
function listed(heading: string): Message[] {
  const [, table = ""] = DOCS.split(`| ${heading} |`);
  const rows = table.split("\n\n")[0] ?? "";
  return [...rows.matchAll(/^\| `(.+?)` \|/gm)].map(([, text = ""]) => text).sort();
}

test("there are messages on both sides", () => {
  assert.ok(THROWN.length > 50 && THROWN_BY_US.length > 40);
});

test("the drop-in says what the original says, or docs/anvia.md lists the message", () => {
  const missing = THROWN.filter((text) => !LITERALS.some((literal) => says(literal, text)));
  assert.deepEqual(listed("message of the original"), missing.sort());
});

test("the drop-in says nothing else, or docs/anvia.md lists the message", () => {
  const added = THROWN_BY_US.filter((literal) => !THROWN.some((text) => says(literal, text)));
  assert.deepEqual(listed("message of Eyot's own"), added.sort());
});
