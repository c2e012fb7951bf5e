/** Signing in by an API key. */

import { useState } from "preact/hooks";
import { Refused, json, keepProof } from "./api.js";
import { Failure, Field, useTitle } from "./parts.js";
import type { Session } from "./types.js";

export function Login({ done }: { done: (session: Session) => void }) {
  useTitle("Sign in");
  const [key, setKey] = useState("");
  const [isBusy, busy] = useState(false);
  const [error, fail] = useState<unknown>();
  const signIn = async (event: Event) => {
    event.preventDefault();
    busy(true);
    fail(undefined);
    try {
      const session = await json<Session>("/v1/session", { method: "POST", json: { key } });
      keepProof(session.proof ?? null);
      done(session);
    } catch (failure) {
      // The hint is there already.
      fail(failure instanceof Refused && failure.problem.status === 401 ? new Error(failure.message) : failure);
      busy(false);
    }
  };
  return (
    <main class="alone">
      <h1><img src="/assets/icon.svg" alt="" width="32" height="32" /> Eyot</h1>
      <form class="card" onSubmit={signIn}>
        <Field label="API key" hint="Make one on the server's host: eyot keys create NAME">
          {(id) => (
            <input id={id} type="password" name="key" required autocomplete="current-password" spellcheck={false} autofocus
              placeholder="eyot_…" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
          )}
        </Field>
        <Failure error={error} />
        <div class="actions">
          <button type="submit" class="primary" disabled={isBusy}>{isBusy ? "Signing in…" : "Sign in"}</button>
        </div>
      </form>
    </main>
  );
}
