/** A session's deadlines on this side: one from its begin, one while nothing is done with it. Neither keeps a program alive. */

/** What is under way, and when the session ends by itself. */
export class Activity {
  readonly #end: () => void;
  readonly #idleTimeoutMs: number | undefined;
  readonly #ttl: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  #active = 0;
  #isOver = false;

  /** Both begin now. `end` is called once at the most for each, and must not throw. */
  constructor(deadlines: { ttlMs?: number; idleTimeoutMs?: number }, end: () => void) {
    this.#end = end;
    this.#idleTimeoutMs = deadlines.idleTimeoutMs;
    this.#ttl = deadlines.ttlMs === undefined ? undefined : timer(end, deadlines.ttlMs);
    this.#rest();
  }

  /** An operation begins; what is answered ends it, once. */
  begin(): () => void {
    this.#active += 1;
    clearTimeout(this.#idle);
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#active -= 1;
      this.#rest();
    };
  }

  /** Nothing ends it any more. */
  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#ttl);
    clearTimeout(this.#idle);
  }

  #rest(): void {
    if (this.#isOver || this.#active > 0 || this.#idleTimeoutMs === undefined) return;
    this.#idle = timer(this.#end, this.#idleTimeoutMs);
  }
}

/** What `setTimeout` can count to. */
const LONGEST_MS = 2 ** 31 - 1;

function timer(end: () => void, ms: number): NodeJS.Timeout | undefined {
  // 24 days: the server's own deadline sees to longer ones.
  return ms > LONGEST_MS ? undefined : setTimeout(end, ms).unref();
}
