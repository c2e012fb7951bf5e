/** Terminals in tabs. They live on the server: a page that is loaded again finds them as they were. */

import { useEffect, useRef, useState } from "preact/hooks";
import { type Options, ask, inThisLife, json, ofSandbox } from "./api.js";
import { Confirm, Empty, Failure, Loading } from "./parts.js";
import type { Attached } from "./terminal.js";
import type { Sandbox, Terminal } from "./types.js";

export function Terminals({ sandbox }: { sandbox: Sandbox }) {
  const [all, set] = useState<Terminal[]>();
  const [active, activate] = useState<string>();
  const [failure, fail] = useState<unknown>();
  const [ending, end] = useState<string>();
  const [ended, setEnded] = useState(new Set<string>());
  const chosen = `eyot.terminal.${sandbox.id}`;
  const choose = (id: string | undefined) => {
    activate(id);
    if (id) sessionStorage.setItem(chosen, id);
  };
  const open = async (options: Options = {}) => {
    fail(undefined);
    try {
      const made = await json<Terminal>(ofSandbox(sandbox.id, "/terminals"), { ...options, method: "POST", json: { size: { rows: 24, cols: 80 } } });
      set((now) => [...(now ?? []), made]);
      choose(made.id);
    } catch (error) {
      fail(error);
    }
  };
  const load = async () => {
    fail(undefined);
    try {
      const { terminals } = await json<{ terminals: Terminal[] }>(ofSandbox(sandbox.id, "/terminals"));
      set(terminals);
      const before = sessionStorage.getItem(chosen);
      choose((terminals.find((one) => one.id === before) ?? terminals[0])?.id);
      if (terminals.length === 0) await open(inThisLife(sandbox));
    } catch (error) {
      fail(error);
    }
  };
  useEffect(() => {
    void load();
  }, [sandbox.id]);
  const close = async (id: string) => {
    await ask(ofSandbox(sandbox.id, `/terminals/${id}`), { method: "DELETE" }).catch(() => {});
    set((now) => {
      const left = (now ?? []).filter((one) => one.id !== id);
      choose(left.at(-1)?.id);
      return left;
    });
  };

  const names = new Map(all?.map((one, index) => [one.id, one.command ?? `shell ${index + 1}`]));
  const step = (by: number) => {
    const at = all?.findIndex((one) => one.id === active) ?? -1;
    const next = all?.at((at + by) % (all.length || 1));
    if (next) choose(next.id);
    document.getElementById(`tab-${next?.id}`)?.focus();
  };
  /** A tab that is clicked hands the keyboard to its terminal; one that an arrow key chose keeps it. */
  const enter = (id: string, tab: HTMLElement) => {
    tab.blur();
    if (id === active) document.querySelector<HTMLElement>(`#screen-${id} textarea`)?.focus();
    else choose(id);
  };
  const keys = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    step(by);
  };
  return (
    <div class="terminals">
      <div class="terminal-tabs">
        {all && all.length > 0 ? (
          <div class="tablist" role="tablist" aria-label="Terminals" onKeyDown={keys}>
            {all.map(({ id }) => (
              <button key={id} id={`tab-${id}`} type="button" role="tab" aria-selected={id === active} aria-controls={`screen-${id}`} tabIndex={id === active ? 0 : -1} onClick={(event) => enter(id, event.currentTarget)}>{names.get(id)}</button>
            ))}
          </div>
        ) : null}
        <button type="button" class="plain" onClick={() => void open()} aria-label="New terminal">+ New</button>
        {active && !ended.has(active) ? <button type="button" class="plain danger" onClick={() => end(active)} aria-label={`End ${names.get(active)}`}>End</button> : null}
      </div>
      <Failure error={failure} again={() => void load()} />
      {!all && !failure ? <Loading what="terminals" /> : null}
      {all?.length === 0 && !failure ? <Empty title="No terminal is open."><button type="button" class="primary" onClick={() => void open()}>New terminal</button></Empty> : null}
      {all?.map((one) => (
        <Screen key={one.id} sandbox={sandbox} terminal={one} isActive={one.id === active} close={() => void close(one.id)}
          over={() => setEnded((now) => new Set(now).add(one.id))} />
      ))}
      <p class="hint no-touch">Press Control, Shift and Escape together to leave the terminal. A terminal that nobody has open ends after 10 minutes.</p>
      {ending ? (
        <Confirm title={`End ${names.get(ending)}?`} verb="End" close={() => end(undefined)} act={() => close(ending)}>
          <p>The terminal closes, and everything that runs in it ends.</p>
        </Confirm>
      ) : null}
    </div>
  );
}

/** One terminal's screen. The emulator is loaded when the first one is opened. */
function Screen({ sandbox, terminal, isActive, close, over: noteEnd }: {
  sandbox: Sandbox;
  terminal: Terminal;
  isActive: boolean;
  close: () => void;
  over: () => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const attached = useRef<Attached | undefined>(undefined);
  const [state, say] = useState("connecting…");
  const [isOver, over] = useState(false);
  useEffect(() => {
    let isGone = false;
    void import("./terminal.js").then(({ attach }) => {
      if (isGone || !place.current) return;
      attached.current = attach(place.current, ofSandbox(sandbox.id, `/terminals/${terminal.id}/socket`), (now, isEnd) => {
        say(now);
        over(isEnd);
        if (isEnd) noteEnd();
      });
      if (isActive) attached.current.show();
    }, (error: unknown) => say(String(error)));
    return () => {
      isGone = true;
      attached.current?.leave();
    };
  }, []);
  useEffect(() => {
    if (isActive) attached.current?.show();
  }, [isActive]);
  return (
    <div class="screen" hidden={!isActive} role="tabpanel" id={`screen-${terminal.id}`} aria-labelledby={`tab-${terminal.id}`}>
      <div class="xterm-place" ref={place} data-testid="terminal" />
      <KeyBar attached={attached} />
      {state ? (
        <p class="screen-state" role="status">
          {state} {isOver ? <button type="button" class="plain" onClick={close}>Close the tab</button> : null}
          {!isOver && state.startsWith("taken over") ? <button type="button" class="plain" onClick={() => attached.current?.again()}>Take it back</button> : null}
        </p>
      ) : null}
    </div>
  );
}

/** Keys that a phone's keyboard lacks. They take no focus, so its keyboard stays open. */
const KEYS = [["Esc", "Esc"], ["Tab", "Tab"], ["Ctrl", "Ctrl"], ["|", "Pipe"], ["/", "Slash"], ["-", "Hyphen"], ["~", "Tilde"], ["_", "Underscore"], ["←", "Left"], ["↑", "Up"], ["↓", "Down"], ["→", "Right"]] as const;

function KeyBar({ attached }: { attached: { current: Attached | undefined } }) {
  const [isHeld, hold] = useState(false);
  const press = (key: string) => {
    if (key !== "Ctrl") return attached.current?.press(key);
    attached.current?.control(!isHeld, () => hold(false));
    hold(!isHeld);
  };
  return (
    <div class="key-bar" role="group" aria-label="Keys">
      {KEYS.map(([key, name]) => (
        <button key={key} type="button" aria-label={name} aria-pressed={key === "Ctrl" ? isHeld : undefined}
          onPointerDown={(event) => event.preventDefault()} onClick={() => press(key)}>{key}</button>
      ))}
    </div>
  );
}
