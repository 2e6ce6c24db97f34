import { expect, it } from 'vitest';
import { holdsWords, urgentFirst } from './filter';

it('finds every word somewhere, whatever its case and place', () => {
  expect(holdsWords('  ', [])).toBe(true);
  expect(holdsWords('MAIL shop', ['shop-1', 'e-mail'])).toBe(true);
  expect(holdsWords('mail bank', ['shop-1', 'e-mail'])).toBe(false);
});

it('puts the urgent first and changes no other order', () => {
  const things = ['c', 'B', 'a', 'A', 'b'];
  expect(urgentFirst(things, (text) => text < 'a')).toEqual(['B', 'A', 'c', 'a', 'b']);
  expect(things).toEqual(['c', 'B', 'a', 'A', 'b']);
});
