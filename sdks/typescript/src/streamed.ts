/** What comes over a connection piece by piece, and can be let go of at any time: a generator's `return` does nothing before its first value. */

import { EyotError } from "./error.js";

/** Values to iterate over once. Leaving the loop, or `return`, closes the connection. */
export class Streamed<T> implements AsyncIterableIterator<T> {
  readonly #values: AsyncGenerator<T, void>;
  readonly #letGo: () => void;
  #isOver = false;

  constructor(values: AsyncGenerator<T, void>, letGo: () => void) {
    this.#values = values;
    this.#letGo = letGo;
  }

  /** The same connection, whose values are made into others. */
  through<U>(stage: (values: AsyncIterable<T>) => AsyncGenerator<U, void>): Streamed<U> {
    return new Streamed(stage(this), () => this.#end());
  }

  /** The same, each value of which has to come in time: `timeout` where nothing comes for so long. */
  within(readTimeoutMs: number | undefined): Streamed<T> {
    return readTimeoutMs === undefined ? this : this.through((values) => inTime(values, readTimeoutMs));
  }

  async next(): Promise<IteratorResult<T, void>> {
    if (this.#isOver) return { done: true, value: undefined };
    try {
      return await this.#values.next();
    } catch (error) {
      // A connection that was closed on purpose is no failure for who still waits.
      if (this.#isOver) return { done: true, value: undefined };
      throw error;
    }
  }

  async return(): Promise<IteratorResult<T, void>> {
    this.#end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end(): void {
    this.#isOver = true;
    this.#letGo();
  }
}

async function* inTime<T>(values: AsyncIterable<T>, readTimeoutMs: number): AsyncGenerator<T, void> {
  const iterator = values[Symbol.asyncIterator]();
  const silent = new EyotError(`read the stream: nothing came for ${readTimeoutMs} milliseconds`, { kind: "timeout" });
  try {
    for (;;) {
      let deadline: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => (deadline = setTimeout(() => reject(silent), readTimeoutMs)));
      const next = await Promise.race([iterator.next(), late]).finally(() => clearTimeout(deadline));
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await iterator.return?.();
  }
}
