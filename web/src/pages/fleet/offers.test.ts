import { expect, it } from 'vitest';
import type { FeedEvent, Job } from '../../api/types';
import { afterEvent, offeredTo, offersOf } from './offers';

function event(type: string, jobId: string, data: object = {}): FeedEvent {
  return { pos: 1, at: '2026-11-15T00:00:00Z', type, jobId, cause: '', actor: '', data } as FeedEvent;
}

it('begins with the targets of queued jobs', () => {
  const jobs = [
    { id: '1', stage: 'queued', targetFactoryId: 'mac-1' },
    { id: '2', stage: 'queued', targetFactoryId: null },
    { id: '3', stage: 'building', targetFactoryId: 'mac-1' },
  ] as Job[];
  expect(offeredTo(offersOf(jobs))).toEqual(new Map([['mac-1', 1]]));
});

it('moves an offer, and ends it with whatever happens next', () => {
  let offers = offersOf([]);
  offers = afterEvent(offers, event('job.targeted', '1', { factoryId: 'mac-1' }));
  offers = afterEvent(offers, event('job.targeted', '2', { factoryId: 'mac-1' }));
  expect(offeredTo(offers)).toEqual(new Map([['mac-1', 2]]));
  offers = afterEvent(offers, event('job.targeted', '1', { factoryId: 'mac-2' }));
  expect(offeredTo(offers)).toEqual(
    new Map([
      ['mac-1', 1],
      ['mac-2', 1],
    ]),
  );
  offers = afterEvent(offers, event('job.assigned', '1', { factoryId: 'mac-2' }));
  offers = afterEvent(offers, event('job.cancelled', '2'));
  expect(offeredTo(offers)).toEqual(new Map());
});

it('is the same object where nothing changed, so that nothing is drawn again', () => {
  const offers = afterEvent(offersOf([]), event('job.targeted', '1', { factoryId: 'mac-1' }));
  expect(afterEvent(offers, event('job.started', '9'))).toBe(offers);
  expect(afterEvent(offers, event('job.targeted', '1', { factoryId: 'mac-1' }))).toBe(offers);
  expect(afterEvent(offers, { ...event('factory.changed', ''), jobId: null })).toBe(offers);
});
