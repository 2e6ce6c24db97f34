import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { keys } from '../api/queries';
import { event as anyEvent } from '../test/things';
import { Freshener, RARELY, SELDOM, SOON, touchedBy } from './freshen';

const event = (type: string, jobId?: string) => anyEvent(type, { jobId });

let client: QueryClient;
let freshener: Freshener;
let ends: (() => void)[];

/// Something on the page that shows the key; counts how often it was fetched.
function shown(key: readonly unknown[], fetch: () => Promise<unknown> = async () => 1, meta = {}) {
  const queryFn = vi.fn(fetch);
  const options = { queryKey: key, queryFn, meta, staleTime: Number.POSITIVE_INFINITY, retry: false };
  ends.push(new QueryObserver(client, options).subscribe(() => {}));
  return queryFn;
}

beforeEach(() => {
  vi.useFakeTimers();
  client = new QueryClient();
  freshener = new Freshener(client);
  ends = [];
});

afterEach(() => {
  freshener.stop();
  for (const end of ends) end();
  client.clear();
});

test('many events of a job are one fetch, soon; those of the fleet are fewer', async () => {
  const job = shown([...keys.job('a'), 'job']);
  const other = shown([...keys.job('b'), 'job']);
  const metrics = shown(keys.metrics);
  await vi.advanceTimersByTimeAsync(0);
  for (let i = 0; i < 50; i += 1) freshener.touch(event('job.started', 'a'));
  await vi.advanceTimersByTimeAsync(SOON);
  expect([job, other, metrics].map((fetch) => fetch.mock.calls.length)).toEqual([2, 1, 1]);
  await vi.advanceTimersByTimeAsync(SELDOM);
  expect([job, other, metrics].map((fetch) => fetch.mock.calls.length)).toEqual([2, 1, 2]);
});

test('a slow answer is not cut off by the events that keep coming, and is asked for once more after it', async () => {
  let finished = 0;
  const slow = async () => {
    await new Promise((settle) => setTimeout(settle, 5_000));
    finished += 1;
    return finished;
  };
  const metrics = shown(keys.metrics, slow);
  for (let past = 0; past < 20_000; past += 500) {
    freshener.touch(event('job.started', 'a'));
    await vi.advanceTimersByTimeAsync(500);
  }
  expect(finished).toBeGreaterThanOrEqual(3);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(metrics.mock.calls.length).toBe(finished);
  // The last fetch began after the last event.
  expect(finished).toBeGreaterThanOrEqual(4);
});

test('what is under way when something happens is fetched once more when it is there', async () => {
  const slow = shown(keys.metrics, () => new Promise((settle) => setTimeout(settle, 5_000, 1)));
  await vi.advanceTimersByTimeAsync(1_000);
  freshener.touch(event('job.started', 'a'));
  await vi.advanceTimersByTimeAsync(4_000);
  expect(slow).toHaveBeenCalledOnce();
  await vi.advanceTimersByTimeAsync(SELDOM);
  expect(slow).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(slow).toHaveBeenCalledTimes(2);
});

test('while one query of a key is under way, what happens next counts for all of them', async () => {
  const slow = shown([...keys.job('a'), 'slow'], () => new Promise((settle) => setTimeout(settle, 400, 1)));
  const quick = shown([...keys.job('a'), 'quick']);
  await vi.advanceTimersByTimeAsync(400);
  freshener.touch(event('job.started', 'a'));
  await vi.advanceTimersByTimeAsync(SOON);
  expect([slow, quick].map((fetch) => fetch.mock.calls.length)).toEqual([2, 2]);
  freshener.touch(event('job.reported', 'a'));
  await vi.advanceTimersByTimeAsync(SOON);
  freshener.touch(event('job.shipped', 'a'));
  await vi.advanceTimersByTimeAsync(SOON * 3);
  expect(slow.mock.calls.length).toBe(3);
  expect(quick.mock.calls.length).toBe(4);
});

test('a connection refreshes everything on the page, what failed first of all', async () => {
  let away = true;
  const metrics = shown(keys.metrics);
  const failed = shown(keys.budgets, async () => {
    if (away) throw new Error('away');
    return 1;
  });
  const text = shown(['markdown', 'a'], async () => {
    if (away) throw new Error('away');
    return '<p>a</p>';
  });
  const rendered = shown(['markdown', 'b']);
  const list = shown(keys.jobs, async () => 1, { followsFeed: true });
  const noList = shown(
    [...keys.jobs, 'x'],
    async () => {
      if (away) throw new Error('away');
      return 1;
    },
    { followsFeed: true },
  );
  await vi.advanceTimersByTimeAsync(0);
  expect(client.getQueryState(keys.budgets)?.status).toBe('error');
  away = false;
  freshener.all();
  await vi.advanceTimersByTimeAsync(0);
  const calls = [metrics, failed, text, rendered, list, noList].map((fetch) => fetch.mock.calls.length);
  expect(calls).toEqual([2, 2, 2, 1, 1, 2]);
  expect(client.getQueryState(keys.budgets)?.status).toBe('success');
  expect(client.getQueryState([...keys.jobs, 'x'])?.status).toBe('success');
});

const graph = (ids: string[], more: { truncated?: boolean; outside?: { id: string }[] } = {}) => ({
  rootId: ids[0],
  jobs: ids.map((id) => ({ id })),
  outside: more.outside ?? [],
  truncated: more.truncated ?? false,
});

test('a graph is read again for the jobs that it shows, not for all others', async () => {
  const one = shown([...keys.dag, 'a'], async () => graph(['a', 'b'], { outside: [{ id: 'dep' }] }));
  const other = shown([...keys.dag, 'x'], async () => graph(['x']));
  await vi.advanceTimersByTimeAsync(0);
  for (let past = 0; past < 20_000; past += 100) {
    freshener.touch(event('job.started', 'stranger'));
    await vi.advanceTimersByTimeAsync(100);
  }
  expect([one, other].map((fetch) => fetch.mock.calls.length)).toEqual([1, 1]);
  freshener.touch(event('job.started', 'b'));
  await vi.advanceTimersByTimeAsync(SELDOM);
  expect([one, other].map((fetch) => fetch.mock.calls.length)).toEqual([2, 1]);
  freshener.touch(event('job.shipped', 'dep'));
  await vi.advanceTimersByTimeAsync(SELDOM);
  expect([one, other].map((fetch) => fetch.mock.calls.length)).toEqual([3, 1]);
});

test('a new job may be a child: soon in a quiet fleet, now and then in a busy one', async () => {
  const read = shown([...keys.dag, 'a'], async () => graph(['a']));
  await vi.advanceTimersByTimeAsync(RARELY);
  freshener.touch(event('job.submitted', 'new'));
  await vi.advanceTimersByTimeAsync(SELDOM);
  expect(read).toHaveBeenCalledTimes(2);
  for (let past = 0; past < 3 * RARELY; past += 100) {
    freshener.touch(event('job.submitted', `new-${past}`));
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(read.mock.calls.length).toBeGreaterThanOrEqual(4);
  expect(read.mock.calls.length).toBeLessThanOrEqual(5);
  // What is known to concern it does not wait for that.
  freshener.touch(event('job.submitted', 'newest'));
  freshener.touch(event('job.started', 'a'));
  const before = read.mock.calls.length;
  await vi.advanceTimersByTimeAsync(SELDOM);
  expect(read).toHaveBeenCalledTimes(before + 1);
});

test('a graph that is cut short counts jobs that it does not show', async () => {
  const read = shown([...keys.dag, 'a'], async () => graph(['a'], { truncated: true }));
  await vi.advanceTimersByTimeAsync(0);
  freshener.touch(event('job.shipped', 'far below'));
  await vi.advanceTimersByTimeAsync(RARELY);
  expect(read).toHaveBeenCalledTimes(2);
});

test('what happens to a job while its graph is read is not lost', async () => {
  let ids = ['a'];
  const slow = shown([...keys.dag, 'a'], async () => {
    const seen = ids;
    await new Promise((settle) => setTimeout(settle, 1_000));
    return graph(seen);
  });
  await vi.advanceTimersByTimeAsync(1_000);
  freshener.touch(event('job.started', 'a'));
  ids = ['a', 'child'];
  await vi.advanceTimersByTimeAsync(SELDOM + 500);
  freshener.touch(event('job.started', 'child'));
  await vi.advanceTimersByTimeAsync(RARELY);
  expect(slow).toHaveBeenCalledTimes(3);
});

test('what is not on the page is only marked as old', async () => {
  const queryFn = vi.fn(async () => 1);
  await client.prefetchQuery({ queryKey: keys.metrics, queryFn });
  freshener.touch(event('job.started', 'a'));
  await vi.advanceTimersByTimeAsync(SELDOM);
  expect(queryFn).toHaveBeenCalledOnce();
  expect(client.getQueryState(keys.metrics)?.isInvalidated).toBe(true);
});

test('after stop nothing happens any more', async () => {
  const metrics = shown(keys.metrics);
  await vi.advanceTimersByTimeAsync(0);
  freshener.touch(event('job.started', 'a'));
  freshener.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(metrics).toHaveBeenCalledOnce();
});

test.each([
  ['budget.paused', [keys.budgets, keys.metrics, keys.alerts]],
  ['factory.draining', [keys.factories, keys.metrics, keys.alerts, keys.pools]],
  ['pool.joined', [keys.pools, keys.alerts, keys.factories]],
  ['topic.paused', [keys.topics]],
  ['flag.changed', [keys.flags, keys.factories]],
  ['job.diverged', [keys.metrics, keys.alerts, keys.factories, keys.budgets, keys.pools, keys.shadow]],
  ['something.new', []],
])('%s touches what shows it', (type, expected) => {
  expect(touchedBy(event(type)).map(({ key }) => key)).toEqual(expected);
});
