import { useEffect } from 'react';
import { useFeedState } from '../../live/LiveProvider';
import type { useJobList } from './useJobList';

/// Rows that no longer match stay for so long, so that one sees what became of them. Then, and where the first page has
/// grown beyond so many rows, the list is read anew, if nobody is busy with it.
export const TIDY_AFTER = 10_000;
const MOST_ON_FIRST = 300;

/// On a screen that nobody touches the list would only ever grow.
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
