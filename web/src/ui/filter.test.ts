import { expect, it } from 'vitest';
import { matchesWords, urgentFirst } from './filter';

it('finds every word somewhere, whatever its case and place', () => {
  expect(matchesWords('  ', [])).toBe(true);
  expect(matchesWords('MAIL shop', ['shop-1', 'e-mail'])).toBe(true);
  expect(matchesWords('mail bank', ['shop-1', 'e-mail'])).toBe(false);
});

it('puts the urgent first and changes no other order', () => {
  const things = ['c', 'B', 'a', 'A', 'b'];
  expect(urgentFirst(things, (text) => text < 'a')).toEqual(['B', 'A', 'c', 'a', 'b']);
  expect(things).toEqual(['c', 'B', 'a', 'A', 'b']);
});
