// What a budget comes to on the screen: shares of a bar, words for a pause, fields of the form. No markup.

import type { Budget, BudgetPeriod } from '../../api/types';
import { usd } from '../../ui/format';

export const PERIODS = ['day', 'week', 'month', 'total'] as const;
export type Period = (typeof PERIODS)[number];

export interface MeterShares {
  /// Parts of the bar, 0 to 1; together never more than 1.
  spent: number;
  reserved: number;
  /// Where the ceiling is on the bar: 1 unless more than it is spent or set aside.
  ceiling: number;
  /// More was spent or set aside than the ceiling allows.
  over: boolean;
  /// At or above 80 %, where the coordinator warns too.
  near: boolean;
}

const NEAR = 0.8;

/// Nothing where there is no ceiling: a bar would have no end.
export function shares(
  spentUsd: number,
  reservedUsd: number,
  ceilingUsd: number | null | undefined,
): MeterShares | undefined {
  if (ceilingUsd === null || ceilingUsd === undefined || !Number.isFinite(ceilingUsd)) return undefined;
  // Corrections can make a period's sum negative.
  const spent = Math.max(0, Number.isFinite(spentUsd) ? spentUsd : 0);
  const reserved = Math.max(0, Number.isFinite(reservedUsd) ? reservedUsd : 0);
  const used = spent + reserved;
  const whole = Math.max(ceilingUsd, used);
  if (whole <= 0) return { spent: 0, reserved: 0, ceiling: 1, over: false, near: true };
  return {
    spent: spent / whole,
    reserved: reserved / whole,
    ceiling: Math.max(0, ceilingUsd) / whole,
    over: used > ceilingUsd,
    near: used >= ceilingUsd * NEAR,
  };
}

export function periodOf(budget: Pick<Budget, 'periods'>, period: Period): BudgetPeriod | undefined {
  return budget.periods.find((known) => known.period === period);
}

/// Paused, or over one of its ceilings.
export function isUrgent(budget: Pick<Budget, 'paused' | 'periods' | 'reservedUsd'>): boolean {
  const over = ({ spentUsd, ceilingUsd }: BudgetPeriod) =>
    shares(spentUsd, budget.reservedUsd, ceilingUsd)?.over;
  return Boolean(budget.paused) || budget.periods.some(over);
}

const OF_THE: Record<string, string> = {
  day: 'of the day',
  week: 'of the week',
  month: 'of the month',
  total: 'in total',
};
function ofThe(period: string | null | undefined): string {
  return OF_THE[period ?? ''] ?? '';
}

/// What a meter says, in words.
export function meterWords(period: BudgetPeriod, reservedUsd: number): string {
  const aside = reservedUsd > 0 ? `, ${usd(reservedUsd)} set aside` : '';
  const ceiling = period.ceilingUsd;
  if (ceiling === null || ceiling === undefined) return `${usd(period.spentUsd)} spent${aside}, no ceiling`;
  return `${usd(period.spentUsd)} spent${aside}, of ${usd(ceiling)}; ${usd(period.leftUsd)} left`;
}

/// Why nothing of the product is started, and what ends that.
export function pauseWords(
  budget: Pick<Budget, 'paused' | 'periods'>,
): { why: string; until: string } | undefined {
  const { paused } = budget;
  if (!paused) return undefined;
  if (paused.cause === 'operator') {
    const by = paused.by ? ` by ${paused.by}` : '';
    const reason = paused.reason ? `: ${paused.reason}` : '';
    return { why: `Paused${by}${reason}`, until: 'until somebody resumes it' };
  }
  const period = budget.periods.find((known) => known.period === paused.period);
  const sum = period ? ` (${usd(period.spentUsd)} of ${usd(period.ceilingUsd)})` : '';
  const end = period?.until ? `until ${utc(period.until)} or ` : '';
  return { why: `The ceiling ${ofThe(paused.period)} is reached${sum}`, until: `${end}until it is raised` };
}

/// `2026-11-16 00:00 UTC`: the ends of periods are UTC's, wherever the reader is.
export function utc(rfc3339: string): string {
  const at = Date.parse(rfc3339);
  return Number.isNaN(at) ? '–' : `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/// Those that somebody works with but that have no budget.
export function withoutBudget(
  budgets: readonly { productId: string }[],
  ...known: readonly string[][]
): string[] {
  const has = new Set(budgets.map((budget) => budget.productId));
  return [...new Set(known.flat())].filter((product) => !has.has(product)).sort();
}
