// The ledger as lines of a chart. Times are seconds, as the chart wants them.

import type { Budget, Burndown } from '../../api/types';
import type { Span } from '../../app/search';
import { millis } from '../../ui/format';
import { periodOf } from './spending';

/// Fine enough for a line, coarse enough for the coordinator's limit of 1000 buckets.
export const BUCKETS: Record<Span, string> = { day: '10m', week: '1h', month: '6h' };

export interface Lines {
  /// From the beginning of the period to its end.
  from: number;
  to: number;
  now: number;
  x: number[];
  /// What was spent since the beginning, up to now.
  spent: number[];
  reserved: number;
  limit: number | undefined;
}

export function lines(burndown: Burndown, budget: Budget, span: Span): Lines | undefined {
  const from = millis(burndown.from);
  const now = millis(burndown.to);
  if (from === undefined || now === undefined) return undefined;
  const end = millis(periodOf(budget, span)?.until) ?? now;
  const x = [from / 1_000];
  const spent = [0];
  for (const bucket of burndown.buckets) {
    const begins = millis(bucket.from);
    if (begins === undefined) continue;
    // The last bucket is not over.
    x.push(Math.min(begins + burndown.bucketMs, now) / 1_000);
    spent.push(bucket.cumulativeUsd);
  }
  // The limit of a longer period says little about this one: all of it may be spent in a day.
  const limit = burndown.ceilingOf === span ? (burndown.ceilingUsd ?? undefined) : undefined;
  return {
    from: from / 1_000,
    to: Math.max(end, now) / 1_000,
    now: now / 1_000,
    x,
    spent,
    reserved: Math.max(0, budget.reservedUsd),
    limit,
  };
}

/// The highest value that has to fit, with some air; never nothing, so that an empty chart has a scale.
export function top({ spent, reserved, limit }: Lines): number {
  const most = Math.max(...spent, (spent.at(-1) ?? 0) + reserved, limit ?? 0);
  return most > 0 ? most * 1.08 : 1;
}

/// Below 0 only where corrections say so.
export function bottom({ spent }: Lines): number {
  return Math.min(0, ...spent) * 1.08;
}

export function commandOf(product: string, burndown: Burndown | undefined): string {
  const from = burndown ? ` --from ${burndown.from.replace('.000Z', 'Z')}` : '';
  return `giga budget burndown ${product}${from}`;
}
