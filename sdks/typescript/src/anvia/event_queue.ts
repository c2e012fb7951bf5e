/** Events on their way from a command to a loop that reads them: as many as there are, in order, then the end or an error. */

export class EventQueue<T> implements AsyncIterable<T> {
  readonly #waiting: T[] = [];
  #isOver = false;
  #failure: { error: unknown } | undefined;
  #wake: () => void = () => {};

  put(event: T): void {
    this.#waiting.push(event);
    this.#wake();
  }

  /** The last event. */
  end(event: T): void {
    this.#isOver = true;
    this.put(event);
  }

  /** An error, thrown behind the events that wait. */
  fail(error: unknown): void {
    this.#isOver = true;
    this.#failure = { error };
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    while (true) {
      while (this.#waiting.length > 0) yield this.#waiting.shift() as T;
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#isOver) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
