// What the scheduler said about each factory, put in the order in which a person wants to read it. Nothing is decided here.

import type { FactoryVerdict } from '../../api/types';

export interface Term {
  name: string;
  /// A few plain words.
  label: string;
  about: string;
  value: number;
}

const TERMS: Record<string, { label: string; about: string }> = {
  capabilityFit: {
    label: 'fits closely',
    about:
      'Higher where little that the factory offers would lie idle: rare machines are kept for jobs that need them.',
  },
  affinity: {
    label: 'knows the repository',
    about: 'The repository is there already, was used within a day, or the job itself last ran there.',
  },
  load: { label: 'has room', about: 'Higher where fewer seats are taken and the machine says it is idle.' },
  costFit: {
    label: 'is cheap',
    about: 'Higher where the factory costs less than the dearest one of the fleet.',
  },
  health: {
    label: 'is healthy',
    about: 'Full where the factory reports that it is well, half where it is degraded.',
  },
  starvation: {
    label: 'has not waited long',
    about: 'Taken off a job that is new, and less of it the longer it waits. The same for every factory.',
  },
};

const UNKNOWN = 'A term that this page does not know yet.';

/// In a fixed order, so that bars of two factories can be compared; terms that this page does not know come last.
export function terms(verdict: FactoryVerdict): Term[] {
  const given = verdict.terms ?? {};
  const known = Object.keys(TERMS).filter((name) => Object.hasOwn(given, name));
  const others = Object.keys(given).filter((name) => !Object.hasOwn(TERMS, name));
  return [...known, ...others.sort()].map((name) => ({
    name,
    ...((Object.hasOwn(TERMS, name) ? TERMS[name] : undefined) ?? { label: name, about: UNKNOWN }),
    value: finite(given[name]),
  }));
}

function finite(value: number | undefined): number {
  return value !== undefined && Number.isFinite(value) ? value : 0;
}

/// The longest bar there is, which all bars are measured by. Never zero.
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

/// Factories that were refused for the same reason, the most common reason first.
export function refusals(verdicts: FactoryVerdict[]): Refusal[] {
  const groups = new Map<string, Refusal>();
  for (const { factoryId, feasible, rejectedBy } of verdicts) {
    if (feasible) continue;
    const filter = rejectedBy?.filter ?? 'unknown';
    const detail = rejectedBy?.detail ?? 'was refused without a reason';
    const key = JSON.stringify([filter, detail]);
    const group = groups.get(key);
    if (group) group.factories.push(factoryId);
    else groups.set(key, { filter, detail, factories: [factoryId] });
  }
  return [...groups.values()].sort(
    (a, b) => b.factories.length - a.factories.length || a.detail.localeCompare(b.detail),
  );
}

const FILTERS: Record<string, string> = {
  draining: 'draining',
  stale: 'not heard from',
  down: 'down',
  product: 'product',
  capabilities: 'capabilities',
  repo: 'repository',
  seats: 'seats',
  not_ready: 'not ready yet',
  paused: 'paused',
  budget: 'budget',
  concurrency: 'concurrency',
  offered: 'on offer',
  excluded: 'left out',
  no_factories: 'no factories',
  order: 'its turn',
};

export function filterWord(code: string): string {
  return (Object.hasOwn(FILTERS, code) && FILTERS[code]) || code.replaceAll('_', ' ');
}

/// The sentences of the scheduler begin in small letters; on a page they stand alone.
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
