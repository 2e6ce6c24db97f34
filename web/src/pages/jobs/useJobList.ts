// The list, alive: its rows, what is new and waits to be shown, and which rows no longer belong.

import { keepPreviousData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Job } from '../../api/types';
import { useFeed, useFeedEvents } from '../../live/LiveProvider';
import { matches } from './filter';
import { Follower, MOST_NEW, type Table } from './follow';
import { jobListQuery, readsOf } from './jobsQuery';
import { afterEvent, changed, firstPage, newer, type Pages, rowsOf, withArrivals } from './rows';
import type { JobsSearch } from './search';

/// New jobs that are not in the list yet; `many` where they were not even looked at.
export interface Waiting {
  jobs: readonly Job[];
  many: boolean;
}
const NONE: Waiting = { jobs: [], many: false };

export type RowState = 'listed' | 'elsewhere' | 'gone';

export function useJobList(search: JobsSearch) {
  const client = useQueryClient();
  const feed = useFeed();
  const options = useMemo(() => jobListQuery(search), [search]);
  const query = useInfiniteQuery({ ...options, placeholderData: keepPreviousData });
  const rows = useMemo(() => rowsOf(query.data), [query.data]);
  const [waiting, setWaiting] = useState(NONE);
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set());
  const inSight = useRef<readonly string[]>([]);
  const follower = useRef<Follower>(undefined);

  useEffect(() => {
    const key = options.queryKey;
    const pages = () => client.getQueryData<Pages>(key);
    const set = (next: (pages: Pages) => Pages) =>
      client.setQueryData<Pages>(key, (before) => before && next(before));
    // Whether a row is there is asked for every event: not by going through all of them.
    let known: { of: Pages | undefined; ids: Set<string> } = { of: undefined, ids: new Set() };
    const ids = () => {
      const of = pages();
      if (of !== known.of) known = { of, ids: new Set(rowsOf(of).map((job) => job.id)) };
      return known.ids;
    };
    const table: Table = {
      has: (id) => ids().has(id),
      lastBeforeMore: () => {
        const last = pages()?.pages.at(-1);
        return last?.nextCursor ? last.jobs.at(-1)?.id : undefined;
      },
      inSight: () => inSight.current,
      change: (events) => {
        const change = new Map<string, (job: Job) => Job>();
        for (const event of events) {
          if (!event.jobId) continue;
          const before = change.get(event.jobId) ?? ((job: Job) => job);
          const then = afterEvent(event);
          change.set(event.jobId, (job) => then(before(job)));
        }
        set((pages) => changed(pages, change));
      },
      replace: (jobs, asked) => {
        set((pages) => changed(pages, new Map(jobs.map((job) => [job.id, newer(job)]))));
        const found = new Set(jobs.map((job) => job.id));
        const missing = asked.filter((id) => !found.has(id));
        if (missing.length > 0) setGone((before) => new Set([...before, ...missing]));
      },
      announce: (jobs) => setWaiting((before) => together(before, jobs)),
      announceMany: () => setWaiting((before) => ({ ...before, many: true })),
    };
    const follows = new Follower(table, readsOf(search));
    follower.current = follows;
    setWaiting(NONE);
    setGone(new Set());
    // A list that was left and is looked at again was not followed in between.
    const catchUp = () => {
      if (pages()) void follows.catchUp(ids());
    };
    catchUp();
    const end = feed.onConnect(catchUp);
    return () => {
      end();
      follows.stop();
    };
  }, [client, feed, options, search]);

  useFeedEvents((event) => follower.current?.hear(event));

  const look = useCallback((ids: readonly string[]) => {
    inSight.current = ids;
    follower.current?.seen();
  }, []);

  const reload = useCallback(async () => {
    setWaiting(NONE);
    setGone(new Set());
    client.setQueryData<Pages>(options.queryKey, firstPage);
    await client.refetchQueries({ queryKey: options.queryKey, exact: true });
  }, [client, options]);

  const showWaiting = useCallback(() => {
    if (waiting.many) return void reload();
    client.setQueryData<Pages>(options.queryKey, (pages) => pages && withArrivals(pages, waiting.jobs));
    setWaiting(NONE);
  }, [client, options, waiting, reload]);

  const replace = useCallback(
    (jobs: readonly Job[]) => {
      const change = new Map(jobs.map((job) => [job.id, newer(job)]));
      client.setQueryData<Pages>(options.queryKey, (pages) => pages && changed(pages, change));
    },
    [client, options],
  );

  const stateOf = useCallback(
    (job: Job): RowState => (gone.has(job.id) ? 'gone' : matches(job, search) ? 'listed' : 'elsewhere'),
    [gone, search],
  );

  return { query, rows, waiting, showWaiting, reload, look, replace, stateOf };
}

function together(before: Waiting, jobs: readonly Job[]): Waiting {
  const byId = new Map([...before.jobs, ...jobs].map((job) => [job.id, job]));
  return byId.size > MOST_NEW ? { jobs: [], many: true } : { jobs: [...byId.values()], many: before.many };
}
