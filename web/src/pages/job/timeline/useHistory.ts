import { useCallback, useEffect, useRef, useState } from 'react';
import { answer, api } from '../../../api/client';
import type { components } from '../../../api/schema';
import type { FeedEvent } from '../../../api/types';
import { useFeed, useFeedEvents } from '../../../live/LiveProvider';

type EventPage = components['schemas']['EventPage'];

const PAGE = '500';

function eventsAfter(id: string, after: number, signal: AbortSignal): Promise<EventPage> {
  const query = { after: String(after), limit: PAGE };
  return answer(api.GET('/api/fleet/jobs/{id}/events', { params: { path: { id }, query }, signal }));
}

export interface JobHistory {
  history: History;
  /// The first fetch is done.
  loaded: boolean;
  error: unknown;
  retry: () => void;
}

/// Everything that happened to a job: what there is, page by page, and then what the feed brings.
export function useHistory(id: string): JobHistory {
  const feed = useFeed();
  const [history, setHistory] = useState<History>(NO_HISTORY);
  const [loaded, setLoaded] = useState(false);
  const [error, setError] = useState<unknown>();
  const newest = useRef(history);
  const fetching = useRef<AbortController | null>(null);
  // An event came while a page was being fetched, which may not have it yet.
  const again = useRef(false);

  const take = useCallback((events: readonly FeedEvent[]) => {
    newest.current = withEvents(newest.current, events);
    setHistory(newest.current);
  }, []);

  const fill = useCallback(async () => {
    if (fetching.current) {
      again.current = true;
      return;
    }
    const abort = new AbortController();
    fetching.current = abort;
    try {
      for (
        let after: number | null | undefined = lastSeq(newest.current);
        after !== undefined && after !== null;
      ) {
        const page: EventPage = await eventsAfter(id, after, abort.signal);
        if (abort.signal.aborted) return;
        take(page.events);
        after = page.nextAfter;
        if (again.current && (after === undefined || after === null)) {
          again.current = false;
          after = lastSeq(newest.current);
        }
      }
      setError(undefined);
      setLoaded(true);
    } catch (problem) {
      if (!abort.signal.aborted) setError(problem);
    } finally {
      if (fetching.current === abort) fetching.current = null;
    }
  }, [id, take]);

  useEffect(() => {
    newest.current = NO_HISTORY;
    setHistory(NO_HISTORY);
    setLoaded(false);
    void fill();
    const end = feed.onConnect(() => void fill());
    return () => {
      end();
      fetching.current?.abort();
      fetching.current = null;
    };
  }, [feed, fill]);

  useFeedEvents((event) => {
    if (event.jobId !== id) return;
    take([event]);
    if (newest.current.missingAfter !== undefined) void fill();
  });

  return { history, loaded, error, retry: () => void fill() };
}

interface History {
  /// By `seq`, from 1 up.
  readonly events: readonly FeedEvent[];
  /// Something after this `seq` has to be fetched.
  readonly missingAfter?: number;
}

export const NO_HISTORY: History = { events: [] };

export function lastSeq(history: History): number {
  return history.events.at(-1)?.seq ?? 0;
}

/// Adds events in any order, any number of times. After a gap the rest is left out and fetched.
export function withEvents(history: History, incoming: readonly FeedEvent[]): History {
  const events = [...history.events];
  let missingAfter: number | undefined;
  const sorted = incoming.filter((event) => typeof event.seq === 'number');
  sorted.sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0));
  for (const event of sorted) {
    const last = events.at(-1)?.seq ?? 0;
    const seq = event.seq ?? 0;
    if (seq <= last) continue;
    if (seq > last + 1) {
      missingAfter = last;
      break;
    }
    events.push(event);
  }
  if (events.length === history.events.length && missingAfter === history.missingAfter) return history;
  return { events, missingAfter };
}
