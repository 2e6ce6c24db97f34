import { beforeEach, expect, it, vi } from 'vitest';
import { JobNames, type Named } from './jobNames';

beforeEach(() => void vi.useFakeTimers());

function book(answer = (ids: readonly string[]): Named[] => ids.map((id) => [id, `job ${id}`])) {
  const calls: string[][] = [];
  let changes = 0;
  const names = new JobNames(
    async (ids) => {
      calls.push([...ids]);
      return answer(ids);
    },
    () => {
      changes += 1;
    },
  );
  names.open();
  return { names, calls, changes: () => changes };
}

it('asks for many at once and seldom, whatever happens meanwhile', async () => {
  const { names, calls } = book();
  // 300 events in three seconds, fifteen of them in sight.
  for (let at = 0; at < 300; at += 1) {
    names.want(Array.from({ length: 15 }, (_, row) => String(at + row)));
    await vi.advanceTimersByTimeAsync(10);
  }
  await vi.advanceTimersByTimeAsync(5_000);
  expect(calls.length).toBeLessThanOrEqual(4);
  expect(names.nameOf('313')).toBe('job 313');
  expect(calls.every((ids) => ids.length <= 15)).toBe(true);
});

it('asks for a name once, also for one that nobody knows', async () => {
  const { names, calls, changes } = book((ids) => ids.filter((id) => id !== 'gone').map((id) => [id, id]));
  for (let turn = 0; turn < 3; turn += 1) {
    names.want(['a', 'gone', 'a']);
    await vi.advanceTimersByTimeAsync(2_000);
  }
  expect(calls).toEqual([['a', 'gone']]);
  expect([names.nameOf('a'), names.nameOf('gone'), changes()]).toEqual(['a', undefined, 1]);
});

it('does not ask for what it was told, and remembers that', async () => {
  const { names, calls } = book();
  names.learn([['a', 'one']]);
  names.want(['a']);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(calls).toEqual([]);
  expect(names.nameOf('a')).toBe('one');
});

it('asks again where nobody answered, and not once it is closed', async () => {
  const { names, calls } = book(() => {
    throw new Error('away');
  });
  names.want(['a']);
  await vi.advanceTimersByTimeAsync(3_100);
  expect(calls).toEqual([['a'], ['a'], ['a']]);
  names.close();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(calls).toHaveLength(3);
});

it('forgets the oldest out of sight', async () => {
  const { names } = book();
  names.learn(Array.from({ length: 2_005 }, (_, at) => [String(at), 'x'] as const));
  names.want(['0']);
  expect([names.nameOf('0'), names.nameOf('1'), names.nameOf('2004')]).toEqual(['x', undefined, 'x']);
});
