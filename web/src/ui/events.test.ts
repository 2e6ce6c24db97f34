import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { FeedEvent } from '../api/types';
import { event } from '../test/things';
import { eventSentence, eventSubject, eventWords, failureTitle, isKnown } from './events';

// The coordinator writes this page from its own list of events.
const documented = [...readFileSync('../docs/events.md', 'utf8').matchAll(/^\| `([a-z_.]+)` \|/gm)].map(
  (row) => row[1] ?? '',
);

it('the page lists the events that this test goes by', () => {
  expect(documented.length).toBeGreaterThan(40);
  expect(documented).toContain('job.lease_expired');
});

describe.each(documented)('%s', (type) => {
  it('has a sentence of its own, also when its data is missing or nonsense', () => {
    expect(isKnown(type)).toBe(true);
    const nonsense = {
      factoryId: {},
      size: 'x',
      quorum: null,
      reviewers: 'ana',
      usdMicros: Number.NaN,
      commit: [],
    };
    for (const data of [{}, nonsense]) {
      const told = eventSentence(event(type, { data }));
      expect(told).not.toMatch(/undefined|NaN|null|\[object/);
      expect(told).not.toContain(type);
      expect(told.length).toBeGreaterThan(5);
    }
  });
});

describe('sentences', () => {
  it.each([
    [event('job.assigned', { data: { factoryId: 'mac-1', leaseEpoch: 3 } }), 'Claimed by mac-1 as run 3'],
    [
      event('job.failed', { data: { reason: 'verify_failed', detail: 'sh test.sh' } }),
      'Verification failed: sh test.sh',
    ],
    [event('job.reported', { from: 'building', to: 'review' }), 'Succeeded; waiting for review'],
    [
      event('job.changes_requested', {
        cause: 'ana asked for changes: a test: please',
        data: { reviewer: 'ana' } as never,
      }),
      'ana requested changes; queued for another run: a test: please',
    ],
    [
      event('job.approved', {
        from: 'review',
        to: 'testing',
        cause: 'bo approved',
        data: { reviewer: 'bo' } as never,
      }),
      'Approved by bo; the review is complete',
    ],
    [event('job.settled_up', { data: { usdMicros: 1_250_000 } }), 'Final cost of the cancelled run: $1.25'],
    [event('job.requeued', { cause: 'try again with more memory' }), 'Requeued: try again with more memory'],
    [event('job.unheard_of', { cause: 'something new' }), 'job.unheard_of: something new'],
    [event('constructor', { cause: 'not ours' }), 'constructor: not ours'],
  ])('%#', (told, text) => {
    expect(eventSentence(told)).toBe(text);
  });
});

it('has words for a type that came later', () => {
  expect(eventWords({ type: 'job.lease_expired' })).toBe('lease expired');
  expect(eventWords({ type: 'job.cloned_anew' })).toBe('cloned anew');
});

it('knows what an event without a job is about', () => {
  const about = (data: object, part: Partial<FeedEvent> = {}) =>
    eventSubject(event('job.started', { ...part, data: data }));
  expect(about({ factoryId: 'mac-1' })).toBe('mac-1');
  expect(about({ topic: 'mail' }, { productId: 'demo' })).toBe('mail');
  expect(about({ name: 3 }, { productId: 'demo' })).toBe('demo');
  expect(about({})).toBeUndefined();
});

it('names a crash by how the process ended', () => {
  expect(failureTitle('crash', 'exit status: 3\nboom')).toBe('Exited with code 3');
  expect(failureTitle('crash', 'signal: 9 (SIGKILL)')).toBe('Killed by signal 9');
  expect(failureTitle('crash')).toBe('Crashed');
  expect(failureTitle('verify_failed', 'exit status: 3')).toBe('Verification failed');
});
