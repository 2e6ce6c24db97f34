import { oneOf } from '../../app/search';

export const SPANS = ['day', 'week', 'month'] as const;
export type Span = (typeof SPANS)[number];

export interface BudgetSearch {
  /// How much of the ledger the chart shows.
  span?: Span;
}

export function budgetSearch(search: Record<string, unknown>): BudgetSearch {
  return { span: oneOf(search.span, SPANS) };
}
