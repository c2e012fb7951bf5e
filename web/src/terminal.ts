/** xterm.js on one of the server's terminals. Loaded when it is needed. */

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { socket } from "./api.js";
import { allowStyles } from "./styles.js";

/** What a terminal's place can be asked for. */
export interface Attached {
  /** It is looked at now, and has the keyboard, unless a tab has it. */
  show(): void;
  /** Types what a key sends, as if it were pressed. */
  press(key: string): void;
  /** Holds the control key down for the next letter; `used` hears when it was typed. */
  control(isHeld: boolean, used: () => void): void;
  /** Connects again. */
  again(): void;
  /** Nobody looks any more; it goes on. */
  leave(): void;
}

/** The contrast that a text has at least, as WCAG 2 asks for it. */
const MIN_CONTRAST = 4.5;

/** The most characters that are kept while a terminal does not listen yet. */
const MAX_EARLY = 4096;

const DARK = { background: "#0d1716", foreground: "#d6e4e0", cursor: "#7fd6c6", selectionBackground: "#2c5a53" };
const LIGHT = {
  background: "#fbfdfc", foreground: "#16302c", cursor: "#12635b", selectionBackground: "#b9e2da",
  yellow: "#8a6100", brightYellow: "#8a6100", white: "#5b6b68", brightWhite: "#16302c", green: "#0a7a33", brightGreen: "#0a7a33", cyan: "#0b6f80", brightCyan: "#0b6f80",
};

/** What keys send that a phone's keyboard lacks. */
const SENT: Record<string, string> = { Esc: "\x1b", Tab: "\t", "↑": "\x1b[A", "↓": "\x1b[B", "→": "\x1b[C", "←": "\x1b[D" };

interface End {
  end?: { exit_code: number };
  problem?: { detail: string };
  refused?: { detail: string };
}

/** Shows a terminal in a place of the page; `say` hears how it is, with an empty text when all is well. */
export function attach(place: HTMLElement, path: string, say: (state: string, isOver: boolean) => void): Attached {
  allowStyles();
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => (scheme.matches ? DARK : LIGHT);
  const terminal = new Terminal({
    fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace", fontSize: 13, scrollback: 5000, cursorBlink: false, screenReaderMode: false, theme: theme(),
    // Programs choose colours for a terminal of their own.
    minimumContrastRatio: MIN_CONTRAST,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  const repaint = () => (terminal.options.theme = theme());
  scheme.addEventListener("change", repaint);

  let line: WebSocket | undefined;
  let isOver = false;
  let isLeft = false;
  /** While what was there before is told again: programs that asked the terminal something then have their answers. */
  let isPast = true;
  let pause = 500;
  /** The text that was typed before the terminal listened for the first time; later nothing is kept. */
  let early: string | undefined = "";
  const encoder = new TextEncoder();

  const type = (data: string) => {
    if (!isPast && line?.readyState === WebSocket.OPEN) line.send(encoder.encode(data));
    // An escape is what the terminal answers by itself, or a key; what follows a key that is lost means something else.
    else if (data.startsWith("\x1b")) early = undefined;
    else if (early !== undefined) early = (early + data).slice(0, MAX_EARLY);
  };
  const begin = () => {
    isPast = false;
    if (early) type(early);
    early = undefined;
  };
  let whenUsed: (() => void) | undefined;
  terminal.onData((data) => {
    const letter = whenUsed && /^[@-_a-z]$/.test(data);
    type(letter ? String.fromCharCode(data.charCodeAt(0) & 0x1f) : data);
    if (letter) whenUsed?.();
  });
  terminal.onBinary(type);
  terminal.onResize(({ cols, rows }) => {
    if (line?.readyState === WebSocket.OPEN) line.send(JSON.stringify({ resize: { cols, rows } }));
  });
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== "Escape" || !event.ctrlKey || !event.shiftKey) return true;
    terminal.blur();
    document.querySelector<HTMLElement>(".terminal-tabs [role=tab][aria-selected=true]")?.focus();
    return false;
  });

  const connect = () => {
    isPast = true;
    const opened = socket(path);
    opened.binaryType = "arraybuffer";
    line = opened;
    opened.onopen = () => {
      pause = 500;
      terminal.reset();
      say("", false);
      opened.send(JSON.stringify({ resize: { cols: terminal.cols, rows: terminal.rows } }));
    };
    opened.onmessage = ({ data }) => {
      if (typeof data === "string") hear(JSON.parse(data) as End | "started");
      else terminal.write(new Uint8Array(data as ArrayBuffer));
    };
    opened.onclose = ({ code }) => {
      early = undefined;
      if (isOver || isLeft || line !== opened) return;
      if (code === 1001) return say("taken over by another page", false);
      say("the connection broke; connecting again…", false);
      setTimeout(() => isLeft || line !== opened || connect(), pause);
      pause = Math.min(pause * 2, 10_000);
    };
  };
  const hear = (event: End | "started") => {
    // Once what came before is drawn.
    if (event === "started") return terminal.write("", begin);
    if (event.end) {
      isOver = true;
      say(`ended with exit code ${event.end.exit_code}`, true);
    } else if (event.problem) {
      isOver = true;
      say(event.problem.detail, true);
    } else if (event.refused) {
      say(event.refused.detail, false);
    }
  };
  const resized = new ResizeObserver(() => {
    if (place.offsetParent) fit.fit();
  });
  resized.observe(place);
  connect();

  return {
    show: () => {
      fit.fit();
      if (!document.activeElement?.matches("[role=tab]")) terminal.focus();
    },
    press: (key) => {
      const code = SENT[key] ?? key;
      const isArrow = /^\x1b\[[A-D]$/.test(code);
      type(isArrow && terminal.modes.applicationCursorKeysMode ? code.replace("[", "O") : code);
      terminal.focus();
    },
    control: (isHeld, used) => {
      whenUsed = isHeld ? () => {
        whenUsed = undefined;
        used();
      } : undefined;
      terminal.focus();
    },
    again: () => {
      line?.close();
      connect();
      terminal.focus();
    },
    leave: () => {
      isLeft = true;
      resized.disconnect();
      scheme.removeEventListener("change", repaint);
      line?.close();
      terminal.dispose();
    },
  };
}
