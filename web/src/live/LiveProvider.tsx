import { useQueryClient } from '@tanstack/react-query';
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useEffectEvent,
  useMemo,
  useSyncExternalStore,
} from 'react';
import { Problem } from '../api/problem';
import type { FeedEvent } from '../api/types';
import { session } from '../session/session';
import { Feed, type FeedState } from './feed';
import { Freshener } from './freshen';

const FeedContext = createContext<Feed | null>(null);

export function LiveProvider({ token, children }: { token: string; children: ReactNode }) {
  const client = useQueryClient();
  const feed = useMemo(() => new Feed({ token, refused: (why) => session.end(why, token) }), [token]);
  useEffect(() => {
    const freshener = new Freshener(client);
    const ends = [
      feed.onEvent((event) => freshener.touch(event)),
      feed.onConnect(() => freshener.all()),
      client.getQueryCache().subscribe((happened) => {
        if (happened.type === 'updated' && isAbsence(happened.action)) feed.recheck();
      }),
    ];
    feed.start();
    return () => {
      feed.stop();
      freshener.stop();
      for (const end of ends) end();
    };
  }, [client, feed]);
  return <FeedContext value={feed}>{children}</FeedContext>;
}

/// A call without an answer, or with one from a proxy only.
function isAbsence(action: { type: string; error?: unknown }): boolean {
  if (action.type !== 'failed' && action.type !== 'error') return false;
  const { code, status } = Problem.from(action.error);
  return code === 'unreachable' || (code === 'unknown' && status >= 502 && status <= 504);
}

export function useFeed(): Feed {
  const feed = useContext(FeedContext);
  if (!feed) throw new Error('there is no feed outside of LiveProvider');
  return feed;
}

export function useFeedState(): FeedState {
  const feed = useFeed();
  return useSyncExternalStore(feed.onState, feed.state);
}

/// Calls `handler` with every event of the feed while the component is shown.
export function useFeedEvents(handler: (event: FeedEvent) => void): void {
  const feed = useFeed();
  const onEvent = useEffectEvent(handler);
  useEffect(() => feed.onEvent((event) => onEvent(event)), [feed]);
}
