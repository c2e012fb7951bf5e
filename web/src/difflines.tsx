/** The lines of a change: put in, taken out and left. */

export interface DiffLine {
  sign: "+" | "-" | " ";
  text: string;
  /** It says something about the lines, and is none. */
  isNote?: boolean;
}

const SIGN_WORDS = { "+": "put in: ", "-": "taken out: ", " ": "" } as const;
const SIGN_CLASSES = { "+": "in", "-": "out", " ": "same" } as const;

export function Lines({ lines }: { lines: DiffLine[] }) {
  return <>{lines.map(({ sign, text, isNote }, at) => <div key={at} class={`diff-line ${isNote ? "quiet" : SIGN_CLASSES[sign]}`}><span class="sign" aria-hidden="true">{sign}</span><span class="hidden">{SIGN_WORDS[sign]}</span><span>{text}</span></div>)}</>;
}
