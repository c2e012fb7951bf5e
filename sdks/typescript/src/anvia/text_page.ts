/**
 * A page of a text file (0.6): so many whole lines, and no more than so many bytes of them. The cut is made here, from the text
 * or from the part of it that is at hand; how the text gets here is the session's business.
 */

import type { SandboxTextFilePage, SandboxTextFilePageOptions } from "./types.js";

/** Which page, with nothing left open: positive whole numbers. */
export type TextPageBounds = {
  startLine: number;
  lineCount: number;
  maxBytes: number;
};

/** A text, and which page of it. */
export type CreateTextFilePageOptions = TextPageBounds & {
  /** The line of the file with which the text begins; by default 1. No greater than `startLine`. */
  contentStartLine?: number | undefined;
};

const DEFAULTS: TextPageBounds = { startLine: 1, lineCount: 500, maxBytes: 65_536 };

/**
 * Fills in what is left open: 500 lines from line 1, 65 536 bytes at the most.
 *
 * @throws {RangeError} where one is no positive whole number.
 */
export function textPageBounds(options: SandboxTextFilePageOptions = {}): TextPageBounds {
  return { startLine: bound(options, "startLine"), lineCount: bound(options, "lineCount"), maxBytes: bound(options, "maxBytes") };
}

function bound(options: SandboxTextFilePageOptions, name: keyof TextPageBounds): number {
  const value = options[name] ?? DEFAULTS[name];
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new RangeError(`Text file ${name} must be a positive integer.`);
}

/**
 * Cuts a page out of a text. Lines end with `\n`, which belongs to them, as a `\r` before it does; a last line may have none.
 * What has more than `maxBytes` bytes of UTF-8 is cut before the first character that does not fit.
 */
export function createTextFilePage(text: string, options: CreateTextFilePageOptions): SandboxTextFilePage {
  const { startLine, lineCount, maxBytes, contentStartLine = 1 } = options;
  const start = afterLines(text, 0, startLine - contentStartLine);
  const end = afterLines(text, start, lineCount);
  const lines = text.slice(start, end);
  const fitting = fittingInto(maxBytes, lines);
  if (fitting.length < lines.length) return cutByBytes(fitting, startLine);
  const hasMore = end < text.length;
  return {
    content: lines,
    startLine,
    endLine: lastLine(lines, startLine),
    nextStartLine: hasMore ? startLine + lineCount : null,
    truncated: hasMore,
    truncatedBy: hasMore ? "lines" : null,
  };
}

/** Goes on with the next line where the cut fell between two; in the middle of one there is nowhere to go on. */
function cutByBytes(content: string, startLine: number): SandboxTextFilePage {
  return {
    content,
    startLine,
    endLine: lastLine(content, startLine),
    nextStartLine: content.endsWith("\n") ? startLine + lineBreaks(content) : null,
    truncated: true,
    truncatedBy: "bytes",
  };
}

/** The position after so many lines, or the end. */
function afterLines(text: string, from: number, lines: number): number {
  let at = from;
  for (let line = 0; line < lines && at < text.length; line += 1) {
    const lineBreak = text.indexOf("\n", at);
    if (lineBreak === -1) return text.length;
    at = lineBreak + 1;
  }
  return at;
}

/** As much of a text as fits, in whole characters. */
function fittingInto(maxBytes: number, text: string): string {
  // A UTF-16 unit is at most three bytes of UTF-8.
  if (text.length * 3 <= maxBytes) return text;
  const room = new Uint8Array(Math.min(maxBytes, text.length * 3));
  return text.slice(0, new TextEncoder().encodeInto(text, room).read);
}

function lastLine(content: string, startLine: number): number | null {
  if (content.length === 0) return null;
  return startLine + lineBreaks(content) - (content.endsWith("\n") ? 1 : 0);
}

function lineBreaks(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
