// Keeps the rows of the table true while events come in.
//
// A row changes in place at once, as far as its event tells; then it is read again, together with others, and only if it
// is in sight. Jobs that are not in the list yet are looked up with the list's own filter and announced, never pushed in.

import type { FeedEvent, Job } from '../../api/types';

/// Events that come together change the rows together.
export const TOGETHER = 100;
export const READ_AGAIN = 400;
export const LOOK_FOR_NEW = 1_000;
/// As many ids as the API takes at a time.
export const IDS = 100;
/// A flood of new jobs is not followed one by one: the list is read anew when somebody asks for it.
export const MOST_NEW = 300;

export interface Table {
  has(id: string): boolean;
  /// The last row, where more can be loaded below it.
  lastBeforeMore(): string | undefined;
  inSight(): readonly string[];
  change(events: readonly FeedEvent[]): void;
  /// `asked` that were not found are gone.
  replace(jobs: readonly Job[], asked: readonly string[]): void;
  announce(jobs: readonly Job[]): void;
  announceMany(): void;
}

export interface Reads {
  /// These jobs as they are now.
  byId(ids: readonly string[], signal: AbortSignal): Promise<Job[]>;
  /// Those of them that the filter finds.
  matching(ids: readonly string[], signal: AbortSignal): Promise<Job[]>;
  /// The newest that the filter finds, and whether there are more.
  newest(signal: AbortSignal): Promise<{ jobs: Job[]; more: boolean }>;
}

type Task = 'change' | 'read' | 'new';

export class Follower {
  private events: FeedEvent[] = [];
  private readonly stale = new Set<string>();
  private readonly unknown = new Set<string>();
  private readonly timers = new Map<Task, ReturnType<typeof setTimeout>>();
  private readonly abort = new AbortController();

  constructor(
    private readonly table: Table,
    private readonly reads: Reads,
  ) {}

  hear(event: FeedEvent): void {
    const id = event.jobId;
    if (!id || !event.type.startsWith('job.')) return;
    if (this.table.has(id)) {
      this.events.push(event);
      this.stale.add(id);
      this.soon('change');
      this.soon('read');
    } else if (event.to && !this.isPastTheEnd(id)) {
      this.unknown.add(id);
      this.soon('new');
    }
  }

  /// Other rows came into sight; what is stale among them is read.
  seen(): void {
    if (this.stale.size > 0) this.soon('read');
  }

  /// Nobody listened for a while: every row may be old, and there may be new ones.
  async catchUp(ids: Iterable<string>): Promise<void> {
    for (const id of ids) this.stale.add(id);
    this.seen();
    await this.reading(async (signal) => {
      const { jobs, more } = await this.reads.newest(signal);
      const news = jobs.filter((job) => !this.table.has(job.id) && !this.isPastTheEnd(job.id));
      // Where none of a whole page is known there are more than these.
      if (more && news.length > 0 && news.length === jobs.length) this.table.announceMany();
      else if (news.length > 0) this.table.announce(news);
    });
  }

  stop(): void {
    this.abort.abort();
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  private isPastTheEnd(id: string): boolean {
    const last = this.table.lastBeforeMore();
    return last !== undefined && id < last;
  }

  private change(): boolean {
    const events = this.events;
    this.events = [];
    this.table.change(events);
    return true;
  }

  private async readAgain(): Promise<boolean> {
    const wanted = this.staleInSight().slice(0, IDS);
    if (wanted.length === 0) return true;
    for (const id of wanted) this.stale.delete(id);
    const read = await this.reading(async (signal) => {
      this.table.replace(await this.reads.byId(wanted, signal), wanted);
    });
    if (!read) for (const id of wanted) this.stale.add(id);
    return read;
  }

  private staleInSight(): string[] {
    return this.table.inSight().filter((id) => this.stale.has(id));
  }

  private async lookForNew(): Promise<boolean> {
    const ids = [...this.unknown];
    this.unknown.clear();
    if (ids.length > MOST_NEW) {
      this.table.announceMany();
      return true;
    }
    const read = await this.reading(async (signal) => {
      for (let from = 0; from < ids.length; from += IDS) {
        const found = await this.reads.matching(ids.slice(from, from + IDS), signal);
        const news = found.filter((job) => !this.table.has(job.id) && !this.isPastTheEnd(job.id));
        if (news.length > 0) this.table.announce(news);
      }
    });
    if (!read) for (const id of ids) this.unknown.add(id);
    return read;
  }

  /// Whether it worked. A failure needs no words here: the banner says that the connection is lost. It is tried again
  /// with the next event or connection, not before.
  private async reading(read: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    try {
      await read(this.abort.signal);
      return true;
    } catch {
      return false;
    }
  }

  /// At most once in so long, and never twice at the same time; once more for what came while it ran.
  private soon(task: Task): void {
    if (this.timers.has(task) || this.abort.signal.aborted) return;
    const [within, run, isWanted] = this.tasks[task];
    const timer = setTimeout(async () => {
      const worked = await run();
      this.timers.delete(task);
      if (worked && isWanted()) this.soon(task);
    }, within);
    this.timers.set(task, timer);
  }

  private readonly tasks: Record<Task, [number, () => boolean | Promise<boolean>, () => boolean]> = {
    change: [TOGETHER, () => this.change(), () => this.events.length > 0],
    read: [READ_AGAIN, () => this.readAgain(), () => this.staleInSight().length > 0],
    new: [LOOK_FOR_NEW, () => this.lookForNew(), () => this.unknown.size > 0],
  };
}
