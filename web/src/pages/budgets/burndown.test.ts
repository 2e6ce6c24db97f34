import { expect, it } from 'vitest';
import type { Budget, Burndown } from '../../api/types';
import { bottom, lines, top } from './burndown';

const budget = {
  productId: 'demo',
  rev: 1,
  ceilings: {},
  reservedUsd: 2,
  periods: [
    { period: 'day', since: '2026-11-15T00:00:00Z', until: '2026-11-16T00:00:00Z', spentUsd: 3, tokens: 0 },
  ],
} as Budget;

function burndown(part: Partial<Burndown> = {}): Burndown {
  const bucket = (hour: string, usd: number, cumulativeUsd: number) => ({
    from: `2026-11-15T${hour}:00:00Z`,
    usd,
    tokens: 0,
    runs: 0,
    cumulativeUsd,
  });
  return {
    productId: 'demo',
    from: '2026-11-15T00:00:00Z',
    to: '2026-11-15T01:30:00Z',
    bucketMs: 3_600_000,
    totalUsd: 3,
    buckets: [bucket('00', 1, 1), bucket('01', 2, 3)],
    ...part,
  };
}

const hour = 3_600;
const midnight = Date.parse('2026-11-15T00:00:00Z') / 1_000;

it('begins with nothing and ends now, not at the end of the last stretch', () => {
  const drawn = lines(burndown(), budget, 'day');
  expect(drawn?.x.map((at) => (at - midnight) / hour)).toEqual([0, 1, 1.5]);
  expect(drawn?.spent).toEqual([0, 1, 3]);
  expect(drawn && (drawn.to - midnight) / hour).toBe(24);
});

it('draws only the limit of its own period', () => {
  expect(lines(burndown({ ceilingUsd: 20, ceilingOf: 'day' }), budget, 'day')?.limit).toBe(20);
  expect(lines(burndown({ ceilingUsd: 200, ceilingOf: 'month' }), budget, 'day')?.limit).toBeUndefined();
});

it('has room for all of it, and a scale where there is nothing', () => {
  const full = lines(burndown(), budget, 'day');
  expect(full && top(full)).toBeCloseTo(5 * 1.08);
  const empty = lines(burndown({ buckets: [] }), { ...budget, reservedUsd: 0 }, 'day');
  expect(empty && [top(empty), bottom(empty)]).toEqual([1, 0]);
  const refund = burndown({
    buckets: [{ from: '2026-11-15T00:00:00Z', usd: -2, tokens: 0, runs: 0, cumulativeUsd: -2 }],
  });
  const below = lines(refund, { ...budget, reservedUsd: 0 }, 'day');
  expect(below && bottom(below)).toBeLessThan(-2);
});
