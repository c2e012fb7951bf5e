/** A run as it is followed: its events are read until it ends, a connection that breaks is made again, and nothing is read twice. */

import { useEffect, useReducer, useRef } from "preact/hooks";
import { Refused, events, sentence } from "./api.js";
import { Transcript } from "./transcript.js";
import type { Problem, RunEvent } from "./types.js";

/** How many events are put together in one frame. Drawing what they say takes longer than that. */
const FRAME_EVENTS = 160;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/** How the connection is. */
export type Connection = "connecting" | "live" | "ended" | "refused";

/** A run that is followed. */
export interface Followed {
  transcript: Transcript;
  line: Connection;
  /** Why nothing comes. */
  failure: string | undefined;
}

/** Reads a run's events behind those that the transcript has, until the run ends. */
async function read(path: string, from: number, take: (event: RunEvent) => void, waits: (id: string) => void, opened: () => void, signal: AbortSignal): Promise<void> {
  const headers: Record<string, string> = from >= 0 ? { "last-event-id": String(from) } : {};
  for await (const { id, event, data } of events(path, { headers, signal }, opened)) {
    if (event === "problem") throw new Refused(data as Problem);
    if (event === "tool_request") waits((data as { id: string }).id);
    if (id !== undefined) take(data as RunEvent);
  }
}

/** Follows a run while its view is open. It is drawn at most once a frame. */
export function useFollowed(id: string): Followed {
  const [, draw] = useReducer((turn: number) => turn + 1, 0);
  const followed = useRef<Followed>({ transcript: new Transcript(), line: "connecting", failure: undefined });
  useEffect(() => {
    const stop = new AbortController();
    const it = followed.current;
    const asked: string[] = [];
    const waiting: RunEvent[] = [];
    let next = 0;
    let frame: number | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    let received = it.transcript.last;
    const put = () => {
      frame = timer = undefined;
      const end = Math.min(waiting.length, next + FRAME_EVENTS);
      while (next < end) it.transcript.add(waiting[next++] as RunEvent);
      if (next < waiting.length) later();
      else waiting.length = next = 0;
      // A request may come before the event of its call.
      for (const call of asked) it.transcript.wait(call);
      draw(0);
    };
    // A tab that is not seen has no frames.
    const later = () => {
      if (frame !== undefined || timer !== undefined) return;
      if (document.hidden) timer = setTimeout(put, FIRST_PAUSE_MS);
      else frame = requestAnimationFrame(put);
    };
    const say = (line: Connection, failure?: string) => {
      Object.assign(it, { line, failure });
      draw(0);
    };
    const take = (event: RunEvent) => {
      if (event.eventIndex <= received) return;
      received = event.eventIndex;
      waiting.push(event);
      later();
      if (event.type !== "run_end") return;
      isOver = true;
      say("ended");
    };
    const waits = (call: string) => {
      if (!asked.includes(call)) asked.push(call);
      later();
    };
    const follow = async () => {
      const path = `/v1/runs/${encodeURIComponent(id)}/stream`;
      for (let pause = FIRST_PAUSE_MS; !stop.signal.aborted && !isOver; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
        const opened = () => {
          pause = FIRST_PAUSE_MS;
          say("live");
        };
        try {
          await read(path, received, take, waits, opened, stop.signal);
          if (!isOver) say("connecting");
        } catch (error) {
          if (stop.signal.aborted) return;
          if (isOver) return;
          const isFinal = error instanceof Refused && [401, 403, 404, 422].includes(error.problem.status);
          say(isFinal ? "refused" : "connecting", sentence(error));
          if (isFinal) return;
        }
        if (!isOver) await new Promise((resolve) => setTimeout(resolve, pause));
      }
    };
    void follow();
    return () => {
      stop.abort();
      if (frame !== undefined) cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, [id]);
  return followed.current;
}
