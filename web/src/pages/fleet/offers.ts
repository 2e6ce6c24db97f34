// Which jobs are offered to a factory and not taken yet. The list of queued jobs says how it stands, the feed what came
// after; an offer is over with the next thing that happens to its job.

import type { FeedEvent, Job } from '../../api/types';

/// The factory by the job.
export type Offers = ReadonlyMap<string, string>;

export function offersOf(queued: readonly Job[]): Offers {
  const offers = new Map<string, string>();
  for (const job of queued) {
    if (job.stage === 'queued' && job.targetFactoryId) offers.set(job.id, job.targetFactoryId);
  }
  return offers;
}

export function afterEvent(offers: Offers, event: FeedEvent): Offers {
  const { jobId, type } = event;
  if (!jobId || !type.startsWith('job.')) return offers;
  const factory = type === 'job.targeted' ? factoryOf(event) : undefined;
  if (factory === offers.get(jobId)) return offers;
  const next = new Map(offers);
  if (factory) next.set(jobId, factory);
  else next.delete(jobId);
  return next;
}

function factoryOf(event: FeedEvent): string | undefined {
  const id = (event.data as Record<string, unknown>).factoryId;
  return typeof id === 'string' && id !== '' ? id : undefined;
}

export function offeredTo(offers: Offers): Map<string, number> {
  const counts = new Map<string, number>();
  for (const factory of offers.values()) counts.set(factory, (counts.get(factory) ?? 0) + 1);
  return counts;
}
