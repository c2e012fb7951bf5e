/** What changes by itself: the event log as it grows, and what sandboxes use while somebody looks. */

import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { Refused, events, inThisLife, json, ofSandbox, sentence } from "./api.js";
import type { Event, Sandbox, Usage } from "./types.js";

/** How many events are kept here. */
export const KEPT_EVENTS = 2000;

type Listener = (event: Event | undefined) => void;

/** The event log of all pools that may be seen, followed once for the whole page. */
class EventFeed {
  readonly all: Event[] = [];
  /** Why there are none; `undefined` while all is well. */
  failure: string | undefined;
  connected = false;
  private listeners = new Set<Listener>();
  private stop: AbortController | undefined;

  start(): void {
    if (this.stop) return;
    this.stop = new AbortController();
    void this.follow(this.stop.signal);
  }

  end(): void {
    this.stop?.abort();
    this.stop = undefined;
    this.all.length = 0;
    this.connected = false;
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(event?: Event): void {
    for (const listener of this.listeners) listener(event);
  }

  private async follow(signal: AbortSignal): Promise<void> {
    for (let pause = 500; !signal.aborted; pause = Math.min(pause * 2, 15_000)) {
      try {
        const from = (this.all.at(-1)?.seq ?? 0) + 1;
        const opened = () => {
          this.connected = true;
          this.failure = undefined;
          pause = 500;
          this.tell();
        };
        for await (const { event, data } of events(`/v1/events?follow=true&from_seq=${from}`, { signal }, opened)) {
          if (event !== "event") continue;
          this.all.push(data as Event);
          if (this.all.length > KEPT_EVENTS) this.all.splice(0, this.all.length - KEPT_EVENTS);
          this.tell(data as Event);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.failure = sentence(error);
        if (error instanceof Refused && [401, 403, 422].includes(error.problem.status)) {
          this.tell();
          return;
        }
      }
      this.connected = false;
      this.tell();
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

export const feed = new EventFeed();

/** Draws anew when events come, at most so often. */
export function useFeed(everyMs = 150): EventFeed {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = feed.listen(() => {
      timer ??= setTimeout(() => {
        timer = undefined;
        draw(0);
      }, everyMs);
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [everyMs]);
  return feed;
}

/** Does something now and then, while the page is visible. It is never done twice at once. */
export function useWhileVisible(everyMs: number, work: (signal: AbortSignal) => Promise<void>, depends: unknown[]): void {
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isBusy = false;
    const turn = async () => {
      clearTimeout(timer);
      if (isBusy || document.hidden || stop.signal.aborted) return;
      isBusy = true;
      await latest.current(stop.signal).catch(() => {});
      isBusy = false;
      if (!stop.signal.aborted) timer = setTimeout(turn, everyMs);
    };
    const seen = () => void turn();
    document.addEventListener("visibilitychange", seen);
    void turn();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, depends);
}

/** What a sandbox used at one time. */
export interface Sample {
  at: number;
  usage: Usage;
  /** Of one processor, since the sample before. */
  cpu: number | undefined;
}

/** How many samples are kept of each. */
const KEPT_SAMPLES = 300;
const samples = new Map<string, Sample[]>();

export function samplesOf(id: string): Sample[] {
  return samples.get(id) ?? [];
}

/** Asks what a sandbox uses. One that sleeps is left asleep. */
export async function sample(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const { usage } = await json<{ usage: Usage }>(ofSandbox(sandbox.id, "/usage"), { ...inThisLife(sandbox), signal });
  const kept = samples.get(sandbox.id) ?? [];
  const before = kept.at(-1);
  const at = performance.now();
  let cpu: number | undefined;
  if (before?.usage.cpu_ms != null && usage.cpu_ms != null && at > before.at) {
    cpu = Math.max(0, (usage.cpu_ms - before.usage.cpu_ms) / (at - before.at));
  }
  kept.push({ at, usage, cpu });
  if (kept.length > KEPT_SAMPLES) kept.shift();
  samples.set(sandbox.id, kept);
}

/** Something that is loaded: what came, or why nothing did. */
export interface Loaded<T> {
  value: T | undefined;
  failure: unknown;
  again: () => void;
}

/** Loads something, and anew whenever one of `depends` changes. What came before stays until the next has come. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, depends: unknown[]): Loaded<T> {
  const [state, set] = useState<{ value: T | undefined; failure: unknown }>({ value: undefined, failure: undefined });
  const [turn, next] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const stop = new AbortController();
    load(stop.signal).then(
      (value) => stop.signal.aborted || set({ value, failure: undefined }),
      (failure: unknown) => stop.signal.aborted || set((before) => ({ value: before.value, failure })),
    );
    return () => stop.abort();
  }, [...depends, turn]);
  return { ...state, again: () => next(0) };
}
