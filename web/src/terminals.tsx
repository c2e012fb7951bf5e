/** Terminals in tabs. They live on the server: a page that is loaded again finds them as they were. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, json, ofSandbox } from "./api.js";
import { Empty, Failure, Loading } from "./parts.js";
import type { Attached } from "./terminal.js";
import type { Sandbox, Terminal } from "./types.js";

export function Terminals({ sandbox }: { sandbox: Sandbox }) {
  const [all, set] = useState<Terminal[]>();
  const [active, activate] = useState<string>();
  const [failure, fail] = useState<unknown>();
  const chosen = `eyot.terminal.${sandbox.id}`;
  const choose = (id: string | undefined) => {
    activate(id);
    if (id) sessionStorage.setItem(chosen, id);
  };
  const open = async () => {
    fail(undefined);
    try {
      const made = await json<Terminal>(ofSandbox(sandbox.id, "/terminals"), { method: "POST", json: { size: { rows: 24, cols: 80 } } });
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
      if (terminals.length === 0) await open();
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

  return (
    <div class="terminals">
      <div class="terminal-tabs" role="tablist" aria-label="Terminals">
        {all?.map((one, index) => (
          <span class={`terminal-tab ${one.id === active ? "active" : ""}`} key={one.id} role="presentation">
            <button type="button" role="tab" aria-selected={one.id === active} onClick={() => choose(one.id)}>{one.command ?? `shell ${index + 1}`}</button>
            <button type="button" class="close" aria-label={`End ${one.command ?? `shell ${index + 1}`}`} onClick={() => void close(one.id)}>×</button>
          </span>
        ))}
        <button type="button" class="plain" onClick={() => void open()} aria-label="New terminal">+ New</button>
      </div>
      <Failure error={failure} again={() => void load()} />
      {!all && !failure ? <Loading what="terminals" /> : null}
      {all?.length === 0 && !failure ? <Empty title="No terminal is open."><button type="button" class="primary" onClick={() => void open()}>New terminal</button></Empty> : null}
      {all?.map((one) => <Screen key={one.id} sandbox={sandbox} terminal={one} isActive={one.id === active} close={() => void close(one.id)} />)}
      <p class="hint">Control, Shift and Escape leave the terminal for the keyboard. One that nobody has open ends after 10 minutes.</p>
    </div>
  );
}

/** One terminal's screen. The emulator is loaded when the first one is opened. */
function Screen({ sandbox, terminal, isActive, close }: { sandbox: Sandbox; terminal: Terminal; isActive: boolean; close: () => void }) {
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
    <div class="screen" hidden={!isActive} role="tabpanel" aria-label="Terminal">
      <div class="xterm-place" ref={place} data-testid="terminal" />
      {state ? (
        <p class="screen-state" role="status">
          {state} {isOver ? <button type="button" class="plain" onClick={close}>Close the tab</button> : null}
          {!isOver && state.startsWith("taken over") ? <button type="button" class="plain" onClick={() => attached.current?.again()}>Take it back</button> : null}
        </p>
      ) : null}
    </div>
  );
}
