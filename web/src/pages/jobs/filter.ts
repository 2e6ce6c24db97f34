// What the filters of app/search.ts come to: for the API, on the command line, for a row that changed, and as chips. The
// coordinator decides what is in the list; the check of a row only says that it no longer matches.

import { inProduct } from '../../api/client';
import type { FleetMetrics, Job } from '../../api/types';
import type { Priority, Stage } from '../../api/vocabulary';
import { FILTERS, JOB_FILTERS, type JobFilter, type JobsSearch, words } from '../../app/search';
import { shellWord } from '../../ui/format';

/// Adds the word to the list, or removes it; nothing if none is left.
export function toggled(list: string | undefined, word: string): string | undefined {
  const now = words(list);
  const next = now.includes(word) ? now.filter((other) => other !== word) : [...now, word];
  return next.length > 0 ? next.join(',') : undefined;
}

export function isFiltered(search: JobsSearch): boolean {
  return JOB_FILTERS.some((name) => search[name] !== undefined);
}

export function toParams(search: JobsSearch) {
  const { product, stage, priority, ...query } = search;
  // The coordinator refuses a word that it does not know, and says so on the page.
  const words = <W extends string>(list: string | undefined) => list?.split(',') as W[] | undefined;
  return {
    header: inProduct(product),
    query: { ...query, stage: words<Stage>(stage), priority: words<Priority>(priority) },
  };
}

export function matches(job: Job, search: JobsSearch): boolean {
  return JOB_FILTERS.every((name) => {
    const value = search[name];
    return value === undefined || FILTERS[name].matches(job, value);
  });
}

/// The same as a command.
export function listCommand(search: JobsSearch): string {
  const flags = [...new Set<JobFilter>(['product', ...JOB_FILTERS])].flatMap((name) => {
    const value = search[name];
    // A leading dash would be taken for another flag.
    return value === undefined ? [] : [`--${name}${value.startsWith('-') ? '=' : ' '}${shellWord(value)}`];
  });
  return ['giga job list', ...flags].join(' ');
}

export interface Chip {
  filter: JobFilter;
  /// The one word of several that it stands for.
  word: string;
}

export function chips(search: JobsSearch): Chip[] {
  return JOB_FILTERS.flatMap((filter) => {
    const value = search[filter];
    if (value === undefined) return [];
    return (FILTERS[filter].several ? words(value) : [value]).map((word) => ({ filter, word }));
  });
}

export function withoutChip(search: JobsSearch, { filter, word }: Chip): JobsSearch {
  return { ...search, [filter]: FILTERS[filter].several ? toggled(search[filter], word) : undefined };
}

/// How many jobs are in each stage, of one product or of all that the token may see.
export function byStage(metrics: FleetMetrics | undefined, product: string | undefined): Map<string, number> {
  const counts = new Map<string, number>();
  for (const one of metrics?.products ?? []) {
    if (product !== undefined && one.productId !== product) continue;
    for (const [stage, count] of Object.entries(one.byStage)) {
      counts.set(stage, (counts.get(stage) ?? 0) + count);
    }
  }
  return counts;
}

/// How many jobs the filter finds, if the figures per stage say so: nothing is counted for it.
export function total(search: JobsSearch, metrics: FleetMetrics | undefined): number | undefined {
  const { stage, product, ...others } = search;
  if (!metrics || Object.values(others).some((value) => value !== undefined)) return undefined;
  const wanted = stage === undefined ? undefined : words(stage);
  let sum = 0;
  for (const [name, count] of byStage(metrics, product)) {
    if (!wanted || wanted.includes(name)) sum += count;
  }
  return sum;
}
