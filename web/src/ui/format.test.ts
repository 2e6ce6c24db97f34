import { describe, expect, test } from 'vitest';
import { ago, bytes, count, duration, millis, percent, plural, shellWord, usd } from './format';

const NOT_KNOWN = [null, undefined, Number.NaN, Number.POSITIVE_INFINITY];

test.each([usd, percent, count, duration, bytes])('%s says a dash for what is not known', (format) => {
  expect(NOT_KNOWN.map((value) => format(value))).toEqual(['–', '–', '–', '–']);
});

test.each([
  [0, '$0.00'],
  [12.5, '$12.50'],
  [1234567.891, '$1,234,567.89'],
  [-3, '−$3.00'],
  [0.0042, '$0.0042'],
  [0.00001, '<$0.0001'],
  [-0.00001, '−<$0.0001'],
])('usd(%d) is %s', (dollars, text) => {
  expect(usd(dollars)).toBe(text);
});

test.each([
  [0, '0 s'],
  [0.2, '0 s'],
  [450, '450 ms'],
  [999.7, '999 ms'],
  [1_000, '1 s'],
  [59_999, '59 s'],
  [60_000, '1 min'],
  [125_000, '2 min 5 s'],
  [3_600_000, '1 h'],
  [3_605_000, '1 h'],
  [90_000_000, '1 d 1 h'],
  [-5, '0 s'],
])('duration(%d) is %s', (ms, text) => {
  expect(duration(ms)).toBe(text);
});

describe('ago', () => {
  const now = 1_000_000_000;
  test.each([
    [500, 'just now'],
    [-1_500, 'just now'],
    [-5_000, 'in 5 s'],
    [12_345, '12 s ago'],
    [125_000, '2 min ago'],
    [7_265_000, '2 h 1 min ago'],
  ])('%d ms before now is %s', (past, text) => {
    expect(ago(now - past, now)).toBe(text);
  });
});

test.each([
  [0, '0 B'],
  [1_023, '1023 B'],
  [1_024, '1.0 KiB'],
  [1_048_560, '1.0 MiB'],
  [5 * 1024 ** 4, '5.0 TiB'],
  [5000 * 1024 ** 4, '5000.0 TiB'],
  [-1, '0 B'],
])('bytes(%d) is %s', (size, text) => {
  expect(bytes(size)).toBe(text);
});

test('counts and shares', () => {
  expect([count(12345), percent(0.256), plural(1, 'job'), plural(2, 'factory', 'factories')]).toEqual([
    '12,345',
    '26 %',
    '1 job',
    '2 factories',
  ]);
});

test.each([
  ['2026-01-01T00:00:00Z', Date.UTC(2026, 0, 1)],
  ['', undefined],
  ['yesterday', undefined],
  [null, undefined],
])('millis(%j) is %j', (text, at) => {
  expect(millis(text)).toBe(at);
});

test.each([
  ['fix-greeting', 'fix-greeting'],
  ['', "''"],
  ['two words', "'two words'"],
  ["it's", "'it'\\''s'"],
  ['$(rm -rf /)', "'$(rm -rf /)'"],
  ['a;b', "'a;b'"],
  ['~root', "'~root'"],
])('shellWord(%j) is %s', (text, word) => {
  expect(shellWord(text)).toBe(word);
});
