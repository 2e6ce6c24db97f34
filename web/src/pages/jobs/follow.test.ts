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

let listed: Set<string>;
let inSight: string[];
let lastBeforeMore: string | undefined;
let changes: FeedEvent[][];
let replaced: { jobs: string[]; asked: readonly string[] }[];
let announced: string[];
let many: number;
let older: number;
let withdrawn: string[];
let isReading: boolean;
/// Those that the filter does not find.
let unfound: Set<string>;
let asked: string[][];
let broken: boolean;
let slowness: number;
let newest: Job[][];
let pagesRead: number;
let follower: Follower;

const reads = (): Reads => {
  const read = async (ids: readonly string[]): Promise<Job[]> => {
    asked.push([...ids]);
    if (slowness > 0) await new Promise((settle) => setTimeout(settle, slowness));
    if (broken) throw new Error('away');
    return ids.map((id) => job(Number(id.slice(3))));
  };
  return {
    byId: read,
    matching: async (ids) => (await read(ids)).filter((one) => !unfound.has(one.id)),
    newest: async (_, from) => {
      const page = Number(from ?? 0);
      pagesRead += 1;
      return { jobs: newest[page] ?? [], next: page + 1 < newest.length ? String(page + 1) : undefined };
    },
  };
};

beforeEach(() => {
  vi.useFakeTimers();
  listed = new Set([10, 9, 8, 7].map(idOf));
  inSight = [10, 9].map(idOf);
  lastBeforeMore = idOf(7);
  changes = [];
  replaced = [];
  announced = [];
  many = 0;
  asked = [];
  broken = false;
  slowness = 0;
  newest = [];
  pagesRead = 0;
  older = 0;
  withdrawn = [];
  isReading = false;
  unfound = new Set([idOf(666)]);
  const table: Table = {
    has: (id) => listed.has(id),
    lastBeforeMore: () => lastBeforeMore,
    inSight: () => inSight,
    isReading: () => isReading,
    change: (events) => changes.push([...events]),
    replace: (jobs, wanted) => replaced.push({ jobs: jobs.map((one) => one.id), asked: wanted }),
    announce: (jobs) => announced.push(...jobs.map((one) => one.name)),
    announceMany: () => {
      many += 1;
    },
    announceOlder: () => {
      older += 1;
    },
    withdraw: (ids) => withdrawn.push(...ids),
  };
  follower = new Follower(table, reads());
});

afterEach(() => follower.stop());

describe('a row that changes', () => {
  test('is changed at once with others, and read again with others', async () => {
    for (const n of [10, 9, 10]) follower.onEvent(started(n));
    await later(CHANGE_DELAY);
    expect(changes.map((events) => events.length)).toEqual([3]);
    expect(asked).toEqual([]);
    await later(REFETCH_DELAY);
    expect(asked).toEqual([[idOf(10), idOf(9)]]);
    expect(replaced[0]?.jobs).toEqual([idOf(10), idOf(9)]);
  });

  test('out of sight is read when it comes into sight', async () => {
    follower.onEvent(started(8));
    await later(REFETCH_DELAY * 3);
    expect(changes).toHaveLength(1);
    expect(asked).toEqual([]);
    inSight = [9, 8].map(idOf);
    follower.seen();
    await later(REFETCH_DELAY);
    expect(asked).toEqual([[idOf(8)]]);
    follower.seen();
    await later(REFETCH_DELAY);
    expect(asked).toHaveLength(1);
  });

  test('is read at most so often, however much happens', async () => {
    for (let past = 0; past < 4_000; past += 50) {
      follower.onEvent(started(10));
      await later(50);
    }
    expect(asked.length).toBeLessThanOrEqual(4_000 / REFETCH_DELAY);
    expect(asked.length).toBeGreaterThanOrEqual(8);
  });

  test('while it is read is read once more, and never twice at the same time', async () => {
    slowness = 2_000;
    follower.onEvent(started(10));
    await later(REFETCH_DELAY + 1_000);
    follower.onEvent(started(10));
    follower.onEvent(started(9));
    await later(900);
    expect(asked).toHaveLength(1);
    await later(100 + REFETCH_DELAY);
    expect(asked).toEqual([[idOf(10)], [idOf(10), idOf(9)]]);
    await later(10_000);
    expect(asked).toHaveLength(2);
  });

  test('is not asked for over and over while the coordinator is away', async () => {
    broken = true;
    follower.onEvent(started(10));
    await later(10_000);
    expect(asked).toHaveLength(1);
    broken = false;
    follower.seen();
    await later(REFETCH_DELAY);
    expect(replaced).toHaveLength(1);
  });
});

describe('a job that is not listed', () => {
  test('is looked up with the filter and announced', async () => {
    follower.onEvent(submitted(11));
    follower.onEvent(submitted(666));
    await later(NEW_JOBS_DELAY);
    expect(asked).toEqual([[idOf(11), idOf(666)]]);
    expect(announced).toEqual(['job-11']);
  });

  test('may have come into the filter by its stage', async () => {
    follower.onEvent(eventOf(11, 'job.failed', { to: 'failed' }));
    await later(NEW_JOBS_DELAY);
    expect(announced).toEqual(['job-11']);
  });

  test('is left alone where it belongs to a page that is not loaded yet', async () => {
    follower.onEvent(submitted(3));
    await later(NEW_JOBS_DELAY);
    expect(asked).toEqual([]);
    lastBeforeMore = undefined;
    follower.onEvent(submitted(3));
    await later(NEW_JOBS_DELAY);
    expect(announced).toEqual(['job-3']);
  });

  test('is left alone when nothing about its stage changed, and when it is no job', async () => {
    follower.onEvent(eventOf(11, 'job.checkpointed'));
    follower.onEvent(eventOf(11, 'factory.changed', { jobId: null, to: null }));
    await later(NEW_JOBS_DELAY);
    expect(asked).toEqual([]);
  });

  test('is asked for with as many others as the API takes', async () => {
    for (let n = 0; n < IDS + 20; n += 1) follower.onEvent(submitted(1_000 + n));
    await later(NEW_JOBS_DELAY);
    expect(asked.map((ids) => ids.length)).toEqual([IDS, 20]);
    expect(announced).toHaveLength(IDS + 20);
  });

  test('in a flood is not looked up one by one', async () => {
    for (let n = 0; n <= MOST_NEW; n += 1) follower.onEvent(submitted(1_000 + n));
    await later(NEW_JOBS_DELAY);
    expect(asked).toEqual([]);
    expect(many).toBe(1);
  });

  test('is not forgotten when it could not be looked up', async () => {
    broken = true;
    follower.onEvent(submitted(11));
    await later(NEW_JOBS_DELAY * 5);
    expect(asked).toHaveLength(1);
    broken = false;
    follower.onEvent(submitted(12));
    await later(NEW_JOBS_DELAY);
    expect(announced).toEqual(['job-11', 'job-12']);
  });
});

describe('a job that waits to be shown', () => {
  test('does so no longer when the filter does not find it any more', async () => {
    follower.onEvent(submitted(11));
    await later(NEW_JOBS_DELAY);
    expect([announced, withdrawn]).toEqual([['job-11'], []]);
    unfound.add(idOf(11));
    follower.onEvent(eventOf(11, 'job.cancelled', { to: 'cancelled' }));
    await later(NEW_JOBS_DELAY);
    expect([announced, withdrawn]).toEqual([['job-11'], [idOf(11)]]);
  });

  test('is read again once it is shown', async () => {
    listed.add(idOf(11));
    inSight = [idOf(11)];
    follower.recheck([idOf(11)]);
    await later(REFETCH_DELAY);
    expect(replaced).toEqual([{ jobs: [idOf(11)], asked: [idOf(11)] }]);
  });

  test.each([true, false])(
    'and is shown while it is looked up is not left as it was (found: %s)',
    async (found) => {
      if (!found) unfound.add(idOf(11));
      slowness = 100;
      follower.onEvent(eventOf(11, 'job.cancelled', { to: 'cancelled' }));
      await later(NEW_JOBS_DELAY);
      listed.add(idOf(11));
      inSight = [idOf(11)];
      await later(slowness + REFETCH_DELAY + slowness);
      expect(announced).toEqual([]);
      expect(replaced.map(({ jobs }) => jobs)).toEqual([[idOf(11)]]);
    },
  );
});

describe('what happens while the list is read', () => {
  test('is looked at once more when the list is there: the answer may be older', async () => {
    isReading = true;
    follower.onEvent(started(10));
    follower.onEvent(submitted(11));
    // Of a page that is just being read.
    follower.onEvent(started(3));
    await later(10_000);
    asked = [];
    announced = [];
    listed.add(idOf(3));
    inSight.push(idOf(3));
    isReading = false;
    follower.settled();
    await later(NEW_JOBS_DELAY);
    expect(asked).toEqual([[idOf(10), idOf(3)], [idOf(11)]]);
    expect(announced).toEqual(['job-11']);
    asked = [];
    follower.settled();
    await later(10_000);
    expect(asked).toEqual([]);
  });

  test('needs no second look when it was not', async () => {
    follower.onEvent(started(10));
    await later(10_000);
    follower.settled();
    await later(10_000);
    expect(asked).toHaveLength(1);
  });
});

describe('after a while without events', () => {
  test('what is in sight is read again, and what is new is announced', async () => {
    newest = [[job(12), job(11), job(10)], [job(9), job(8), job(7)], [job(6)]];
    await follower.catchUp(listed, false);
    await later(REFETCH_DELAY);
    expect(asked).toEqual([[idOf(10), idOf(9)]]);
    expect(announced).toEqual(['job-12', 'job-11']);
    expect([many, older, pagesRead]).toEqual([0, 0, 2]);
  });

  test('a page of new ones only means that there are more', async () => {
    newest = [[job(13), job(12)], [job(10)]];
    await follower.catchUp(listed, false);
    expect(many).toBe(1);
    expect(announced).toEqual([]);
  });

  test('an older one that came into the filter is found as well', async () => {
    lastBeforeMore = undefined;
    newest = [
      [job(10), job(9)],
      [job(8), job(7), job(5)],
    ];
    await follower.catchUp(listed, false);
    expect([announced, older]).toEqual([['job-5'], 0]);
  });

  test('a list that is too long to compare says that there may be more', async () => {
    lastBeforeMore = undefined;
    newest = Array.from({ length: PAGES_BACK + 1 }, (_, page) => [job(10 - page)]);
    await follower.catchUp(listed, false);
    expect([older, pagesRead]).toEqual([1, PAGES_BACK]);
  });

  test('what was missed and is told event by event needs no comparison', async () => {
    newest = Array.from({ length: PAGES_BACK + 1 }, (_, page) => [job(10 - page)]);
    await follower.catchUp(listed, true);
    expect([older, pagesRead]).toEqual([0, 1]);
  });
});

test('after stop nothing is read and nothing is told', async () => {
  follower.onEvent(started(10));
  follower.onEvent(submitted(11));
  follower.stop();
  follower.onEvent(started(9));
  await later(10_000);
  expect([asked, changes, announced]).toEqual([[], [], []]);
  expect(vi.getTimerCount()).toBe(0);
});
