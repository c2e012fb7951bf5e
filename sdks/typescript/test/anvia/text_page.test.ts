/** Rules 36 to 38 of the contract of `@anvia/sandbox`: how a page is cut out of a text. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createTextFilePage, textPageBounds } from "../../dist/anvia/text_page.js";
import type { SandboxTextFilePage } from "../../dist/anvia/types.js";

const cut = (text: string, options: Parameters<typeof textPageBounds>[0] = {}): SandboxTextFilePage =>
  createTextFilePage(text, textPageBounds(options));

const page = (content: string, startLine: number, endLine: number | null): SandboxTextFilePage => ({
  content,
  startLine,
  endLine,
  nextStartLine: null,
  truncated: false,
  truncatedBy: null,
});

test("rule 36: a page is 500 lines from line 1, and 65 536 bytes at the most", () => {
  assert.deepEqual(textPageBounds(), { startLine: 1, lineCount: 500, maxBytes: 65_536 });
  assert.deepEqual(textPageBounds({ startLine: undefined, lineCount: 2 }), { startLine: 1, lineCount: 2, maxBytes: 65_536 });
});

test("rule 36: what is no positive whole number is a RangeError that names it", () => {
  for (const name of ["startLine", "lineCount", "maxBytes"] as const) {
    for (const value of [0, -1, 1.5, NaN, Infinity, 2 ** 53]) {
      assert.throws(() => textPageBounds({ [name]: value }), new RangeError(`Text file ${name} must be a positive integer.`));
    }
    assert.equal(textPageBounds({ [name]: 1 })[name], 1);
  }
});

test("rule 36: a page has six fields", () => {
  const fields = ["content", "endLine", "nextStartLine", "startLine", "truncated", "truncatedBy"];
  assert.deepEqual(Object.keys(cut("a\n")).sort(), fields);
  assert.deepEqual(Object.keys(cut("aa\n", { maxBytes: 1 })).sort(), fields);
});

test("rule 37: a page that is cut after its lines says where to go on", () => {
  assert.deepEqual(cut("one\ntwo\nthree\nfour\n", { startLine: 2, lineCount: 2 }), {
    content: "two\nthree\n",
    startLine: 2,
    endLine: 3,
    nextStartLine: 4,
    truncated: true,
    truncatedBy: "lines",
  });
});

test("rule 37: a page that ends where the file ends is not cut", () => {
  assert.deepEqual(cut("one\ntwo\n", { lineCount: 2 }), page("one\ntwo\n", 1, 2));
  assert.deepEqual(cut("one\ntwo\n", { startLine: 2, lineCount: 1 }), page("two\n", 2, 2));
});

test("rule 37: past the end there is nothing, and in an empty file", () => {
  assert.deepEqual(cut("one\n", { startLine: 2 }), page("", 2, null));
  assert.deepEqual(cut("one\n", { startLine: 9_000 }), page("", 9_000, null));
  assert.deepEqual(cut(""), page("", 1, null));
});

test("rule 37: a last line without an end counts as a line", () => {
  assert.deepEqual(cut("one\ntwo"), page("one\ntwo", 1, 2));
  assert.equal(cut("one\ntwo", { lineCount: 1 }).nextStartLine, 2);
  assert.deepEqual(cut("one\ntwo", { startLine: 2 }), page("two", 2, 2));
});

test("rule 37: carriage returns are kept, and empty lines are lines", () => {
  assert.deepEqual(cut("one\r\n\r\nthree\r\n", { lineCount: 2 }).content, "one\r\n\r\n");
  assert.deepEqual(cut("\n\n\n", { startLine: 3 }), page("\n", 3, 3));
});

test("rule 37: the pages of a file together are the file", () => {
  const text = Array.from({ length: 1_001 }, (_, line) => `line ${line + 1}`).join("\n");
  const pages: SandboxTextFilePage[] = [];
  for (let next: number | null = 1; next !== null; next = pages.at(-1)?.nextStartLine ?? null) {
    pages.push(cut(text, { startLine: next }));
  }
  assert.deepEqual(
    pages.map(({ startLine, endLine }) => [startLine, endLine]),
    [
      [1, 500],
      [501, 1_000],
      [1_001, 1_001],
    ],
  );
  assert.equal(pages.map(({ content }) => content).join(""), text);
});

test("rule 38: a character that does not fit is left out whole, and in the middle of a line there is nowhere to go on", () => {
  assert.deepEqual(cut("abc😀def\nnext\n", { maxBytes: 6 }), {
    content: "abc",
    startLine: 1,
    endLine: 1,
    nextStartLine: null,
    truncated: true,
    truncatedBy: "bytes",
  });
  assert.equal(cut("abc😀def\nnext\n", { maxBytes: 7 }).content, "abc😀");
});

test("rule 38: a cut between two lines says where to go on", () => {
  assert.deepEqual(cut("one\ntwo\nthree\n", { maxBytes: 4 }), {
    content: "one\n",
    startLine: 1,
    endLine: 1,
    nextStartLine: 2,
    truncated: true,
    truncatedBy: "bytes",
  });
  const later = cut("one\ntwo\nthree\n", { startLine: 2, maxBytes: 6 });
  assert.deepEqual([later.content, later.endLine, later.nextStartLine], ["two\nth", 3, null]);
});

test("rule 38: as many bytes as there may be are not cut", () => {
  assert.deepEqual(cut("grüße\n", { maxBytes: 8 }), page("grüße\n", 1, 1));
  assert.equal(cut("grüße\n", { maxBytes: 7 }).truncatedBy, "bytes");
  const text = `${"x".repeat(65_535)}\n`;
  assert.deepEqual(cut(text), page(text, 1, 1));
  assert.equal(cut(`x${text}`).truncatedBy, "bytes");
});

test("rule 38: where not even one character fits, the page is empty and says so", () => {
  assert.deepEqual(cut("😀\n", { maxBytes: 3 }), {
    content: "",
    startLine: 1,
    endLine: null,
    nextStartLine: null,
    truncated: true,
    truncatedBy: "bytes",
  });
});

test("rule 38: a page that is cut after its lines and its bytes is cut by bytes", () => {
  const both = cut("one\ntwo\nthree\n", { lineCount: 2, maxBytes: 4 });
  assert.deepEqual([both.content, both.nextStartLine, both.truncatedBy], ["one\n", 2, "bytes"]);
});

test("a text may begin with a later line of the file", () => {
  const bounds = textPageBounds({ startLine: 8, lineCount: 1 });
  const { content, endLine, nextStartLine } = createTextFilePage("seven\neight\nnine\n", { ...bounds, contentStartLine: 7 });
  assert.deepEqual([content, endLine, nextStartLine], ["eight\n", 8, 9]);
});
