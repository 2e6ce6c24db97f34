import { describe, expect, it } from 'vitest';
import type { Budget, BudgetPeriod } from '../../api/types';
import { isUrgent, meterWords, pauseWords, shares, withoutBudget } from './spending';

describe('the bar of a period', () => {
  it('is none without a limit', () => {
    expect(shares(7, 1, undefined)).toBeUndefined();
    expect(shares(7, 1, null)).toBeUndefined();
    expect(shares(7, 1, Number.NaN)).toBeUndefined();
  });

  it('shows what is reserved apart from what is spent', () => {
    expect(shares(5, 2.5, 10)).toEqual({ spent: 0.5, reserved: 0.25, limit: 1, over: false, near: false });
  });

  it('is never longer than itself where more was spent than allowed', () => {
    const bar = shares(15, 5, 10);
    expect(bar).toEqual({ spent: 0.75, reserved: 0.25, limit: 0.5, over: true, near: true });
  });

  it('has only numbers in it for nothing, for a limit of nothing and for refunds', () => {
    expect(shares(0, 0, 10)).toEqual({ spent: 0, reserved: 0, limit: 1, over: false, near: false });
    expect(shares(0, 0, 0)).toEqual({ spent: 0, reserved: 0, limit: 1, over: false, near: true });
    expect(shares(3, 0, 0)).toEqual({ spent: 1, reserved: 0, limit: 0, over: true, near: true });
    expect(shares(-4, 0, 10)).toEqual({ spent: 0, reserved: 0, limit: 1, over: false, near: false });
  });

  it('warns from 80 % on, as the coordinator does, and is not over at the limit itself', () => {
    expect(shares(7.99, 0, 10)?.near).toBe(false);
    expect(shares(6, 2, 10)?.near).toBe(true);
    expect(shares(10, 0, 10)?.over).toBe(false);
  });
});

const day = (part: Partial<BudgetPeriod> = {}): BudgetPeriod => ({
  period: 'day',
  spentUsd: 7,
  tokens: 0,
  until: '2026-11-16T00:00:00.000Z',
  ...part,
});

it('says the same in words', () => {
  expect(meterWords(day(), 0)).toBe('$7.00 spent, no limit');
  expect(meterWords(day({ ceilingUsd: 20, leftUsd: 11 }), 2)).toBe(
    '$7.00 spent, $2.00 reserved, of $20.00; $11.00 left',
  );
});

describe('a pause', () => {
  const paused = (pause: Budget['paused'], ...periods: BudgetPeriod[]) =>
    pauseWords({ paused: pause, periods });
  const at = '2026-11-15T20:00:00Z';

  it('by somebody lasts until somebody resumes it', () => {
    expect(paused({ at, cause: 'operator', by: 'ana', reason: 'too dear' })).toEqual({
      why: 'Paused by ana: too dear',
      until: 'until somebody resumes it',
    });
    expect(paused({ at, cause: 'operator' })?.why).toBe('Paused');
  });

  it('by a limit lasts until its period is over, which the total never is', () => {
    expect(paused({ at, cause: 'ceiling', period: 'day' }, day({ ceilingUsd: 7 }))).toEqual({
      why: 'The daily limit is reached ($7.00 of $7.00)',
      until: 'until 2026-11-16 00:00 UTC or until the limit is raised',
    });
    expect(
      paused({ at, cause: 'ceiling', period: 'total' }, day({ period: 'total', until: null }))?.until,
    ).toBe('until the limit is raised');
  });

  it('is none where there is none', () => {
    expect(paused(null)).toBeUndefined();
  });
});

it('lists products without a budget once', () => {
  expect(withoutBudget([{ productId: 'demo' }], ['shop', 'demo'], ['shop', 'atlas'])).toEqual([
    'atlas',
    'shop',
  ]);
});

it('puts those first of which nothing is started, or that are over', () => {
  const period = (spentUsd: number, ceilingUsd: number | null) =>
    ({ period: 'day', spentUsd, ceilingUsd, leftUsd: null, tokens: 0 }) as unknown as BudgetPeriod;
  const pause = { cause: 'operator', at: '2026-11-15T10:00:00Z' } as Budget['paused'];
  expect(isUrgent({ reservedUsd: 0, periods: [period(9, 10), period(99, null)] })).toBe(false);
  expect(isUrgent({ reservedUsd: 2, periods: [period(1, null), period(9, 10)] })).toBe(true);
  expect(isUrgent({ reservedUsd: 0, periods: [], paused: pause })).toBe(true);
});
