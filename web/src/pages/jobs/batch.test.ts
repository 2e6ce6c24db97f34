import { expect, test } from 'vitest';
import { Problem } from '../../api/problem';
import type { Job } from '../../api/types';
import { job } from '../../test/things';
import { runBatch, undone } from './batch';

const jobs = Array.from({ length: 10 }, (_, n) => job(n));
const cancelled = (one: Pick<Job, 'id'>): Job => ({ ...job(0), id: one.id, stage: 'cancelled' });

test('does all, few at a time, and tells how far it is', async () => {
  let now = 0;
  let most = 0;
  const progress: number[] = [];
  const outcome = await runBatch('cancel', jobs, {
    progress: (finished) => progress.push(finished),
    call: async (_, one) => {
      now += 1;
      most = Math.max(most, now);
      await Promise.resolve();
      now -= 1;
      return cancelled(one);
    },
  });
  expect(outcome.done.map((done) => done.id).sort()).toEqual(jobs.map((one) => one.id));
  expect(most).toBe(4);
  expect(progress).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test('says of each job why it did not work, and goes on', async () => {
  const outcome = await runBatch('cancel', jobs, {
    call: async (_, one) => {
      if (one.id === jobs[3]?.id) throw Problem.of(409, { code: 'illegal_transition', detail: 'it is over' });
      return cancelled(one);
    },
  });
  expect(outcome.done).toHaveLength(9);
  expect(outcome.failed).toEqual([{ job: jobs[3], why: 'it is over' }]);
  expect(outcome.left).toEqual([]);
});

test('can be stopped: what is under way ends, the rest is not begun', async () => {
  const stop = new AbortController();
  const outcome = await runBatch('cancel', jobs, {
    signal: stop.signal,
    call: async (_, one) => {
      stop.abort();
      return cancelled(one);
    },
  });
  expect(outcome.done.length + outcome.left.length).toBe(10);
  expect(outcome.done.length).toBeLessThanOrEqual(4);
  expect(outcome.failed).toEqual([]);
});

test('does nothing for nobody', async () => {
  expect(await runBatch('ship', [])).toEqual({ done: [], failed: [], left: [] });
});

test('what was not done is told in short', () => {
  const refused = (n: number) => ({ job: job(n), why: 'it is over' });
  expect(undone({ done: jobs, failed: [], left: [] })).toBeUndefined();
  expect(undone({ done: [job(1)], failed: [refused(2)], left: [job(3)] })).toEqual({
    title: '2 of 3 jobs not done',
    why: 'job-2: it is over; 1 job skipped: stopped by you',
  });
  expect(undone({ done: [], failed: [1, 2, 3, 4, 5, 6].map(refused), left: [] })).toEqual({
    title: '6 of 6 jobs not done',
    why: 'job-1: it is over; job-2: it is over; job-3: it is over; 3 more failed',
  });
});
