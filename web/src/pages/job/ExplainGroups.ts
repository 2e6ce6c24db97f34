// The scheduler's verdict on each factory, in the order in which people read it. Nothing is decided here.

import type { FactoryVerdict } from '../../api/types';
import { SCORE_TERM, wordIn, wordsOf } from '../../api/vocabulary';

export interface Term {
  name: string;
  /// A few plain words.
  label: string;
  about: string;
  value: number;
}

const UNKNOWN = 'A term that this page does not know.';

/// In a fixed order, so that bars of two factories can be compared; terms that this page does not know come last.
export function terms(verdict: FactoryVerdict): Term[] {
  const given = verdict.terms ?? {};
  const known = wordsOf(SCORE_TERM).filter((name) => Object.hasOwn(given, name));
  const others = Object.keys(given).filter((name) => wordIn(SCORE_TERM, name) === undefined);
  return [
    ...known.map((name) => ({ name, ...SCORE_TERM[name], value: finite(given[name]) })),
    ...others.sort().map((name) => ({ name, label: name, about: UNKNOWN, value: finite(given[name]) })),
  ];
}

function finite(value: number | undefined): number {
  return value !== undefined && Number.isFinite(value) ? value : 0;
}

/// The largest value, which scales all bars. Never zero.
export function widest(verdicts: FactoryVerdict[]): number {
  let most = 0;
  for (const verdict of verdicts) {
    for (const value of Object.values(verdict.terms ?? {})) most = Math.max(most, Math.abs(finite(value)));
  }
  return most || 1;
}

/// Why the first is ahead of the second: by how much, and which term makes most of the difference.
export function lead(
  first: FactoryVerdict | undefined,
  second: FactoryVerdict | undefined,
): { over: string; by: number; mostly?: string } | undefined {
  if (!first || !second) return undefined;
  const by = finite(first.score ?? undefined) - finite(second.score ?? undefined);
  let mostly: string | undefined;
  let most = 0;
  for (const term of terms(first)) {
    const difference = term.value - finite(second.terms?.[term.name]);
    if (difference > most) {
      most = difference;
      mostly = term.label;
    }
  }
  return { over: second.factoryId, by, mostly };
}

export interface Refusal {
  filter: string;
  detail: string;
  factories: string[];
}

/// Factories that were ruled out for the same reason, the most common reason first.
export function refusals(verdicts: FactoryVerdict[]): Refusal[] {
  const groups = new Map<string, Refusal>();
  for (const { factoryId, feasible, rejectedBy } of verdicts) {
    if (feasible) continue;
    const filter = rejectedBy?.filter ?? 'unknown';
    const detail = rejectedBy?.detail ?? 'no reason given';
    const key = JSON.stringify([filter, detail]);
    const group = groups.get(key);
    if (group) group.factories.push(factoryId);
    else groups.set(key, { filter, detail, factories: [factoryId] });
  }
  return [...groups.values()].sort(
    (a, b) => b.factories.length - a.factories.length || a.detail.localeCompare(b.detail),
  );
}
