// Keeps the rows of the table up to date while events come in.
//
// A row changes in place at once, as far as its event says; then it is fetched again, together with others, and only if it
// is in sight. Jobs that are not in the list yet are looked up with the list's filter and announced, never inserted.

import type { FeedEvent, Job } from '../../api/types';

/// Events that come together change the rows together.
export const CHANGE_DELAY = 100;
export const REFETCH_DELAY = 400;
export const NEW_JOBS_DELAY = 1_000;
/// As many ids as the API takes at a time.
export const IDS = 100;
/// A flood of new jobs is not followed one by one: the list is reloaded on request.
export const MOST_NEW = 300;
/// This many pages are compared with the list after a loss. Below them something may be missing.
export const PAGES_BACK = 3;

export interface Table {
  has(id: string): boolean;
  /// The last row, where more can be loaded below it.
  lastBeforeMore(): string | undefined;
  inSight(): readonly string[];
  /// Whether the list, or more of it, is being read: the answer may be older than the events until then.
  isReading(): boolean;
  change(events: readonly FeedEvent[]): void;
  /// Ids in `asked` that were not found are gone.
  replace(jobs: readonly Job[], asked: readonly string[]): void;
  announce(jobs: readonly Job[]): void;
  announceMany(): void;
  /// There may be more than is known, also further down.
  announceOlder(): void;
  /// The filter does not find them, or no longer does.
  withdraw(ids: readonly string[]): void;
}

export interface Reads {
  /// These jobs as they are now.
  byId(ids: readonly string[], signal: AbortSignal): Promise<Job[]>;
  /// Those of them that the filter finds.
  matching(ids: readonly string[], signal: AbortSignal): Promise<Job[]>;
  /// A page of what the filter finds, from the newest on, and where the next one begins if there is one.
  newest(signal: AbortSignal, from: string | undefined): Promise<{ jobs: Job[]; next: string | undefined }>;
}

type Task = 'change' | 'read' | 'new';

export class Follower {
  private events: FeedEvent[] = [];
  private readonly stale = new Set<string>();
  private readonly unknown = new Set<string>();
  private readonly meanwhile = new Set<string>();
  private readonly timers = new Map<Task, ReturnType<typeof setTimeout>>();
  private readonly abort = new AbortController();

  constructor(
    private readonly table: Table,
    private readonly reads: Reads,
  ) {}

  onEvent(event: FeedEvent): void {
    const id = event.jobId;
    if (!id || !event.type.startsWith('job.')) return;
    if (this.table.isReading()) this.meanwhile.add(id);
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

  /// Other rows came into sight; stale ones are fetched.
  seen(): void {
    if (this.stale.size > 0) this.soon('read');
  }

  /// These jobs may be out of date, listed or not.
  recheck(ids: Iterable<string>): void {
    const isReading = this.table.isReading();
    for (const id of ids) {
      if (isReading) this.meanwhile.add(id);
      if (this.table.has(id)) this.stale.add(id);
      else if (!this.isPastTheEnd(id)) this.unknown.add(id);
    }
    this.seen();
    if (this.unknown.size > 0) this.soon('new');
  }

  /// The list was fetched. Changes in the meantime may be missing from the answer, or overwritten by it.
  settled(): void {
    const ids = [...this.meanwhile];
    this.meanwhile.clear();
    this.recheck(ids);
  }

  /// Events were missed: every row may be out of date, and there may be new ones. `resumed`: the missed events
  /// still come.
  async catchUp(ids: Iterable<string>, resumed: boolean): Promise<void> {
    this.recheck(ids);
    await this.reading(async (signal) => {
      const news: Job[] = [];
      let from: string | undefined;
      let isAll = resumed;
      for (let page = 0; page < (resumed ? 1 : PAGES_BACK); page += 1) {
        const { jobs, next } = await this.reads.newest(signal, from);
        const here = jobs.filter((job) => this.isNews(job));
        // If a whole page is unknown, there are more than these.
        if (page === 0 && next && here.length > 0 && here.length === jobs.length) {
          return this.table.announceMany();
        }
        news.push(...here);
        from = next;
        isAll ||= next === undefined || this.reachesTheEnd(jobs);
        if (isAll) break;
      }
      if (news.length > 0) this.table.announce(news);
      if (!isAll) this.table.announceOlder();
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

  private reachesTheEnd(jobs: readonly Job[]): boolean {
    const end = this.table.lastBeforeMore();
    const last = jobs.at(-1);
    return end !== undefined && last !== undefined && last.id <= end;
  }

  private isNews(job: Job): boolean {
    return !this.table.has(job.id) && !this.isPastTheEnd(job.id);
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
        const asked = ids.slice(from, from + IDS);
        this.sortOut(asked, await this.reads.matching(asked, signal));
      }
    });
    if (!read) for (const id of ids) this.unknown.add(id);
    return read;
  }

  /// Some may have been added to the list meanwhile, in an older state.
  private sortOut(asked: readonly string[], found: readonly Job[]): void {
    const matching = new Set(found.map((job) => job.id));
    const missing = asked.filter((id) => !matching.has(id));
    const listed = found.filter((job) => this.table.has(job.id));
    const news = found.filter((job) => this.isNews(job));
    if (listed.length > 0) this.table.replace(listed, []);
    if (news.length > 0) this.table.announce(news);
    if (missing.length > 0) this.table.withdraw(missing);
    this.recheck(missing.filter((id) => this.table.has(id)));
  }

  /// Whether it worked. A failure is not shown here: the banner says that the connection is lost. The next event or
  /// connection retries it.
  private async reading(read: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    try {
      await read(this.abort.signal);
      return true;
    } catch {
      return false;
    }
  }

  /// Rate-limited, and never twice at the same time; once more for what came while it ran.
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
    change: [CHANGE_DELAY, () => this.change(), () => this.events.length > 0],
    read: [REFETCH_DELAY, () => this.readAgain(), () => this.staleInSight().length > 0],
    new: [NEW_JOBS_DELAY, () => this.lookForNew(), () => this.unknown.size > 0],
  };
}
