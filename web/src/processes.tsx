/** What runs: the started processes with their logs, and everything else. */

import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { ask, events, inThisLife, json, ofSandbox, query, sentence } from "./api.js";
import { outcome } from "./events.js";
import { bytes, plain, took } from "./format.js";
import { useWhileVisible } from "./live.js";
import { Confirm, Empty, Failure, Field, Loading, Time } from "./parts.js";
import type { LiveProcess, Process, Sandbox } from "./types.js";

/** How much of a log is held, in characters. */
const KEPT = 512 * 1024;

/** The signal that asks a process to end. */
const TERM = 15;

/** A process, and how somebody wants it to end. */
interface Ending {
  process: Process;
  verb: "End" | "Kill";
}

export function Processes({ sandbox }: { sandbox: Sandbox }) {
  const [started, setStarted] = useState<Process[]>();
  const [live, setLive] = useState<LiveProcess[]>();
  const [failure, fail] = useState<unknown>();
  const [chosen, choose] = useState<string>();
  const [command, setCommand] = useState("");
  const [error, say] = useState<unknown>();
  const [ending, end] = useState<Ending>();
  const load = async (signal?: AbortSignal) => {
    try {
      const { processes } = await json<{ processes: Process[] }>(ofSandbox(sandbox.id, "/processes"), { ...inThisLife(sandbox), signal });
      setStarted(processes);
      const { processes: all } = await json<{ processes: LiveProcess[] }>(ofSandbox(sandbox.id, "/live"), { ...inThisLife(sandbox), signal });
      setLive(all);
      fail(undefined);
    } catch (problem) {
      if (!signal?.aborted) fail(problem);
    }
  };
  useWhileVisible(2000, load, [sandbox.life]);
  const start = async (event: Event) => {
    event.preventDefault();
    say(undefined);
    try {
      const made = await json<Process>(ofSandbox(sandbox.id, "/processes"), { method: "POST", json: { command } });
      setCommand("");
      choose(made.id);
      await load();
    } catch (problem) {
      say(problem);
    }
  };
  const signal = async ({ process, verb }: Ending) => {
    await ask(ofSandbox(sandbox.id, `/processes/${process.id}/signal`), { method: "POST", json: { signal: verb === "End" ? TERM : null } });
    await load();
  };
  return (
    <div class="processes">
      <form class="inline-form" onSubmit={start}>
        <Field label="Start a process that outlives the page">
          {(id) => <input id={id} required value={command} placeholder="python3 -m http.server 8000" spellcheck={false} autocomplete="off" onInput={(event) => setCommand(event.currentTarget.value)} />}
        </Field>
        <button type="submit" class="primary">Start</button>
      </form>
      <Failure error={error} />
      <Failure error={failure} again={() => void load()} />
      {!started && !failure ? <Loading what="processes" /> : null}
      {started?.length === 0 ? <Empty title="No process was started."><p>Servers and long work are started here, or by the API; commands in a terminal are below.</p></Empty> : null}
      {started && started.length > 0 ? (
        <table>
          <caption class="hidden">Started processes</caption>
          <thead><tr><th scope="col">Process</th><th scope="col">State</th><th scope="col">Started</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
          <tbody>
            {[...started].reverse().map((process) => (
              <tr key={process.id} class={process.id === chosen ? "chosen" : ""}>
                <th scope="row"><code class="command" title={process.command}>{process.command}</code></th>
                <td data-label="State">{process.status === "running" ? <span class="state running">running</span> : <span class="state">{outcome(process.status.ended)}</span>}</td>
                <td data-label="Started" class="figure quiet"><Time ms={process.started_ms} />{process.ended_ms ? `, for ${took(process.ended_ms - process.started_ms)}` : ""}</td>
                <td class="row-actions">
                  <button type="button" class="plain" aria-expanded={process.id === chosen} onClick={() => choose(process.id === chosen ? undefined : process.id)}>Log</button>
                  {process.status === "running" ? (
                    <>
                      <button type="button" class="plain" onClick={() => end({ process, verb: "End" })} aria-label={`End ${process.command}`}>End</button>
                      <button type="button" class="plain danger" onClick={() => end({ process, verb: "Kill" })} aria-label={`Kill ${process.command}`}>Kill</button>
                    </>
                  ) : null}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {ending ? (
        <Confirm title={`${ending.verb} the process?`} verb={ending.verb} close={() => end(undefined)} act={() => signal(ending)}>
          <p><code>{ending.process.command}</code> {ending.verb === "End" ? "is asked to end (SIGTERM)." : "ends at once, with every process it has started, and can't tidy up."}</p>
        </Confirm>
      ) : null}
      {chosen ? <Log key={chosen} sandbox={sandbox} process={chosen} /> : null}
      {live && live.length > 0 ? (
        <details open={started?.length === 0}>
          <summary>Everything that runs <span class="count">{live.length}</span></summary>
          <table>
            <thead><tr><th scope="col">Command</th><th scope="col">Pid</th><th scope="col">User</th><th scope="col">Memory</th><th scope="col">CPU time</th></tr></thead>
            <tbody>
              {live.map((one) => (
                <tr key={one.pid}>
                  <th scope="row"><code class="command" title={one.command}>{one.command}</code></th>
                  <td data-label="Pid" class="figure">{one.pid}</td>
                  <td data-label="User">{one.user}</td>
                  <td data-label="Memory" class="figure">{bytes(one.memory_bytes)}</td>
                  <td data-label="CPU time" class="figure">{one.cpu_ms == null ? "–" : `${(one.cpu_ms / 1000).toFixed(2)} s`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      ) : null}
    </div>
  );
}

interface Piece {
  stream: "stdout" | "stderr";
  text: string;
}

/** A process's log as it grows. */
function Log({ sandbox, process }: { sandbox: Sandbox; process: string }) {
  const pieces = useRef<Piece[]>([]);
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const [state, say] = useState("");
  const place = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const stop = new AbortController();
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const follow = async () => {
      const path = ofSandbox(sandbox.id, `/processes/${process}/logs${query({ follow: true, tail_bytes: KEPT })}`);
      for await (const { event, data } of events(path, { ...inThisLife(sandbox), signal: stop.signal })) {
        if (event === "problem") throw new Error((data as { detail: string }).detail);
        const piece = data as { stream?: "stdout" | "stderr"; data?: string };
        if (!piece.stream || piece.data === undefined) continue;
        const text = decoders[piece.stream].decode(Uint8Array.from(atob(piece.data), (letter) => letter.charCodeAt(0)), { stream: true });
        pieces.current.push({ stream: piece.stream, text: plain(text) });
        let held = pieces.current.reduce((sum, one) => sum + one.text.length, 0);
        while (held > KEPT && pieces.current.length > 1) held -= pieces.current.shift()?.text.length ?? 0;
        timer ??= setTimeout(() => {
          timer = undefined;
          draw(0);
        }, 60);
      }
      say("the process has ended");
    };
    follow().catch((error: unknown) => stop.signal.aborted || say(sentence(error)));
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, []);
  useEffect(() => {
    if (isAtEnd.current && place.current) place.current.scrollTop = place.current.scrollHeight;
  });
  return (
    <div class="log">
      <pre ref={place} tabIndex={0} role="log" aria-label="Log" onScroll={({ currentTarget: it }) => (isAtEnd.current = it.scrollTop + it.clientHeight > it.scrollHeight - 20)}>
        {pieces.current.length === 0 ? <span class="quiet">It has written nothing yet.</span> : pieces.current.map((piece, at) => <span key={at} class={piece.stream}>{piece.text}</span>)}
      </pre>
      <p class="hint" role="status">{state || "live"} · standard error in another colour</p>
    </div>
  );
}
