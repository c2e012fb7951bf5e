/** Tries again where a connection to the server breaks off, for some time. */

import { EyotError } from "./error.js";
import type { NamedEvent } from "./sse.js";
import type { Streamed } from "./streamed.js";
import { ClosedClient, abortError } from "./transport.js";

/** The wait before the second try; the first one is at once. It doubles with each. */
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
/** After how long in vain it is given up. The time of a connection that stood for more than a moment does not count. */
const GIVEN_UP_AFTER_MS = 60_000;

/** How often something was tried in vain, and how long. */
class Patience {
  #waitMs = 0;
  #sinceMs = Date.now();
  #openedMs: number | undefined;

  constructor(private readonly signal: AbortSignal) {}

  /** The connection stands. */
  opened(): void {
    this.#openedMs = Date.now();
  }

  /** It went on. */
  reset(): void {
    this.#waitMs = 0;
    this.#sinceMs = Date.now();
  }

  /** Waits until it may be tried again; throws what it broke off with where it was tried for too long. */
  async wait(lost: unknown): Promise<void> {
    if (this.#openedMs !== undefined && Date.now() - this.#openedMs >= LONGEST_WAIT_MS) this.reset();
    this.#openedMs = undefined;
    if (Date.now() - this.#sinceMs + this.#waitMs > GIVEN_UP_AFTER_MS) throw lost;
    await pause(this.#waitMs, this.signal);
    this.#waitMs = Math.min(Math.max(this.#waitMs * 2, FIRST_WAIT_MS), LONGEST_WAIT_MS);
  }
}

/** Does something that may be done twice, again and again while the server can't be reached. */
export async function patiently<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  const patience = new Patience(signal);
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isBreak(error)) throw error;
      await patience.wait(error);
    }
  }
}

/**
 * Reads a stream that can be taken up again, behind the last number that came, whenever it breaks off or ends. It goes on until
 * the loop is left. Events that came are not repeated; those without a number may be.
 */
export async function* takenUpAgain(
  open: (last: number | undefined) => Promise<Streamed<NamedEvent>>,
  last: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<NamedEvent, void> {
  const patience = new Patience(signal);
  let lost: unknown = new EyotError("read the stream: it broke off", { kind: "unavailable" });
  let stream: Streamed<NamedEvent> | undefined;
  try {
    for (;;) {
      let next: IteratorResult<NamedEvent, void> = { done: true, value: undefined };
      try {
        if (stream === undefined) {
          stream = await open(last);
          patience.opened();
        }
        next = await stream.next();
      } catch (error) {
        if (!isBreak(error)) throw error;
        lost = error;
      }
      if (next.done) {
        stream = undefined;
        await patience.wait(lost);
        continue;
      }
      const { number } = next.value;
      if (number !== undefined && last !== undefined && number <= last) continue;
      if (number !== undefined) {
        last = number;
        patience.reset();
      }
      yield next.value;
    }
  } finally {
    void stream?.return();
  }
}

function isBreak(error: unknown): boolean {
  return error instanceof EyotError && error.kind === "unavailable" && !(error instanceof ClosedClient);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw abortError(signal);
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(abortError(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
