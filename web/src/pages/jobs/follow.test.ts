import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FeedEvent, Job } from '../../api/types';
import { eventOf, idOf, job } from '../../test/things';
import {
  CHANGE_DELAY,
  Follower,
  IDS,
  MOST_NEW,
  NEW_JOBS_DELAY,
  PAGES_BACK,
  REFETCH_DELAY,
  type Reads,
  type Table,
} from './follow';

const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const started = (n: number) => eventOf(n, 'job.started', { to: 'building' });
const submitted = (n: number) => eventOf(n, 'job.submitted', { to: 'queued' });

/// What the table shows, how the coordinator answers, and what came of it.
const fresh = () => ({
  listed: new Set([10, 9, 8, 7].map(idOf)),
  inSight: [10, 9].map(idOf),
  lastBeforeMore: idOf(7) as string | undefined,
  isReading: false,
  /// Those that the filter does not find.
  unfound: new Set([idOf(666)]),
  broken: false,
  slowness: 0,
  newest: [] as Job[][],
  changes: [] as FeedEvent[][],
  replaced: [] as { jobs: string[]; asked: readonly string[] }[],
  announced: [] as string[],
  withdrawn: [] as string[],
  asked: [] as string[][],
  many: 0,
  older: 0,
  pagesRead: 0,
});
let now: ReturnType<typeof fresh>;
let follower: Follower;

const reads = (): Reads => {
  const read = async (ids: readonly string[]): Promise<Job[]> => {
    now.asked.push([...ids]);
    if (now.slowness > 0) await new Promise((settle) => setTimeout(settle, now.slowness));
    if (now.broken) throw new Error('away');
    return ids.map((id) => job(Number(id.slice(3))));
  };
  return {
    byId: read,
    matching: async (ids) => (await read(ids)).filter((one) => !now.unfound.has(one.id)),
    newest: async (_, from) => {
      const page = Number(from ?? 0);
      now.pagesRead += 1;
      return {
        jobs: now.newest[page] ?? [],
        next: page + 1 < now.newest.length ? String(page + 1) : undefined,
      };
    },
  };
};

beforeEach(() => {
  vi.useFakeTimers();
  now = fresh();
  const table: Table = {
    has: (id) => now.listed.has(id),
    lastBeforeMore: () => now.lastBeforeMore,
    inSight: () => now.inSight,
    isReading: () => now.isReading,
    change: (events) => now.changes.push([...events]),
    replace: (jobs, wanted) => now.replaced.push({ jobs: jobs.map((one) => one.id), asked: wanted }),
    announce: (jobs) => now.announced.push(...jobs.map((one) => one.name)),
    announceMany: () => {
      now.many += 1;
    },
    announceOlder: () => {
      now.older += 1;
    },
    withdraw: (ids) => now.withdrawn.push(...ids),
  };
  follower = new Follower(table, reads());
});

afterEach(() => follower.stop());

describe('a row that changes', () => {
  test('is changed at once with others, and read again with others', async () => {
    for (const n of [10, 9, 10]) follower.onEvent(started(n));
    await later(CHANGE_DELAY);
    expect(now.changes.map((events) => events.length)).toEqual([3]);
    expect(now.asked).toEqual([]);
    await later(REFETCH_DELAY);
    expect(now.asked).toEqual([[idOf(10), idOf(9)]]);
    expect(now.replaced[0]?.jobs).toEqual([idOf(10), idOf(9)]);
  });

  test('out of sight is read when it comes into sight', async () => {
    follower.onEvent(started(8));
    await later(REFETCH_DELAY * 3);
    expect(now.changes).toHaveLength(1);
    expect(now.asked).toEqual([]);
    now.inSight = [9, 8].map(idOf);
    follower.seen();
    await later(REFETCH_DELAY);
    expect(now.asked).toEqual([[idOf(8)]]);
    follower.seen();
    await later(REFETCH_DELAY);
    expect(now.asked).toHaveLength(1);
  });

  test('is read at most so often, however much happens', async () => {
    for (let past = 0; past < 4_000; past += 50) {
      follower.onEvent(started(10));
      await later(50);
    }
    expect(now.asked.length).toBeLessThanOrEqual(4_000 / REFETCH_DELAY);
    expect(now.asked.length).toBeGreaterThanOrEqual(8);
  });

  test('while it is read is read once more, and never twice at the same time', async () => {
    now.slowness = 2_000;
    follower.onEvent(started(10));
    await later(REFETCH_DELAY + 1_000);
    follower.onEvent(started(10));
    follower.onEvent(started(9));
    await later(900);
    expect(now.asked).toHaveLength(1);
    await later(100 + REFETCH_DELAY);
    expect(now.asked).toEqual([[idOf(10)], [idOf(10), idOf(9)]]);
    await later(10_000);
    expect(now.asked).toHaveLength(2);
  });

  test('is not asked for over and over while the coordinator is away', async () => {
    now.broken = true;
    follower.onEvent(started(10));
    await later(10_000);
    expect(now.asked).toHaveLength(1);
    now.broken = false;
    follower.seen();
    await later(REFETCH_DELAY);
    expect(now.replaced).toHaveLength(1);
  });
});

describe('a job that is not listed', () => {
  test('is looked up with the filter and announced', async () => {
    follower.onEvent(submitted(11));
    follower.onEvent(submitted(666));
    await later(NEW_JOBS_DELAY);
    expect(now.asked).toEqual([[idOf(11), idOf(666)]]);
    expect(now.announced).toEqual(['job-11']);
  });

  test('may have come into the filter by its stage', async () => {
    follower.onEvent(eventOf(11, 'job.failed', { to: 'failed' }));
    await later(NEW_JOBS_DELAY);
    expect(now.announced).toEqual(['job-11']);
  });

  test('is left alone where it belongs to a page that is not loaded yet', async () => {
    follower.onEvent(submitted(3));
    await later(NEW_JOBS_DELAY);
    expect(now.asked).toEqual([]);
    now.lastBeforeMore = undefined;
    follower.onEvent(submitted(3));
    await later(NEW_JOBS_DELAY);
    expect(now.announced).toEqual(['job-3']);
  });

  test('is left alone when nothing about its stage changed, and when it is no job', async () => {
    follower.onEvent(eventOf(11, 'job.checkpointed'));
    follower.onEvent(eventOf(11, 'factory.changed', { jobId: null, to: null }));
    await later(NEW_JOBS_DELAY);
    expect(now.asked).toEqual([]);
  });

  test('is asked for with as many others as the API takes', async () => {
    for (let n = 0; n < IDS + 20; n += 1) follower.onEvent(submitted(1_000 + n));
    await later(NEW_JOBS_DELAY);
    expect(now.asked.map((ids) => ids.length)).toEqual([IDS, 20]);
    expect(now.announced).toHaveLength(IDS + 20);
  });

  test('in a flood is not looked up one by one', async () => {
    for (let n = 0; n <= MOST_NEW; n += 1) follower.onEvent(submitted(1_000 + n));
    await later(NEW_JOBS_DELAY);
    expect(now.asked).toEqual([]);
    expect(now.many).toBe(1);
  });

  test('is not forgotten when it could not be looked up', async () => {
    now.broken = true;
    follower.onEvent(submitted(11));
    await later(NEW_JOBS_DELAY * 5);
    expect(now.asked).toHaveLength(1);
    now.broken = false;
    follower.onEvent(submitted(12));
    await later(NEW_JOBS_DELAY);
    expect(now.announced).toEqual(['job-11', 'job-12']);
  });
});

describe('a job that waits to be shown', () => {
  test('does so no longer when the filter does not find it any more', async () => {
    follower.onEvent(submitted(11));
    await later(NEW_JOBS_DELAY);
    expect([now.announced, now.withdrawn]).toEqual([['job-11'], []]);
    now.unfound.add(idOf(11));
    follower.onEvent(eventOf(11, 'job.cancelled', { to: 'cancelled' }));
    await later(NEW_JOBS_DELAY);
    expect([now.announced, now.withdrawn]).toEqual([['job-11'], [idOf(11)]]);
  });

  test('is read again once it is shown', async () => {
    now.listed.add(idOf(11));
    now.inSight = [idOf(11)];
    follower.recheck([idOf(11)]);
    await later(REFETCH_DELAY);
    expect(now.replaced).toEqual([{ jobs: [idOf(11)], asked: [idOf(11)] }]);
  });

  test.each([true, false])(
    'and is shown while it is looked up is not left as it was (found: %s)',
    async (found) => {
      if (!found) now.unfound.add(idOf(11));
      now.slowness = 100;
      follower.onEvent(eventOf(11, 'job.cancelled', { to: 'cancelled' }));
      await later(NEW_JOBS_DELAY);
      now.listed.add(idOf(11));
      now.inSight = [idOf(11)];
      await later(now.slowness + REFETCH_DELAY + now.slowness);
      expect(now.announced).toEqual([]);
      expect(now.replaced.map(({ jobs }) => jobs)).toEqual([[idOf(11)]]);
    },
  );
});

describe('what happens while the list is read', () => {
  test('is looked at once more when the list is there: the answer may be older', async () => {
    now.isReading = true;
    follower.onEvent(started(10));
    follower.onEvent(submitted(11));
    // Of a page that is just being read.
    follower.onEvent(started(3));
    await later(10_000);
    now.asked = [];
    now.announced = [];
    now.listed.add(idOf(3));
    now.inSight.push(idOf(3));
    now.isReading = false;
    follower.settled();
    await later(NEW_JOBS_DELAY);
    expect(now.asked).toEqual([[idOf(10), idOf(3)], [idOf(11)]]);
    expect(now.announced).toEqual(['job-11']);
    now.asked = [];
    follower.settled();
    await later(10_000);
    expect(now.asked).toEqual([]);
  });

  test('needs no second look when it was not', async () => {
    follower.onEvent(started(10));
    await later(10_000);
    follower.settled();
    await later(10_000);
    expect(now.asked).toHaveLength(1);
  });
});

describe('after a while without events', () => {
  test('what is in sight is read again, and what is new is announced', async () => {
    now.newest = [[job(12), job(11), job(10)], [job(9), job(8), job(7)], [job(6)]];
    await follower.catchUp(now.listed, false);
    await later(REFETCH_DELAY);
    expect(now.asked).toEqual([[idOf(10), idOf(9)]]);
    expect(now.announced).toEqual(['job-12', 'job-11']);
    expect([now.many, now.older, now.pagesRead]).toEqual([0, 0, 2]);
  });

  test('a page of new ones only means that there are more', async () => {
    now.newest = [[job(13), job(12)], [job(10)]];
    await follower.catchUp(now.listed, false);
    expect(now.many).toBe(1);
    expect(now.announced).toEqual([]);
  });

  test('an older one that came into the filter is found as well', async () => {
    now.lastBeforeMore = undefined;
    now.newest = [
      [job(10), job(9)],
      [job(8), job(7), job(5)],
    ];
    await follower.catchUp(now.listed, false);
    expect([now.announced, now.older]).toEqual([['job-5'], 0]);
  });

  test('a list that is too long to compare says that there may be more', async () => {
    now.lastBeforeMore = undefined;
    now.newest = Array.from({ length: PAGES_BACK + 1 }, (_, page) => [job(10 - page)]);
    await follower.catchUp(now.listed, false);
    expect([now.older, now.pagesRead]).toEqual([1, PAGES_BACK]);
  });

  test('what was missed and is told event by event needs no comparison', async () => {
    now.newest = Array.from({ length: PAGES_BACK + 1 }, (_, page) => [job(10 - page)]);
    await follower.catchUp(now.listed, true);
    expect([now.older, now.pagesRead]).toEqual([0, 1]);
  });
});

test('after stop nothing is read and nothing is told', async () => {
  follower.onEvent(started(10));
  follower.onEvent(submitted(11));
  follower.stop();
  follower.onEvent(started(9));
  await later(10_000);
  expect([now.asked, now.changes, now.announced]).toEqual([[], [], []]);
  expect(vi.getTimerCount()).toBe(0);
});
