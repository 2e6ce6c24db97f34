import { describe, expect, it } from 'vitest';
import type { Factory } from '../../api/types';
import { choicesFor, productChoices, whereIs } from './fleet';

const factory = (id: string, capabilities: string[], more: Partial<Factory> = {}) =>
  ({ id, capabilities, live: true, products: [], repos: [], canClone: false, ...more }) as unknown as Factory;

const FLEET = [
  factory('w1', ['engine:shell', 'os:linux', 'repo:hello'], { repos: [{ name: 'hello' }] }),
  factory('w2', ['engine:shell', 'engine:claude', 'os:linux'], { products: ['demo'], canClone: true }),
  factory('mac', ['engine:claude', 'xcode'], { live: false, repos: [{ name: 'hello' }] }),
];

describe('choices', () => {
  it('are what the product may use, counted, what most live ones have first', () => {
    const { engines, capabilities, repos, live, canClone } = choicesFor(FLEET, 'demo');
    expect(engines.map(({ value, live: n, factories }) => [value, n, factories.length])).toEqual([
      ['shell', 2, 2],
      ['claude', 1, 2],
    ]);
    expect(capabilities.map((choice) => choice.value)).toEqual(['os:linux', 'xcode']);
    expect(repos).toEqual([{ value: 'hello', live: 1, factories: ['w1', 'mac'] }]);
    expect([live, canClone]).toEqual([2, 1]);
  });

  it('leave out factories that do not take the product', () => {
    expect(choicesFor(FLEET, 'other').engines.map((choice) => choice.value)).toEqual(['shell', 'claude']);
    expect(choicesFor(FLEET, 'other').live).toBe(1);
  });

  it('say where', () => {
    const [shell] = choicesFor(FLEET, 'demo').engines;
    expect(whereIs(shell)).toBe('on w1, w2');
    const dead = { value: 'x', live: 0, factories: ['a', 'b', 'c', 'd', 'e'] };
    expect(whereIs(dead)).toBe('on a, b, c and 2 more, offline');
    expect(whereIs(undefined)).toBe('');
  });
});

describe('products', () => {
  it('are those that the token covers', () => {
    const known = ['demo', 'secret'];
    expect(productChoices({ everyProduct: false, products: ['shop'] }, known, FLEET)).toEqual(['shop']);
    expect(productChoices({ everyProduct: true, products: [] }, known, FLEET)).toEqual(['demo', 'secret']);
    expect(productChoices(undefined, known, FLEET)).toEqual([]);
  });
});
