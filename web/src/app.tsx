/** The page as a whole: who is signed in, and which view the address names. */

import { useEffect, useRef, useState } from "preact/hooks";
import { type RunFilters, filtersOf } from "./agents.js";
import { Refused, ask, json, keepProof, sentence, signedOut } from "./api.js";
import { Lost, drafts, useDrafts } from "./drafts.js";
import { AllEvents } from "./events.js";
import { Images } from "./images.js";
import { feed } from "./live.js";
import { SandboxList } from "./list.js";
import { Login } from "./login.js";
import { Confirm, Failure, Loading } from "./parts.js";
import { RunView } from "./run.js";
import { RunList } from "./runs.js";
import { SandboxView, type View, VIEWS } from "./sandbox.js";
import type { Session } from "./types.js";

/** Where somebody is: `#/`, `#/images`, `#/events`, `#/sandboxes/ID/VIEW`, `#/agents?FILTERS`, `#/runs/ID`. */
type Place = { at: "list" } | { at: "images" } | { at: "events" } | { at: "sandbox"; id: string; view: View } | { at: "agents"; filters: RunFilters } | { at: "run"; id: string };

function placeOf(hash: string): Place {
  const [path = "", filters = ""] = hash.replace(/^#\/?/, "").split("?");
  const [first, id, view] = path.split("/").map(decodeURIComponent);
  if (first === "events" || first === "images") return { at: first };
  if (first === "agents") return { at: first, filters: filtersOf(filters) };
  if (first === "runs" && id) return { at: "run", id };
  if (first === "sandboxes" && id) {
    return { at: "sandbox", id, view: VIEWS.find((known) => known === view) ?? "files" };
  }
  return { at: "list" };
}

/** The most that a server may take to end a session, in milliseconds. */
const SIGN_OUT_MS = 15_000;

/** Ends the session on the server, and before that what this page follows by it: the server would cut it off. */
async function signOut(): Promise<void> {
  feed.end();
  try {
    await ask("/v1/session", { method: "DELETE", signal: AbortSignal.timeout(SIGN_OUT_MS) });
  } catch (error) {
    const detail = `You may still be signed in: ${sentence(error)}`;
    throw error instanceof Refused ? new Refused({ ...error.problem, detail }) : new Error(detail);
  }
  keepProof(null);
}

function usePlace(): Place {
  const [hash, set] = useState(location.hash);
  useEffect(() => {
    const changed = () => set(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return placeOf(hash);
}

export function App() {
  const [session, set] = useState<Session>();
  const [failure, fail] = useState<unknown>();
  const [isLeaving, leave] = useState(false);
  const look = () => {
    fail(undefined);
    set(undefined);
    json<Session>("/v1/session").then(set, fail);
  };
  useEffect(() => {
    look();
    // What the server says is asked again: it may need no key any more.
    const out = () => {
      leave(false);
      set((now) => (now?.signed_in ? { ...now, signed_in: false } : now));
    };
    signedOut.addEventListener("out", out);
    return () => signedOut.removeEventListener("out", out);
  }, []);
  useEffect(() => {
    if (session?.signed_in) drafts.belongTo(session.name);
  }, [session]);
  const isIn = session?.signed_in === true && !isLeaving;
  useEffect(() => {
    if (!isIn) return;
    feed.start();
    return () => feed.end();
  }, [isIn]);

  if (failure) return <main class="alone"><h1>Eyot</h1><Failure error={failure} again={look} /></main>;
  if (!session) return <main class="alone"><h1>Eyot</h1><Loading what="the page" /></main>;
  const left = () => {
    leave(false);
    drafts.discard(drafts.of());
    set({ ...session, signed_in: false });
  };
  if (isLeaving) return <Leaving done={left} stay={() => leave(false)} />;
  if (!isIn) return <Login done={set} />;
  return <Inside session={session} out={() => leave(true)} />;
}

/** Signs out once the views are gone, and with them whatever they follow. */
function Leaving({ done, stay }: { done: () => void; stay: () => void }) {
  const [failure, fail] = useState<unknown>();
  const out = () => {
    fail(undefined);
    signOut().then(done, fail);
  };
  useEffect(out, []);
  return (
    <main class="alone">
      <h1>Eyot</h1>
      {failure ? <Failure error={failure} again={out} /> : <p class="quiet loading" role="status">Signing out…</p>}
      {failure ? <div class="actions"><button type="button" onClick={stay}>Stay signed in</button></div> : null}
    </main>
  );
}

function Inside({ session, out }: { session: Session; out: () => void }) {
  const place = usePlace();
  const unsaved = useDrafts();
  // Who goes elsewhere by the keyboard goes on from there. A view of the same sandbox leaves the focus at its tab.
  const where = place.at === "sandbox" || place.at === "run" ? place.id : place.at;
  const before = useRef(where);
  useEffect(() => {
    if (before.current === where) return;
    before.current = where;
    document.getElementById("content")?.focus();
    scrollTo(0, 0);
  }, [where]);
  const [isAsked, ask] = useState(false);
  return (
    <>
      {isAsked ? (
        <Confirm title="Sign out?" verb="Sign out" close={() => ask(false)} act={async () => out()}>
          <Lost lost={unsaved} />
        </Confirm>
      ) : null}
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>To the content</a>
      <header class="top">
        <a class="brand" href="#/"><img src="/assets/icon.svg" alt="" width="24" height="24" /> Eyot</a>
        <nav aria-label="Page">
          <a href="#/" aria-current={place.at === "list" || place.at === "sandbox" ? "page" : undefined}>Sandboxes</a>
          <a href="#/agents" aria-current={place.at === "agents" || place.at === "run" ? "page" : undefined}>Agents</a>
          <a href="#/images" aria-current={place.at === "images" ? "page" : undefined}>Images</a>
          <a href="#/events" aria-current={place.at === "events" ? "page" : undefined}>Events</a>
        </nav>
        {unsaved[0] ? <a class="not-saved" href={`#/sandboxes/${unsaved[0].sandbox}/files`}>{unsaved.length}<span class="words"> not saved</span></a> : null}
        <div class="who">
          {session.needs_key ? (
            <>
              <span class="quiet" title="The key that you signed in with">{session.name}</span>
              <button type="button" onClick={() => (unsaved.length > 0 ? ask(true) : out())}>Sign out</button>
            </>
          ) : (
            <span class="quiet" title="The server was started with --no-keys">no key needed</span>
          )}
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {place.at === "list" ? <SandboxList pools={session.pools} /> : null}
        {place.at === "images" ? <Images /> : null}
        {place.at === "events" ? <AllEvents pools={session.pools} /> : null}
        {place.at === "agents" ? <RunList session={session} filters={place.filters} /> : null}
        {place.at === "run" ? <RunView key={place.id} id={place.id} session={session} /> : null}
        {place.at === "sandbox" ? <SandboxView key={place.id} id={place.id} view={place.view} /> : null}
      </main>
      <footer class="foot quiet"><a href="/docs/">The API</a> <a href="/assets/licenses.md">Licences</a></footer>
    </>
  );
}
