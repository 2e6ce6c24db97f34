import { act, renderHook } from '@testing-library/react';
import { beforeEach, expect, test, vi } from 'vitest';
import { useNow } from './useNow';

const START = Date.UTC(2026, 0, 1);

beforeEach(() => void vi.useFakeTimers({ now: START + 400 }));

const later = (ms: number) => act(() => vi.advanceTimersByTime(ms));

test('ticks by the second, for all with one timer, and stops with the last of them', () => {
  const one = renderHook(() => useNow());
  const two = renderHook(() => useNow());
  expect([one.result.current, two.result.current]).toEqual([START, START]);
  expect(vi.getTimerCount()).toBe(1);
  later(1_000);
  expect([one.result.current, two.result.current]).toEqual([START + 1_000, START + 1_000]);
  one.unmount();
  expect(vi.getTimerCount()).toBe(1);
  two.unmount();
  expect(vi.getTimerCount()).toBe(0);
});

test('does not show the time when somebody last looked', () => {
  renderHook(() => useNow()).unmount();
  vi.advanceTimersByTime(3_600_000);
  const seen: number[] = [];
  renderHook(() => seen.push(useNow()));
  expect(new Set(seen)).toEqual(new Set([START + 3_600_000]));
});

test('stands still when it need not tick', () => {
  const { result } = renderHook(() => useNow(false));
  expect(vi.getTimerCount()).toBe(0);
  later(5_000);
  expect(result.current).toBe(START);
});
