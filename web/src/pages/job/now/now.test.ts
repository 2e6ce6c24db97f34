import { describe, expect, it } from 'vitest';
import { type Explanation, type FeedEvent, type Job, type Run, STAGES } from '../../../api/types';
import { leaseLeft, spending, tellNow } from './now';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const at = (seconds: number) => new Date(NOW + seconds * 1_000).toISOString();

function job(part: Partial<Job>): Job {
  return {
    id: 'J1',
    productId: 'demo',
    name: 'fix',
    kind: 'agent',
    stage: 'queued',
    priority: 'normal',
    rev: 1,
    leaseEpoch: 2,
    capabilities: [],
    deps: [],
    depsMode: 'all',
    attempts: 0,
    dispatchSeq: 0,
    createdAt: at(-600),
    updatedAt: at(-60),
    enqueuedAt: at(-300),
    ...part,
  } as Job;
}

const title = (
  part: Partial<Job>,
  more: { explanation?: Explanation; runs?: Run[]; events?: FeedEvent[] } = {},
) => tellNow({ job: job(part), now: NOW, ...more }).title;

describe.each(STAGES)('%s', (stage) => {
  it('has something to say about itself, whatever is missing', () => {
    const told = tellNow({ job: job({ stage }), now: NOW });
    expect(`${told.title} ${told.detail ?? ''}`).not.toMatch(/undefined|NaN|null/);
    expect(told.title.length).toBeGreaterThan(5);
    expect(told.since).toBeDefined();
  });
});

describe('queued', () => {
  const nowhere: Explanation = {
    summary: 'no factory has what it needs',
    blockers: [{ code: 'capability', message: 'nobody has has:xcode' }],
    remedies: [],
    factories: [{ factoryId: 'a', feasible: false } as never],
  };
  it('says why it waits, in the words of the explanation', () => {
    const told = tellNow({ job: job({}), now: NOW, explanation: nowhere });
    expect(told).toMatchObject({
      tone: 'warn',
      title: 'No factory has what it needs',
      detail: 'nobody has has:xcode',
      since: at(-300),
    });
  });
  it('says who has the offer, and when its time comes', () => {
    expect(title({ targetFactoryId: 'mac-1' })).toBe('Offered to mac-1, which has not taken it yet');
    expect(title({ readyAt: at(90), failure: { reason: 'lease_expired' } })).toBe(
      'Waits for its time after a failure (lease expired): starts in 1 min 30 s at the earliest',
    );
    expect(title({ readyAt: at(-1) })).toBe('Waits for a place');
  });
});

it('blocked: by how many', () => {
  expect(title({ stage: 'blocked', deps: ['a', 'b'] })).toBe('Waits for 2 other jobs');
  expect(title({ stage: 'blocked', deps: ['a', 'b'], depsMode: 'any' })).toBe(
    'Waits for one of 2 other jobs',
  );
  expect(title({ stage: 'blocked', kind: 'composite' })).toBe('Waits for its children');
});

describe('held', () => {
  const lease = { factoryId: 'mac-1', grantedAt: at(-30), expiresAt: at(20), reservedUsd: 2, spentUsd: 0.5 };
  it('by whom, and what it costs', () => {
    expect(title({ stage: 'assigned', lease })).toBe('mac-1 has taken it and makes ready');
    expect(title({ stage: 'building', lease })).toBe('mac-1 works on it');
    expect(spending(job({ lease }))).toBe('$0.50 spent of $2.00 set aside');
    expect(leaseLeft(job({ lease }), NOW)?.text).toBe('20 s left');
  });
  it('by somebody who went silent', () => {
    const silent = { ...lease, expiresAt: at(-7) };
    const told = tellNow({ job: job({ stage: 'building', lease: silent }), now: NOW });
    expect(told).toMatchObject({ tone: 'bad', title: 'mac-1 is silent: its lease ended 7 s ago' });
    expect(told.detail).toContain('comes back to the queue');
    expect(leaseLeft(job({ lease: silent }), NOW)).toEqual({ share: 0, text: 'ended 7 s ago' });
  });
  it('since when the work began', () => {
    const runs = [{ leaseEpoch: 2, startedAt: at(-25) } as Run];
    expect(tellNow({ job: job({ stage: 'building', lease }), now: NOW, runs }).since).toBe(at(-25));
  });
});

it('review: how many approvals are left, and from whom', () => {
  expect(title({ stage: 'review' })).toBe('Waits for 1 approval from anyone');
  expect(title({ stage: 'review', gate: { quorum: 3, reviewers: ['ana', 'bo'] }, approvals: ['ana'] })).toBe(
    'Waits for 2 more approvals from ana or bo',
  );
});

it('shipped: what became of the result', () => {
  const result = { leaseEpoch: 1, branch: 'b', commit: 'abcdef0123456789' };
  expect(title({ stage: 'shipped', result })).toBe('Shipped: commit abcdef012345');
  expect(title({ stage: 'shipped', merge: { state: 'merged', commit: '1234567890abcdef' } })).toBe(
    'Shipped and merged as 1234567890ab',
  );
  expect(title({ stage: 'shipped', merge: { state: 'waiting' } })).toBe('Shipped; waits to be merged');
  const conflict = tellNow({
    job: job({ stage: 'shipped', merge: { state: 'conflict', detail: 'a.txt' } }),
    now: NOW,
  });
  expect(conflict).toMatchObject({ tone: 'bad', detail: 'a.txt' });
});

it('failed and given up: why', () => {
  const failure = { reason: 'verify_failed', detail: 'sh test.sh said no' };
  expect(tellNow({ job: job({ stage: 'failed', failure }), now: NOW })).toMatchObject({
    tone: 'bad',
    title: 'Failed: verify failed',
    detail: 'sh test.sh said no',
  });
  expect(title({ stage: 'dead_letter', failure, attempts: 4 })).toBe(
    'Given up after 4 attempts: verify failed',
  );
});

it('cancelled: by whom', () => {
  const events = [
    { type: 'job.cancelled', actor: 'token ana', cause: 'cancelled by an operator', at: at(-5) } as FeedEvent,
  ];
  expect(tellNow({ job: job({ stage: 'cancelled' }), now: NOW, events })).toMatchObject({
    title: 'Cancelled by token ana',
    detail: undefined,
    since: at(-5),
  });
});
