import { act, renderHook } from '@testing-library/react';
import { beforeEach, expect, it, vi } from 'vitest';
import { PIECE } from './logBuffer';
import { useLog, wholeLog } from './useLog';

// A run's log as the coordinator hands it out, and what was asked for.
let log = '';
let over = false;
let away = false;
let asked: number[] = [];

beforeEach(() => {
  [log, over, away, asked] = ['', false, false, []];
  vi.useFakeTimers();
  vi.stubGlobal('fetch', async (request: Request) => {
    if (away) throw new TypeError('connection refused');
    const offset = Number(new URL(request.url).searchParams.get('offset'));
    asked.push(offset);
    const text = log.slice(offset, offset + PIECE);
    const nextOffset = offset + text.length;
    const complete = over && nextOffset >= log.length;
    return Response.json({ leaseEpoch: 1, offset, nextOffset, total: log.length, complete, text });
  });
});

const after = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));
const opened = async (mostRows?: number) => {
  const hook = renderHook(() => useLog('J1', 1, mostRows));
  await after(0);
  return hook;
};
const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}\n`).join('');

it('begins with the end of a long log, gets what is older when asked, and keeps the rows where they are', async () => {
  log = lines(100_000);
  over = true;
  const { result } = await opened();
  expect(result.current.loaded).toBe(true);
  expect(result.current.buffer.row(result.current.buffer.length - 1)?.text).toBe('line 99999');
  // How long it is, and its last piece: not all of it.
  expect(asked).toHaveLength(2);
  expect(asked[1]).toBe(log.length - PIECE);
  const before = result.current.buffer.length;
  await act(() => result.current.older(false));
  expect(result.current.moved).toBe(result.current.buffer.length - before);
  expect(result.current.moved).toBeGreaterThan(0);
  await act(() => result.current.older(true));
  expect(result.current.buffer.length).toBe(100_000);
  expect(result.current.buffer.row(0)?.text).toBe('line 0');
});

it('looks for more while the run goes on, asks only for what is new, and stops when it is over', async () => {
  log = 'one\n';
  const { result } = await opened();
  log += 'two\n';
  await after(1_100);
  expect(result.current.buffer.length).toBe(2);
  expect(asked.at(-1)).toBe(4);
  log += 'three\n';
  over = true;
  await after(1_100);
  expect([result.current.buffer.length, result.current.buffer.complete]).toEqual([3, true]);
  const looks = asked.length;
  await after(10_000);
  expect(asked.length).toBe(looks);
});

it('says that it cannot be read, keeps what it has, and goes on when the coordinator is back', async () => {
  log = 'one\n';
  const { result } = await opened();
  away = true;
  await after(1_100);
  expect(result.current.error).toBeDefined();
  expect(result.current.buffer.length).toBe(1);
  away = false;
  log += 'two\n';
  await after(4_000);
  expect(result.current.error).toBeUndefined();
  expect(result.current.buffer.length).toBe(2);
});

it('says no longer that it cannot be read once it can, though nothing was written meanwhile', async () => {
  log = 'one\n';
  const { result } = await opened();
  away = true;
  await after(1_100);
  expect(result.current.error).toBeDefined();
  away = false;
  await after(4_000);
  expect(result.current.error).toBeUndefined();
});

it('keeps no more rows than it is asked to', async () => {
  log = lines(5_000);
  const { result } = await opened(100);
  expect(result.current.buffer.length).toBeLessThanOrEqual(100);
  expect(result.current.buffer.row(result.current.buffer.length - 1)?.text).toBe('line 4999');
});

it('asks for nothing while nobody looks', async () => {
  log = 'one\n';
  const { result } = await opened();
  const seen = vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden');
  await after(1_100);
  const looks = asked.length;
  log += 'two\n';
  await after(60_000);
  expect(asked.length).toBe(looks);
  seen.mockRestore();
  document.dispatchEvent(new Event('visibilitychange'));
  await after(0);
  expect(result.current.buffer.length).toBe(2);
});

it('starts anew with another run, and what was asked for the old one is not mixed in', async () => {
  log = 'one\n';
  const { result, rerender, unmount } = renderHook(({ epoch }) => useLog('J1', epoch), {
    initialProps: { epoch: 1 },
  });
  await after(0);
  log = 'other\n';
  over = true;
  rerender({ epoch: 2 });
  await after(0);
  expect(result.current.buffer.row(0)?.text).toBe('other');
  expect(result.current.buffer.length).toBe(1);
  unmount();
  const looks = asked.length;
  await after(5_000);
  expect(asked.length).toBe(looks);
});

it('downloads all of it', async () => {
  log = lines(60_000);
  over = true;
  const shares: number[] = [];
  const blob = await wholeLog('J1', 1, (share) => shares.push(share));
  expect(blob.size).toBe(log.length);
  expect(shares.at(-1)).toBe(1);
  expect(shares.length).toBeGreaterThan(1);
});
