/** A queue between something that pushes and a loop that reads, which says when it is full. */

/** Told when the queue is full, and when it may be filled again. */
export interface Pressure {
  full(): void;
  free(): void;
}

/** A queue with one reader. */
export class Mailbox<T> implements AsyncIterable<T> {
  readonly #waiting: T[] = [];
  #error: unknown;
  #isClosed = false;
  #isFull = false;
  #wake: (() => void) | undefined;

  constructor(
    private readonly most: number,
    private readonly pressure: Pressure,
  ) {}

  /** Adds an item. */
  put(item: T): void {
    if (this.#isClosed) return;
    this.#waiting.push(item);
    if (!this.#isFull && this.#waiting.length >= this.most) {
      this.#isFull = true;
      this.pressure.full();
    }
    this.#wake?.();
  }

  /** Ends it with an error, which is read behind what is there. */
  fail(error: unknown): void {
    if (this.#isClosed) return;
    this.#error = error;
    this.close();
  }

  /** Ends it. */
  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    while (true) {
      const item = this.#waiting.shift();
      if (item !== undefined) {
        this.#relieve();
        yield item;
      } else if (this.#isClosed) {
        const error = this.#error;
        this.#error = undefined;
        if (error !== undefined) throw error;
        return;
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }

  #relieve(): void {
    if (!this.#isFull || this.#waiting.length > this.most / 2) return;
    this.#isFull = false;
    this.pressure.free();
  }
}
