import { describe, expect, it } from 'vitest';
import type { Explanation, FeedEvent, Job, Run } from '../../../api/types';
import { STAGES } from '../../../api/vocabulary';
import { job as anyJob } from '../../../test/things';
import { jobStatus, leaseLeft, spending } from './status';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const at = (seconds: number) => new Date(NOW + seconds * 1_000).toISOString();

const job = (part: Partial<Job>) =>
  anyJob(1, { leaseEpoch: 2, createdAt: at(-600), updatedAt: at(-60), enqueuedAt: at(-300), ...part });

const title = (
  part: Partial<Job>,
  more: { explanation?: Explanation; runs?: Run[]; events?: FeedEvent[] } = {},
) => jobStatus({ job: job(part), now: NOW, ...more }).title;

describe.each(STAGES)('%s', (stage) => {
  it('has something to say about itself, whatever is missing', () => {
    const status = jobStatus({ job: job({ stage }), now: NOW });
    expect(`${status.title} ${status.detail ?? ''}`).not.toMatch(/undefined|NaN|null/);
    expect(status.title.length).toBeGreaterThan(5);
    expect(status.since).toBeDefined();
  });
});

describe('queued', () => {
  const nowhere: Explanation = {
    summary: 'no factory has what it needs',
    blockers: [{ code: 'capabilities', message: 'nobody has has:xcode' }],
    remedies: [],
    factories: [{ factoryId: 'a', feasible: false } as never],
  };
  it('says why it waits, in the words of the explanation', () => {
    const status = jobStatus({ job: job({}), now: NOW, explanation: nowhere });
    expect(status).toMatchObject({
      tone: 'warn',
      title: 'No factory has what it needs',
      detail: 'nobody has has:xcode',
      since: at(-300),
    });
  });
  it('says who has the offer, and when its time comes', () => {
    expect(title({ targetFactoryId: 'mac-1' })).toBe('Offered to mac-1, not claimed yet');
    const retry = { readyAt: at(90), failure: { reason: 'lease_expired' as const }, attempts: 1 };
    expect(title(retry)).toMatch(/^Retrying at \d\d:\d\d \(attempt 2\)$/);
    expect(title({ ...retry, manifest: { retry: { max: 5 } } })).toMatch(
      /^Retrying at \d\d:\d\d \(attempt 2 of 6\)$/,
    );
    expect(jobStatus({ job: job(retry), now: NOW }).detail).toBe('Lease expired');
    expect(title({ readyAt: at(90) })).toMatch(/^Scheduled for \d\d:\d\d$/);
    expect(title({ readyAt: at(400 * 86_400) })).toMatch(/^Scheduled for \d\d:\d\d on \d+ \w+ 2027$/);
    expect(title({ readyAt: at(-1) })).toBe('Waiting for a factory');
  });
});

it('blocked: by how many', () => {
  expect(title({ stage: 'blocked', deps: ['a', 'b'] })).toBe('Waiting for 2 other jobs');
  expect(title({ stage: 'blocked', deps: ['a', 'b'], depsMode: 'any' })).toBe(
    'Waiting for one of 2 other jobs',
  );
  expect(title({ stage: 'blocked', kind: 'composite' })).toBe('Waiting for its children');
});

describe('held', () => {
  const lease = { factoryId: 'mac-1', grantedAt: at(-30), expiresAt: at(20), reservedUsd: 2, spentUsd: 0.5 };
  it('by whom, and what it costs', () => {
    expect(title({ stage: 'assigned', lease })).toBe('Starting on mac-1');
    expect(title({ stage: 'building', lease })).toBe('Running on mac-1');
    expect(spending(job({ lease }))).toBe('$0.50 spent of $2.00 reserved');
    expect(leaseLeft(job({ lease }), NOW)?.text).toBe('20 s left');
  });
  it('by a factory that went offline', () => {
    const offline = { ...lease, expiresAt: at(-7) };
    const status = jobStatus({ job: job({ stage: 'building', lease: offline }), now: NOW });
    expect(status).toMatchObject({ tone: 'bad', title: 'mac-1 is offline: its lease ended 7 s ago' });
    expect(status.detail).toContain('queued again');
    expect(leaseLeft(job({ lease: offline }), NOW)).toEqual({ share: 0, text: 'ended 7 s ago' });
  });
  it('since when the work began', () => {
    const runs = [{ leaseEpoch: 2, startedAt: at(-25) } as Run];
    expect(jobStatus({ job: job({ stage: 'building', lease }), now: NOW, runs }).since).toBe(at(-25));
  });
});

it('review: how many approvals are left, and from whom', () => {
  expect(title({ stage: 'review' })).toBe('Waiting for 1 approval from anyone');
  expect(title({ stage: 'review', gate: { quorum: 3, reviewers: ['ana', 'bo'] }, approvals: ['ana'] })).toBe(
    'Waiting for 2 more approvals from ana or bo',
  );
});

it('shipping: how far it is on its way into its branch', () => {
  const merge = { failures: 0, redos: 0 };
  expect(title({ stage: 'shipping', merge: { ...merge, state: 'waiting' } })).toBe(
    'Waiting for its turn to be merged',
  );
  expect(title({ stage: 'shipping', merge: { ...merge, state: 'merging', factoryId: 'mac-1' } })).toBe(
    'Merging and checking the merged tree on mac-1',
  );
  expect(title({ stage: 'shipping', merge: { ...merge, state: 'pushing', into: 'main' } })).toBe(
    'Pushing it to main',
  );
  const refused = jobStatus({
    job: job({ stage: 'shipping', merge: { ...merge, state: 'waiting', failures: 4, detail: 'protected' } }),
    now: NOW,
  });
  expect(refused).toMatchObject({
    tone: 'warn',
    title: 'Merge failed 4 times, retrying',
    detail: 'protected',
  });
});

it('shipped: where it is', () => {
  expect(title({ stage: 'shipped' })).toBe('Shipped');
  const merge = { failures: 0, redos: 0, state: 'merged' as const, commit: '1234567890abcdef', into: 'main' };
  expect(title({ stage: 'shipped', merge })).toBe('Shipped: merged into main as 1234567890ab');
});

it('failed and dead letter: why', () => {
  const failure = { reason: 'verify_failed' as const, detail: 'sh test.sh said no' };
  expect(jobStatus({ job: job({ stage: 'failed', failure }), now: NOW })).toMatchObject({
    tone: 'bad',
    title: 'Verification failed',
    detail: 'sh test.sh said no',
  });
  expect(title({ stage: 'dead_letter', failure, attempts: 4 })).toBe(
    'Gave up after 4 attempts: verification failed',
  );
});

it('cancelled: by whom', () => {
  const events = [
    { type: 'job.cancelled', actor: 'token ana', cause: 'cancelled by an operator', at: at(-5) } as FeedEvent,
  ];
  expect(jobStatus({ job: job({ stage: 'cancelled' }), now: NOW, events })).toMatchObject({
    title: 'Cancelled by token ana',
    detail: undefined,
    since: at(-5),
  });
});
