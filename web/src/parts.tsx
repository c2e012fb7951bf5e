/** What views are made of: how they say that they wait, that there is nothing, that something failed, and how they ask back. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Refused, sentence } from "./api.js";
import { clock, fullTime } from "./format.js";

/** Names the view in the browser's tab and history. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} – Eyot` : "Eyot";
  }, [title]);
}

/** When something was: its time of day, the date where it is not today's, and all of it in a tooltip. */
export function Time({ ms }: { ms: number }) {
  return <time dateTime={new Date(ms).toISOString()} title={fullTime(ms)}>{clock(ms)}</time>;
}

export function Loading({ what }: { what: string }) {
  return <p class="quiet loading" role="status">Loading {what}…</p>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Why something failed, what helps, and a way to try again. */
export function Failure({ error, again }: { error: unknown; again?: () => void }) {
  if (!error) return null;
  const hint = error instanceof Refused ? error.problem.hint : undefined;
  return (
    <div class="failure" role="alert">
      <p>{sentence(error)}</p>
      {hint ? <p class="quiet">{hint}</p> : null}
      {again ? <button type="button" onClick={again}>Try again</button> : null}
    </div>
  );
}

/** A window over the page. Escape closes it, a click beside it too unless something was typed, and the focus goes back to where it was. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const label = useId();
  const isTyped = useRef(false);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={label} onCancel={(event) => { event.preventDefault(); close(); }}
      onInput={() => (isTyped.current = true)} onClick={(event) => event.target === dialog.current && !isTyped.current && close()}>
      <div class="dialog">
        <h2 id={label}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** What a dialog does when it is confirmed: it closes when that is done, and shows what that fails with. */
export function useAct(act: () => Promise<void>, close: () => void) {
  const [isBusy, busy] = useState(false);
  const [error, fail] = useState<unknown>();
  const done = async (event: Event) => {
    event.preventDefault();
    busy(true);
    try {
      await act();
      close();
    } catch (failure) {
      fail(failure);
      busy(false);
    }
  };
  return { isBusy, error, done };
}

/** Asks whether something is really to be done. */
export function Confirm({ title, children, verb, act, close, isSafe = false }: {
  title: string;
  children: ComponentChildren;
  verb: string;
  act: () => Promise<void>;
  close: () => void;
  /** Nothing is lost by it. */
  isSafe?: boolean;
}) {
  const { isBusy, error, done } = useAct(act, close);
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={done}>
        {children}
        <Failure error={error} />
        <div class="actions">
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class={isSafe ? "primary" : "danger"} disabled={isBusy}>{verb}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** Asks for one text. */
export function Ask({ title, label, value, verb, act, close }: {
  title: string;
  label: string;
  value: string;
  verb: string;
  act: (value: string) => Promise<void>;
  close: () => void;
}) {
  const [text, setText] = useState(value);
  const { isBusy, error, done } = useAct(() => act(text), close);
  const id = useId();
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={done}>
        <label for={id}>{label}</label>
        <input id={id} value={text} required autocomplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
        <Failure error={error} />
        <div class="actions">
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class="primary" disabled={isBusy}>{verb}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** A labelled field of a form. */
export function Field({ label, hint, children }: { label: string; hint?: string; children: (id: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint ? <p class="hint">{hint}</p> : null}
    </div>
  );
}
