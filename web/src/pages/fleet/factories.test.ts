import { describe, expect, it } from 'vitest';
import type { Factory, Job } from '../../api/types';
import { event as anyEvent, factory } from '../../test/things';
import {
  afterEvent,
  byHolder,
  capabilitiesInOrder,
  inOrder,
  isolation,
  matches,
  offeredTo,
  offersOf,
  seats,
  statusOf,
} from './factories';

describe('seats', () => {
  it('adds up to the limit, whatever is used and offered', () => {
    for (const limit of [0, 1, 4, 1024]) {
      for (const used of [0, 1, 3, 4, 9]) {
        for (const offered of [0, 1, 5]) {
          const { used: taken, reserved, free, over } = seats(limit, used, offered);
          expect(taken + reserved + free).toBe(limit);
          expect(taken + over).toBe(used);
        }
      }
    }
  });

  it('never reserves a seat that is not free', () => {
    expect(seats(4, 3, 5)).toEqual({ used: 3, reserved: 1, free: 0, over: 0 });
    expect(seats(2, 4, 1)).toEqual({ used: 2, reserved: 0, free: 0, over: 2 });
  });

  it('takes nonsense for nothing', () => {
    expect(seats(Number.NaN, -3, Number.POSITIVE_INFINITY)).toEqual({
      used: 0,
      reserved: 0,
      free: 0,
      over: 0,
    });
  });
});

describe('status', () => {
  it('says the worst that is true', () => {
    expect(statusOf(factory({}))).toBe('online');
    expect(statusOf(factory({ state: 'draining' }))).toBe('draining');
    expect(statusOf(factory({ state: 'draining', health: 'down' }))).toBe('down');
    expect(statusOf(factory({ health: 'degraded' }))).toBe('degraded');
    expect(statusOf(factory({ live: false, health: 'down' }))).toBe('offline');
    expect(statusOf(factory({ live: false, lastSeenAt: null }))).toBe('new');
  });
});

describe('order', () => {
  const ids = (list: Factory[]) => list.map(({ id }) => id);

  it('counts numbers in names', () => {
    const list = ['mac-10', 'mac-9', 'build-2', 'mac-1'].map((id) => factory({ id }));
    expect(ids(inOrder(list))).toEqual(['build-2', 'mac-1', 'mac-9', 'mac-10']);
  });

  it('is the same whatever the factories do, and in whatever order they come', () => {
    const calm = ['a-1', 'a-01', 'a-2', 'a-3', 'A-2'].map((id) => factory({ id }));
    const busy = [...calm]
      .reverse()
      .map((one, at) => ({ ...one, seatsUsed: at, live: at % 2 === 0, load: at }));
    expect(ids(inOrder(busy))).toEqual(ids(inOrder(calm)));
  });
});

describe('filter', () => {
  const job = {
    id: '01',
    name: 'Fix the header',
    lease: { factoryId: 'mac-1', grantedAt: '2026-11-15T00:00:00Z' },
  } as Job;

  it('wants every word, in any of the places', () => {
    expect(matches(factory({}), { text: 'SHELL parser', status: 'any' })).toBe(true);
    expect(matches(factory({}), { text: 'shell gpu', status: 'any' })).toBe(false);
    expect(matches(factory({}), { text: 'header', status: 'any' }, [job])).toBe(true);
    expect(matches(factory({}), { text: 'header', status: 'any' })).toBe(false);
  });

  it('knows who is at work and who has a seat to give', () => {
    expect(matches(factory({ seatsUsed: 0 }), { text: '', status: 'busy' })).toBe(false);
    expect(matches(factory({ seatsUsed: 4 }), { text: '', status: 'free' })).toBe(false);
    expect(matches(factory({ state: 'draining' }), { text: '', status: 'free' })).toBe(false);
    expect(matches(factory({}), { text: '', status: 'free' })).toBe(true);
    expect(matches(factory({}), { text: '', status: 'offline' })).toBe(false);
  });
});

it('shows engines before other capabilities', () => {
  expect(capabilitiesInOrder(['arch:x86', 'engine:shell', 'has:git', 'engine:claude'])).toEqual([
    'engine:shell',
    'engine:claude',
    'arch:x86',
    'has:git',
  ]);
});

it('says in a line how isolated a factory is', () => {
  expect(isolation(['sandbox:none', 'network:open'])).toContain('not sandboxed');
  expect(isolation(['sandbox:bwrap', 'network:open'])).toBe('sandboxed, open network');
  expect(isolation(['sandbox:bwrap', 'network:closed', 'network:list'])).toBe('sandboxed, listed hosts only');
  expect(isolation(['sandbox:bwrap', 'network:closed', 'network:none'])).toBe('sandboxed, no network');
  expect(isolation(['os:linux'])).toBeUndefined();
});

it('gives each holder its jobs, the longest running first', () => {
  const held = (id: string, factoryId: string, grantedAt: string) =>
    ({ id, lease: { factoryId, grantedAt } }) as Job;
  const jobs = [
    held('b', 'mac-1', '2026-11-15T02:00:00Z'),
    held('a', 'mac-1', '2026-11-15T01:00:00Z'),
    { id: 'c' } as Job,
    held('d', 'mac-2', '2026-11-15T00:00:00Z'),
  ];
  const by = byHolder(jobs);
  expect(by.get('mac-1')?.map(({ id }) => id)).toEqual(['a', 'b']);
  expect(by.get('mac-2')?.map(({ id }) => id)).toEqual(['d']);
  expect(by.size).toBe(2);
});

const event = (type: string, jobId: string, data: object = {}) => anyEvent(type, { jobId, data });

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
