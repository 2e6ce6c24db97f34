// What only this page reads. The keys begin with those that the feed makes stale.

import { type QueryKey, queryOptions } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { keys, POLLED, reads } from '../../api/queries';
import type { components } from '../../api/schema';
import type { FeedEvent } from '../../api/types';
import { type Stage, stagesIn } from '../../api/vocabulary';

type EventPage = components['schemas']['EventPage'];

/// The longest page of the job list; a fleet with more running jobs shows ids for the rest.
const MOST = '500';

/// Names and ages of what runs, in one call for all factories.
export const runningQuery = () => listed([...keys.factories, 'running'], stagesIn('running'), MOST);

/// The queue, for what is offered and not claimed yet. Seldom: the feed brings the rest (factories.ts).
export const queuedQuery = () => listed(['offers'], stagesIn('queued'), '200');

const listed = (key: QueryKey, stage: Stage[], limit: string) =>
  reads(key, (init) => api.GET('/api/fleet/jobs', { params: { query: { stage, limit } }, ...init }), POLLED);

/// How far back the last events are looked for. Somebody who sees one product of many has to look further.
const BACK = [60, 1_000, 10_000];
const PAGES = 5;

/// The end of the feed, newest first, so that the activity does not begin empty.
export async function lastEvents(most: number, signal: AbortSignal): Promise<FeedEvent[]> {
  const { feedHead } = await answer(api.GET('/api/fleet/metrics', { signal }));
  let last: FeedEvent[] = [];
  for (const back of BACK) {
    last = await eventsFrom(Math.max(0, feedHead - back), signal);
    if (last.length >= most || back >= feedHead) break;
  }
  return last.slice(-most).reverse();
}

async function eventsFrom(start: number, signal: AbortSignal): Promise<FeedEvent[]> {
  const found: FeedEvent[] = [];
  let after: number | null | undefined = start;
  for (let page = 0; page < PAGES && typeof after === 'number'; page += 1) {
    const query = { after: String(after), limit: MOST };
    const answered: EventPage = await answer(api.GET('/api/fleet/events', { params: { query }, signal }));
    found.push(...answered.events);
    after = answered.nextAfter;
  }
  return found;
}

export async function jobNames(ids: readonly string[], signal?: AbortSignal): Promise<[string, string][]> {
  const query = { id: ids.join(','), limit: String(ids.length) };
  const page = await answer(api.GET('/api/fleet/jobs', { params: { query }, signal }));
  return page.jobs.map((job) => [job.id, job.name]);
}

/// Names of a few jobs. A name never changes.
export const namesQuery = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ['names', ...ids],
    queryFn: ({ signal }) => jobNames(ids, signal),
    enabled: ids.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (old) => old,
  });
