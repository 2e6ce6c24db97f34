import { act, renderHook } from '@testing-library/react';
import { beforeEach, expect, test, vi } from 'vitest';
import { useTyped } from './Filters';

beforeEach(() => void vi.useFakeTimers());

/// A field whose value is kept by whoever is told.
function field(first: string) {
  const tell = vi.fn();
  const hook = renderHook(({ value }) => useTyped(value, tell), { initialProps: { value: first } });
  return {
    tell,
    shown: () => hook.result.current[0],
    type: (text: string) => act(() => hook.result.current[1](text)),
    set: (value: string) => hook.rerender({ value }),
    pause: () => act(() => vi.advanceTimersByTime(300)),
  };
}

test('is told once, when the typing pauses', () => {
  const { tell, type, pause, shown } = field('');
  for (const text of ['f', 'fi', 'fix']) type(text);
  expect(shown()).toBe('fix');
  expect(tell).not.toHaveBeenCalled();
  pause();
  expect(tell.mock.calls).toEqual([['fix']]);
});

test('what comes back late does not undo the letters since', () => {
  const { type, pause, set, shown, tell } = field('');
  type('fi');
  pause();
  type('fix');
  set('fi');
  expect(shown()).toBe('fix');
  pause();
  expect(tell.mock.calls).toEqual([['fi'], ['fix']]);
});

test('a change from elsewhere, as by going back, is shown and not told', () => {
  const { type, pause, set, shown, tell } = field('old');
  type('new');
  pause();
  set('new');
  set('old');
  expect(shown()).toBe('old');
  pause();
  expect(tell).toHaveBeenCalledTimes(1);
});

test('typing back to what is there already tells nobody', () => {
  const { type, pause, tell } = field('fix');
  type('fixx');
  type('fix');
  pause();
  expect(tell).not.toHaveBeenCalled();
});
