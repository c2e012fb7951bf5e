/** Text that may be long: its beginning is shown, and all of it when somebody asks. It is always shown as text. */

import { useState } from "preact/hooks";
import { count } from "./format.js";

interface Fold {
  lines: number;
  chars: number;
}

/** How much of an output is shown. */
export const OUTPUT_FOLD: Fold = { lines: 16, chars: 4000 };
/** How much of what somebody wrote for people is shown. */
export const PROSE_FOLD: Fold = { lines: 120, chars: 20_000 };

/** Returns the beginning of a text that is shown, or `undefined` if all of it is. */
export function beginning(text: string, { lines, chars }: Fold): string | undefined {
  let end = -1;
  for (let line = 0; line < lines; line += 1) {
    end = text.indexOf("\n", end + 1);
    if (end < 0 || end > chars) break;
  }
  if (end < 0) end = text.length;
  if (end > chars) end = chars;
  // A last line end alone is not worth a button.
  return end >= text.length - 1 ? undefined : text.slice(0, end);
}

/** Says how much a text has. */
export function sizeOf(text: string): string {
  let lines = text.endsWith("\n") || text === "" ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines === 1 ? `${count(text.length)} characters` : `${count(lines)} lines`;
}

export function LongText({ text, fold = OUTPUT_FOLD, kind, label }: { text: string; fold?: Fold; kind: "prose" | "output"; label?: string }) {
  const [isWhole, show] = useState(false);
  const first = isWhole ? undefined : beginning(text, fold);
  const isLong = isWhole || first !== undefined;
  return (
    <>
      <div class={kind} role={label ? "group" : undefined} aria-label={label}>{first ?? text}</div>
      {isLong ? (
        <button type="button" class="plain more" aria-expanded={isWhole} onClick={() => show(!isWhole)}>
          {isWhole ? "Show less" : `Show all (${sizeOf(text)})`}
        </button>
      ) : null}
    </>
  );
}
