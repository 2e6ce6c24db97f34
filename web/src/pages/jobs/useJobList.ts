// The live list: its rows, new jobs that are not shown yet, and rows that no longer match.

import {
  keepPreviousData,
  useInfiniteQuery,
  useIsFetching,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Job } from '../../api/types';
import type { JobsSearch } from '../../app/search';
import { useFeed, useFeedEvents, useFeedState } from '../../live/LiveProvider';
import { matches } from './filter';
import { Follower, MOST_NEW, type Table } from './follow';
import { jobListQuery, nextPageKey, nextPageQuery, readsOf } from './jobsQuery';
import { afterEvent, changed, firstPage, newer, type Pages, rowsOf, withArrivals } from './rows';

/// New jobs that are not in the list yet; `many` if they were not even fetched, `older` if some may be missing further
/// down.
export interface Waiting {
  jobs: readonly Job[];
  many: boolean;
  older: boolean;
}
const NONE: Waiting = { jobs: [], many: false, older: false };

export function isAny({ jobs, many, older }: Waiting): boolean {
  return jobs.length > 0 || many || older;
}

export type RowState = 'listed' | 'elsewhere' | 'gone';

export function useJobList(search: JobsSearch) {
  const client = useQueryClient();
  const feed = useFeed();
  const options = useMemo(() => jobListQuery(search), [search]);
  const query = useInfiniteQuery({ ...options, placeholderData: keepPreviousData });
  const rows = useMemo(() => rowsOf(query.data), [query.data]);
  const [announced, setWaiting] = useState(NONE);
  const waiting = useMemo(() => notListed(announced, rows), [announced, rows]);
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set());
  const inSight = useRef<readonly string[]>([]);
  const follower = useRef<Follower>(undefined);

  useEffect(() => {
    const key = options.queryKey;
    const pages = () => client.getQueryData<Pages>(key);
    const set = (next: (pages: Pages) => Pages) =>
      client.setQueryData<Pages>(key, (before) => before && next(before));
    // Checked for every event, so it must not scan all rows.
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
      isReading: () => client.isFetching({ queryKey: key }) > 0,
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
      announceOlder: () => setWaiting((before) => ({ ...before, older: true })),
      withdraw: (ids) => setWaiting((before) => without(before, new Set(ids))),
    };
    const follows = new Follower(table, readsOf(search));
    follower.current = follows;
    setWaiting(NONE);
    setGone(new Set());
    // A list that was left and is shown again was not followed in between.
    const catchUp = (resumed: boolean) => {
      if (pages()) void follows.catchUp(ids(), resumed);
    };
    catchUp(false);
    const end = feed.onConnect(catchUp);
    return () => {
      end();
      follows.stop();
    };
  }, [client, feed, options, search]);

  const reading = useIsFetching({ queryKey: options.queryKey });
  useEffect(() => {
    if (reading === 0) follower.current?.settled();
  }, [reading]);

  useFeedEvents((event) => follower.current?.onEvent(event));

  const look = useCallback((ids: readonly string[]) => {
    inSight.current = ids;
    follower.current?.seen();
  }, []);

  const reload = useCallback(async () => {
    setWaiting(NONE);
    setGone(new Set());
    await client.cancelQueries({ queryKey: nextPageKey(options.queryKey) });
    client.setQueryData<Pages>(options.queryKey, firstPage);
    await client.refetchQueries({ queryKey: options.queryKey, exact: true });
  }, [client, options]);

  const showWaiting = useCallback(() => {
    if (waiting.many || waiting.older) return void reload();
    client.setQueryData<Pages>(options.queryKey, (pages) => pages && withArrivals(pages, waiting.jobs));
    setWaiting(NONE);
    // They were fetched when they were announced, and not followed since.
    follower.current?.recheck(waiting.jobs.map((job) => job.id));
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

  const strays = useMemo(
    () => (query.isPlaceholderData ? 0 : rows.filter((job) => stateOf(job) !== 'listed').length),
    [query.isPlaceholderData, rows, stateOf],
  );

  return { search, query, rows, strays, waiting, showWaiting, reload, look, replace, stateOf };
}

function together(before: Waiting, jobs: readonly Job[]): Waiting {
  const byId = new Map([...before.jobs, ...jobs].map((job) => [job.id, job]));
  return byId.size > MOST_NEW ? { ...before, jobs: [], many: true } : { ...before, jobs: [...byId.values()] };
}

function without(before: Waiting, ids: ReadonlySet<string>): Waiting {
  if (!before.jobs.some((job) => ids.has(job.id))) return before;
  return { ...before, jobs: before.jobs.filter((job) => !ids.has(job.id)) };
}

/// The list may have been fetched since they were announced.
function notListed(waiting: Waiting, rows: readonly Job[]): Waiting {
  if (waiting.jobs.length === 0) return waiting;
  return without(waiting, new Set(rows.map((job) => job.id)));
}

/// The next page is fetched when fewer rows than this are left below.
const NEAR_THE_END = 40;

export function useNextPage({ search, query }: ReturnType<typeof useJobList>, below: number) {
  const cursor = query.data?.pages.at(-1)?.nextCursor ?? undefined;
  const isWanted = below < NEAR_THE_END && !query.isFetching && !query.isPlaceholderData;
  return useQuery({ ...nextPageQuery(search, cursor ?? ''), enabled: cursor !== undefined && isWanted });
}

/// Rows that no longer match stay this long, so that people see what became of them. Then, or when the first page has grown
/// too long, the list is reloaded, if nobody is using it.
export const TIDY_AFTER = 10_000;
const MOST_ON_FIRST = 300;

/// On an unattended screen the list would only ever grow.
export function useTidying({ strays, query, reload }: ReturnType<typeof useJobList>, isCalm: boolean): void {
  const isLive = useFeedState().kind === 'live';
  const isUntidy = strays > 0 || (query.data?.pages[0]?.jobs.length ?? 0) > MOST_ON_FIRST;
  const failedAt = query.errorUpdatedAt;
  // biome-ignore lint/correctness/useExhaustiveDependencies: where it failed it is tried again
  useEffect(() => {
    if (!isCalm || !isLive || !isUntidy) return;
    const timer = setTimeout(() => void reload(), TIDY_AFTER);
    return () => clearTimeout(timer);
  }, [isCalm, isLive, isUntidy, reload, failedAt]);
}
