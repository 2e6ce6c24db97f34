// Names of jobs by their ids. A name never changes, so each is asked for once, and a storm of events makes no storm of
// calls.

export type Named = readonly [id: string, name: string];

/// Between two calls.
const EVERY = 1_500;
/// A page on a second screen is open for weeks.
const KEPT = 2_000;

export class JobNames {
  /// Nothing for a job that is gone, or not ours to see: it is not asked for again.
  readonly #known = new Map<string, string | undefined>();
  #wanted: readonly string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = Number.NEGATIVE_INFINITY;
  #asking = false;
  #open = false;

  constructor(
    private readonly ask: (ids: readonly string[]) => Promise<readonly Named[]>,
    private readonly changed: () => void,
  ) {}

  /// Until it is closed, what is missing is asked for.
  open(): void {
    this.#open = true;
    this.#plan();
  }

  close(): void {
    this.#open = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  nameOf(id: string): string | undefined {
    return this.#known.get(id);
  }

  /// Names from elsewhere on the page. Kept, since the job may leave the list that it was in.
  learn(names: Iterable<Named>): void {
    for (const [id, name] of names) this.#known.set(id, name);
  }

  /// The ids in sight. Those that have gone out of sight before their turn are not asked for.
  want(ids: readonly string[]): void {
    this.#wanted = ids;
    this.#forgetOldest();
    this.#plan();
  }

  #missing(): string[] {
    return [...new Set(this.#wanted)].filter((id) => !this.#known.has(id));
  }

  #plan(): void {
    if (!this.#open || this.#asking || this.#timer !== undefined || this.#missing().length === 0) return;
    const wait = Math.max(0, this.#last + EVERY - Date.now());
    this.#timer = setTimeout(() => void this.#askNow(), wait);
  }

  async #askNow(): Promise<void> {
    this.#timer = undefined;
    const ids = this.#missing();
    if (ids.length === 0) return;
    this.#asking = true;
    this.#last = Date.now();
    try {
      const names = new Map(await this.ask(ids));
      for (const id of ids) this.#known.set(id, names.get(id));
      if (this.#open) this.changed();
    } catch {
      // The banner says that nobody answers; they are asked for again in time.
    } finally {
      this.#asking = false;
      this.#plan();
    }
  }

  #forgetOldest(): void {
    const inSight = new Set(this.#wanted);
    for (const id of this.#known.keys()) {
      if (this.#known.size <= KEPT) return;
      if (!inSight.has(id)) this.#known.delete(id);
    }
  }
}
