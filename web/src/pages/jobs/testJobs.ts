// Jobs for the tests of this folder.

import type { FeedEvent, Job } from '../../api/types';
import type { EventType } from '../../api/vocabulary';

/// Ids sort as numbers do: `job(12)` is newer than `job(9)`.
export const idOf = (n: number): string => `01J${String(n).padStart(23, '0')}`;

export function job(n: number, more: Partial<Job> = {}): Job {
  return {
    id: idOf(n),
    productId: 'demo',
    name: `job-${n}`,
    kind: 'agent',
    stage: 'queued',
    priority: 'normal',
    rev: 1,
    leaseEpoch: 0,
    capabilities: [],
    deps: [],
    depsMode: 'all',
    attempts: 0,
    dispatchSeq: 0,
    createdAt: '2026-01-01T00:00:00Z',
    updatedAt: '2026-01-01T00:00:00Z',
    enqueuedAt: '2026-01-01T00:00:00Z',
    ...more,
  };
}

export function event(
  n: number,
  type: EventType,
  more: Partial<Omit<FeedEvent, 'data'>> & { data?: Record<string, unknown> } = {},
): FeedEvent {
  return {
    pos: n,
    jobId: idOf(n),
    at: '2026-01-01T00:01:00Z',
    type,
    cause: '',
    actor: '',
    ...more,
    // The document knows only that it is an object.
    data: (more.data ?? {}) as FeedEvent['data'],
  };
}
