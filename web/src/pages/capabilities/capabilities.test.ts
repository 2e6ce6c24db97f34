import { expect, test } from 'vitest';
import type { CapabilityUse } from '../../api/types';
import { askedForBy, holders, inUse, isMissing } from './capabilities';

const known = (change: Partial<CapabilityUse>): CapabilityUse => ({
  capability: 'gpu:a100',
  factories: [],
  running: 0,
  queued: 0,
  products: [],
  ...change,
});

const holder = (factoryId: string, available = true, units?: number, used = 0) => ({
  factoryId,
  available,
  used,
  ...(units === undefined ? {} : { units }),
});

test('what is waited for and nowhere to be had is missing', () => {
  expect(isMissing(known({ queued: 1 }))).toBe(true);
  expect(isMissing(known({ queued: 1, factories: [holder('a', false)] }))).toBe(true);
  expect(isMissing(known({ queued: 1, factories: [holder('a')] }))).toBe(false);
  expect(isMissing(known({ queued: 0 }))).toBe(false);
});

test('numbers are added up where every factory counts', () => {
  const factories = [holder('a', true, 2, 2), holder('b', true, 4, 1)];
  expect(inUse(known({ units: 6, factories }))).toBe('3 of 6');
  expect(inUse(known({ factories: [holder('a')] }))).toBe('–');
});

test('many factories are cut, and one that takes no jobs says so', () => {
  expect(holders(known({}))).toBe('no factory has it');
  expect(holders(known({ factories: [holder('a', true, 2, 1), holder('b', false)] }))).toBe(
    'a (1/2); b, unavailable',
  );
  const six = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => holder(id));
  expect(holders(known({ factories: six }))).toBe('a; b; c; d and 2 more');
});

test('who asks for it', () => {
  expect(askedForBy(known({}))).toBe('–');
  const products = ['demo', 'shop'].map((productId) => ({ productId, running: 1, queued: 0 }));
  expect(askedForBy(known({ products }))).toBe('demo, shop');
});
