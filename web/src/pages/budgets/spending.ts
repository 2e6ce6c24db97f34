// What the page shows of a budget: shares of a bar, words for a pause. No markup.

import type { Budget, BudgetPeriod } from '../../api/types';
import { labelOf, PERIOD, type Period } from '../../api/vocabulary';
import { usd } from '../../ui/format';

interface MeterShares {
  /// Parts of the bar, 0 to 1; together never more than 1.
  spent: number;
  reserved: number;
  /// Where the limit is on the bar: 1 unless more than it is spent or reserved.
  limit: number;
  /// More is spent or reserved than the limit allows.
  over: boolean;
  /// At or above 80 %, where the coordinator warns too.
  near: boolean;
}

const NEAR = 0.8;

/// Nothing without a limit: the bar would have no end.
export function shares(
  spentUsd: number,
  reservedUsd: number,
  limitUsd: number | null | undefined,
): MeterShares | undefined {
  if (limitUsd === null || limitUsd === undefined || !Number.isFinite(limitUsd)) return undefined;
  // Corrections can make a period's sum negative.
  const spent = Math.max(0, Number.isFinite(spentUsd) ? spentUsd : 0);
  const reserved = Math.max(0, Number.isFinite(reservedUsd) ? reservedUsd : 0);
  const used = spent + reserved;
  const whole = Math.max(limitUsd, used);
  if (whole <= 0) return { spent: 0, reserved: 0, limit: 1, over: false, near: true };
  return {
    spent: spent / whole,
    reserved: reserved / whole,
    limit: Math.max(0, limitUsd) / whole,
    over: used > limitUsd,
    near: used >= limitUsd * NEAR,
  };
}

export function periodOf(budget: Pick<Budget, 'periods'>, period: Period): BudgetPeriod | undefined {
  return budget.periods.find((known) => known.period === period);
}

/// Paused, or over one of its limits.
export function isUrgent(budget: Pick<Budget, 'paused' | 'periods' | 'reservedUsd'>): boolean {
  const over = ({ spentUsd, ceilingUsd }: BudgetPeriod) =>
    shares(spentUsd, budget.reservedUsd, ceilingUsd)?.over;
  return Boolean(budget.paused) || budget.periods.some(over);
}

/// What a meter says, in words.
export function meterWords(period: BudgetPeriod, reservedUsd: number): string {
  const reserved = reservedUsd > 0 ? `, ${usd(reservedUsd)} reserved` : '';
  const limit = period.ceilingUsd;
  if (limit === null || limit === undefined) return `${usd(period.spentUsd)} spent${reserved}, no limit`;
  return `${usd(period.spentUsd)} spent${reserved}, of ${usd(limit)}; ${usd(period.leftUsd)} left`;
}

/// Why the product's jobs do not start, and what ends that.
export function pauseWords(
  budget: Pick<Budget, 'paused' | 'periods'>,
  actorName: (actor: string) => string = (actor) => actor,
): { why: string; until: string } | undefined {
  const { paused } = budget;
  if (!paused) return undefined;
  if (paused.cause === 'operator') {
    const by = paused.by ? ` by ${actorName(paused.by)}` : '';
    const reason = paused.reason ? `: ${paused.reason}` : '';
    return { why: `Paused${by}${reason}`, until: 'until somebody resumes it' };
  }
  const period = budget.periods.find((known) => known.period === paused.period);
  const sum = period ? ` (${usd(period.spentUsd)} of ${usd(period.ceilingUsd)})` : '';
  const end = period?.until ? `until ${utc(period.until)} or ` : '';
  const limit = paused.period ? `${labelOf(PERIOD, paused.period)} limit` : 'limit';
  return { why: `The ${limit} is reached${sum}`, until: `${end}until the limit is raised` };
}

/// `2026-11-16 00:00 UTC`: the ends of periods are UTC's, wherever the reader is.
export function utc(rfc3339: string): string {
  const at = Date.parse(rfc3339);
  return Number.isNaN(at) ? '–' : `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/// Known products that have no budget.
export function withoutBudget(
  budgets: readonly { productId: string }[],
  ...known: readonly string[][]
): string[] {
  const has = new Set(budgets.map((budget) => budget.productId));
  return [...new Set(known.flat())].filter((product) => !has.has(product)).sort();
}
