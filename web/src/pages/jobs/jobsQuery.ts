// Reads of the list: pages, and single rows by id.

import { infiniteQueryOptions, type QueryKey, queryOptions } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { keys } from '../../api/queries';
import type { Job } from '../../api/types';
import type { JobsSearch } from '../../app/search';
import { toParams } from './filter';
import type { Reads } from './follow';
import { type Pages, withPage } from './rows';

const PAGE = 100;

async function page(search: JobsSearch, cursor: string | undefined, signal: AbortSignal) {
  const { header, query } = toParams(search);
  return answer(
    api.GET('/api/fleet/jobs', {
      params: { header, query: { ...query, limit: String(PAGE), cursor } },
      signal,
    }),
  );
}

export const jobListQuery = (search: JobsSearch) =>
  infiniteQueryOptions({
    queryKey: [...keys.jobs, search],
    queryFn: ({ pageParam, signal }) => page(search, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.nextCursor ?? undefined,
    // Rows are changed in place as events come (follow.ts). A refetch would read every page that was ever scrolled to.
    staleTime: Number.POSITIVE_INFINITY,
    meta: { followsFeed: true },
  });

/// Appends the next page. `fetchNextPage` would append it to the pages as they were when it began, and undo what changed
/// since.
export const nextPageQuery = (search: JobsSearch, cursor: string) => {
  const { queryKey } = jobListQuery(search);
  return queryOptions({
    queryKey: nextPageKey(queryKey, cursor),
    queryFn: async ({ signal, client }) => {
      const next = await page(search, cursor, signal);
      client.setQueryData<Pages>(queryKey, (pages) => pages && withPage(pages, cursor, next));
      return true;
    },
    staleTime: 0,
    gcTime: 0,
    meta: { followsFeed: true },
  });
};

/// Below the key of the list, so that it counts when somebody asks whether the list is being fetched.
export const nextPageKey = (list: QueryKey, ...cursor: string[]): QueryKey => [...list, 'next', ...cursor];

async function byId(ids: readonly string[], search: JobsSearch, signal: AbortSignal): Promise<Job[]> {
  const { header, query } = toParams(search);
  const params = { header, query: { ...query, id: ids.join(','), limit: String(PAGE) } };
  return (await answer(api.GET('/api/fleet/jobs', { params, signal }))).jobs;
}

export function readsOf(search: JobsSearch): Reads {
  return {
    byId: (ids, signal) => byId(ids, {}, signal),
    matching: (ids, signal) => byId(ids, search, signal),
    newest: async (signal, from) => {
      const { jobs, nextCursor } = await page(search, from, signal);
      return { jobs, next: nextCursor ?? undefined };
    },
  };
}
