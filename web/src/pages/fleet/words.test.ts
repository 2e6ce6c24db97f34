import { expect, it } from 'vitest';
import type { FeedEvent } from '../../api/types';
import { eventSubject, eventWords, withEvent } from './words';

const event = (
  pos: number,
  part: Partial<Omit<FeedEvent, 'data'>> & { data?: Record<string, unknown> } = {},
): FeedEvent =>
  ({
    pos,
    at: '2026-11-15T00:00:00Z',
    type: 'job.started',
    cause: '',
    actor: '',
    data: {},
    ...part,
  }) as FeedEvent;

it('keeps the newest, each once, newest first', () => {
  let list: FeedEvent[] = [];
  for (const pos of [3, 5, 4, 5, 1, 6]) list = withEvent(list, event(pos), 4);
  expect(list.map(({ pos }) => pos)).toEqual([6, 5, 4, 3]);
});

it('has words for a type that came later', () => {
  expect(eventWords({ type: 'job.lease_expired' })).toBe('lost its holder');
  expect(eventWords({ type: 'job.cloned_anew' })).toBe('cloned anew');
});

it('knows what an event without a job is about', () => {
  expect(eventSubject(event(1, { data: { factoryId: 'mac-1' } }))).toBe('mac-1');
  expect(eventSubject(event(1, { data: { topic: 'mail' }, productId: 'demo' }))).toBe('mail');
  expect(eventSubject(event(1, { data: { name: 3 }, productId: 'demo' }))).toBe('demo');
  expect(eventSubject(event(1))).toBeUndefined();
});
