// Jobs, factories, graphs and events for tests: whole, and in the usual state but for what the test says.

import type { Dag, DagJob, Factory, FeedEvent, Job, Pool, PoolMember } from '../api/types';
import { DEFAULTS } from '../pages/pools/fields';

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

/// The document knows of `data` only that it is an object, and a coordinator may be newer than the types.
export function event(
  type: string,
  more: Partial<Omit<FeedEvent, 'data'>> & { data?: object } = {},
): FeedEvent {
  return { pos: 1, at: '2026-01-01T00:01:00Z', type, cause: '', actor: '', data: {}, ...more } as FeedEvent;
}

/// Of `job(n)`.
export const eventOf = (n: number, type: string, more: Parameters<typeof event>[1] = {}): FeedEvent =>
  event(type, { pos: n, jobId: idOf(n), ...more });

export function factory(more: Partial<Factory> = {}): Factory {
  return {
    id: 'mac-1',
    state: 'active',
    live: true,
    health: 'ok',
    capabilities: ['os:linux', 'engine:shell'],
    advertised: [],
    products: [],
    repos: [{ name: 'parser' }],
    canClone: false,
    seatLimit: 4,
    seatsUsed: 1,
    load: 0.25,
    delivery: 'stream',
    actualDelivery: 'stream',
    running: [],
    enrolledAt: '2026-11-15T00:00:00Z',
    lastSeenAt: '2026-11-15T01:00:00Z',
    ...more,
  };
}

/// A job of a graph, below its root.
export function node(id: string, more: Partial<DagJob> = {}): DagJob {
  const usual = { kind: 'agent', stage: 'queued', depth: 1, parentId: 'root', depsMode: 'all' } as const;
  return { id, name: id.toUpperCase(), ...usual, deps: [], attempts: 0, ...more };
}

export function dag(jobs: DagJob[], outside: Dag['outside'] = []): Dag {
  const root = node('root', { parentId: null, depth: 0, kind: 'composite', stage: 'blocked' });
  const progress = { total: 3, shipped: 1, percent: 33, spentUsd: 0, byStage: {} };
  return { rootId: 'root', jobs: [{ ...root, progress }, ...jobs], outside, truncated: false, progress };
}

export function member(factoryId: string, more: Partial<PoolMember> = {}): PoolMember {
  return {
    factoryId,
    state: 'running',
    since: '2026-11-15T00:00:00Z',
    orderedAt: '2026-11-15T00:00:00Z',
    jobs: 0,
    live: true,
    draining: false,
    ...more,
  };
}

export function pool(more: Partial<Pool> = {}): Pool {
  return {
    name: 'gpu',
    settings: { ...DEFAULTS, max: 4 },
    rev: 1,
    state: 'quiet',
    summary: 'nothing is wanted of it',
    target: 0,
    waiting: 0,
    starts: 0,
    members: [],
    ...more,
  };
}
