import { useQuery } from '@tanstack/react-query';
import { nextPageQuery } from './jobsQuery';
import type { useJobList } from './useJobList';

/// The next page is fetched when so few rows are left below.
const NEAR_THE_END = 40;

export function useNextPage({ search, query }: ReturnType<typeof useJobList>, below: number) {
  const cursor = query.data?.pages.at(-1)?.nextCursor ?? undefined;
  const isWanted = below < NEAR_THE_END && !query.isFetching && !query.isPlaceholderData;
  return useQuery({ ...nextPageQuery(search, cursor ?? ''), enabled: cursor !== undefined && isWanted });
}
