// Which queries an event makes stale. A busy fleet sends many events; each key is refetched at most this often, and only
// while something on the page shows it.

import { hashKey, type Query, type QueryClient, type QueryKey } from '@tanstack/react-query';
import { keys } from '../api/queries';
import type { Dag, FeedEvent } from '../api/types';
import type { EventType } from '../api/vocabulary';

/// For one job, soon. For the whole fleet, which every event affects, less often.
export const SOON = 250;
export const SELDOM = 1_500;
/// For a graph, when it is unknown whether the job belongs to it.
export const RARELY = 10_000;

type Subject = EventType extends `${infer S}.${string}` ? S : never;

/// What an event makes stale by what it is about.
const TOUCHED: Partial<Record<Subject, { soon?: QueryKey[]; seldom?: QueryKey[] }>> = {
  job: { seldom: [keys.metrics, keys.alerts, keys.factories, keys.budgets, keys.pools] },
  factory: { soon: [keys.factories], seldom: [keys.metrics, keys.alerts, keys.pools] },
  pool: { soon: [keys.pools], seldom: [keys.alerts, keys.factories] },
  topic: { soon: [keys.topics] },
  budget: { soon: [keys.budgets], seldom: [keys.metrics, keys.alerts] },
  product: { soon: [keys.products] },
  profile: { soon: [keys.profiles] },
  flag: { soon: [keys.flags], seldom: [keys.factories] },
  effect: { seldom: [keys.alerts] },
  token: { seldom: [keys.tokens] },
};

export function touchedBy({ type, jobId }: FeedEvent): { key: QueryKey; within: number }[] {
  const subject = type.split('.')[0] as Subject;
  const { soon = [], seldom = [] } = TOUCHED[subject] ?? {};
  const own = subject === 'job' && jobId ? [keys.job(jobId)] : [];
  const shadow = type === 'job.diverged' ? [keys.shadow] : [];
  const due = (touched: QueryKey[], within: number) => touched.map((key) => ({ key, within }));
  return [...due([...own, ...soon], SOON), ...due(seldom, SELDOM), ...due(shadow, SOON)];
}

/// A query whose page follows the feed on its own says so: `meta: { followsFeed: true }`.
function isLeftAlone(query: Query): boolean {
  return query.meta?.followsFeed === true;
}

/// Which jobs a graph shows. Needed for every event, so it is kept.
const shownBy = new WeakMap<Dag, ReadonlySet<string>>();

function shows(dag: Dag, id: string): boolean {
  let ids = shownBy.get(dag);
  if (!ids) {
    ids = new Set([...dag.jobs, ...dag.outside].map((job) => job.id));
    shownBy.set(dag, ids);
  }
  return ids.has(id);
}

/// How soon a job's event makes a graph stale, if it does. An event does not name the parent of its job: a new job may
/// belong to any graph, an unknown one to a truncated graph, and any job to a graph that is being fetched.
function graphDue(event: FeedEvent, graph: Query['state'], now: number): number | undefined {
  if (!event.jobId || !event.type.startsWith('job.')) return undefined;
  const dag = graph.data as Dag | undefined;
  if (!dag || shows(dag, event.jobId)) return SELDOM;
  if (graph.fetchStatus === 'fetching') return RARELY;
  const mayBelong = event.type === 'job.submitted' || dag.truncated;
  return mayBelong ? Math.max(SELDOM, graph.dataUpdatedAt + RARELY - now) : undefined;
}

/// A key that is due, and which of its queries, if not all.
interface Due {
  at: number;
  timer: ReturnType<typeof setTimeout>;
  only: ReadonlySet<string> | undefined;
}

export class Freshener {
  private readonly due = new Map<string, Due>();

  constructor(private readonly client: QueryClient) {}

  touch(event: FeedEvent): void {
    for (const { key, within } of touchedBy(event)) this.schedule(key, within);
    for (const { queryKey, state } of this.client.getQueryCache().findAll({ queryKey: keys.dag })) {
      const within = graphDue(event, state, Date.now());
      if (within !== undefined) this.schedule(queryKey, within);
    }
  }

  /// After a loss, or before the first connection, anything may have happened. Failed queries are retried.
  all(): void {
    void this.client.invalidateQueries({
      predicate: (query) => {
        if (isLeftAlone(query)) return query.state.status === 'error' && query.state.data === undefined;
        return query.state.status === 'error' || query.queryKey[0] !== 'markdown';
      },
    });
  }

  stop(): void {
    for (const { timer } of this.due.values()) clearTimeout(timer);
    this.due.clear();
  }

  private schedule(key: QueryKey, within: number, only?: ReadonlySet<string>): void {
    const name = hashKey(key);
    const at = Date.now() + within;
    const waiting = this.due.get(name);
    if (waiting) {
      // Another event came since: now it is all of them again.
      if (!only) waiting.only = undefined;
      if (waiting.at <= at) return;
      clearTimeout(waiting.timer);
    }
    const timer = setTimeout(() => {
      const due = this.due.get(name);
      this.due.delete(name);
      this.freshen(key, within, due?.only);
    }, within);
    this.due.set(name, { at, timer, only: waiting ? waiting.only : only });
  }

  /// A fetch that is under way may be older than the event, but restarting it would never end while events keep coming: it
  /// is repeated when it is done.
  private freshen(key: QueryKey, within: number, only: ReadonlySet<string> | undefined): void {
    const touched = this.client
      .getQueryCache()
      .findAll({ queryKey: key })
      .filter((query) => !isLeftAlone(query) && (!only || only.has(query.queryHash)));
    const isUnderway = (query: Query) => query.state.fetchStatus === 'fetching';
    const underway = new Set(touched.filter(isUnderway).map((query) => query.queryHash));
    const idle = new Set(touched.filter((query) => !isUnderway(query)).map((query) => query.queryHash));
    void this.client.invalidateQueries({ queryKey: key, predicate: (query) => idle.has(query.queryHash) });
    if (underway.size > 0) this.schedule(key, within, underway);
  }
}
