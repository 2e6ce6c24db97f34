import { expect, test } from 'vitest';
import { NOTHING, type Selection, toggle, toggleAll, toggleRange, without } from './useSelection';

const ORDER = ['a', 'b', 'c', 'd', 'e'];
const ids = (selection: Selection) => [...selection.ids].sort().join('');

test('one by one', () => {
  const two = toggle(toggle(NOTHING, 'a'), 'c');
  expect(ids(two)).toBe('ac');
  expect(ids(toggle(two, 'a'))).toBe('c');
  expect(ids(NOTHING)).toBe('');
});

test('a range goes from the last choice, down or up, on or off', () => {
  expect(ids(toggleRange(toggle(NOTHING, 'b'), 'd', ORDER))).toBe('bcd');
  expect(ids(toggleRange(toggle(NOTHING, 'd'), 'b', ORDER))).toBe('bcd');
  const all = toggleAll(NOTHING, ORDER);
  expect(ids(toggleRange(toggle(all, 'b'), 'd', ORDER))).toBe('ae');
});

test('a range without a beginning, or from a row that is gone, is one row', () => {
  expect(ids(toggleRange(NOTHING, 'c', ORDER))).toBe('c');
  expect(ids(toggleRange({ ids: new Set(['x']), anchor: 'x' }, 'c', ORDER))).toBe('cx');
});

test('all, and none when all were', () => {
  const all = toggleAll(toggle(NOTHING, 'b'), ORDER);
  expect(ids(all)).toBe('abcde');
  expect(ids(toggleAll(all, ORDER))).toBe('');
  expect(ids(toggleAll(all, [...ORDER, 'f']))).toBe('abcdef');
});

test('what was done is chosen no longer; what was chosen besides stays', () => {
  const chosen = { ids: new Set(['a', 'b', 'c']), anchor: 'c' };
  expect(without(chosen, ['a', 'x'])).toEqual({ ids: new Set(['b', 'c']), anchor: 'c' });
  expect(chosen.ids.size).toBe(3);
});
