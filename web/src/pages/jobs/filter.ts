// What a filter means: to the API, on the command line, for a row that changed, and as chips. The coordinator decides
// what the list holds; the row's own check only says that it would no longer be in it.

import { inProduct } from '../../api/client';
import type { FleetMetrics, Job } from '../../api/types';
import { FILTERS, type FilterName, type JobsSearch } from '../../app/search';
import { shellWord } from '../../ui/format';

export function words(list: string | undefined): string[] {
  return (list ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/// The list with the word in it, or without it where it was in it; nothing where none is left.
export function toggled(list: string | undefined, word: string): string | undefined {
  const now = words(list);
  const next = now.includes(word) ? now.filter((other) => other !== word) : [...now, word];
  return next.length > 0 ? next.join(',') : undefined;
}

export function isFiltered(search: JobsSearch): boolean {
  return FILTERS.some((name) => search[name] !== undefined);
}

export function toParams(search: JobsSearch) {
  const { product, ...query } = search;
  return { header: inProduct(product), query };
}

/// As SQL compares names: only the letters A to Z have a lower case.
function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

export function matches(job: Job, search: JobsSearch): boolean {
  const oneOf = (list: string | undefined, value: string) =>
    list === undefined || words(list).includes(value);
  const same = (wanted: string | undefined, value: string | null | undefined) =>
    wanted === undefined || wanted === value;
  return (
    oneOf(search.stage, job.stage) &&
    oneOf(search.priority, job.priority) &&
    same(search.product, job.productId) &&
    same(search.repo, job.repo) &&
    same(search.factory, job.lease?.factoryId) &&
    same(search.parent, job.parentId) &&
    (search.name === undefined || asciiLower(job.name).includes(asciiLower(search.name)))
  );
}

/// The same as a command.
export function listCommand(search: JobsSearch): string {
  const flags = (['product', 'stage', 'priority', 'repo', 'factory', 'parent', 'name'] as const).flatMap(
    (name) => {
      const value = search[name];
      // What begins with a dash would be taken for another flag.
      return value === undefined ? [] : [`--${name}${value.startsWith('-') ? '=' : ' '}${shellWord(value)}`];
    },
  );
  return ['giga job list', ...flags].join(' ');
}

export interface Chip {
  filter: FilterName;
  /// The one word of several that it stands for.
  word: string;
}

export function chips(search: JobsSearch): Chip[] {
  return FILTERS.flatMap((filter) => {
    const value = search[filter];
    if (value === undefined) return [];
    const several = filter === 'stage' || filter === 'priority';
    return (several ? words(value) : [value]).map((word) => ({ filter, word }));
  });
}

export function withoutChip(search: JobsSearch, { filter, word }: Chip): JobsSearch {
  const several = filter === 'stage' || filter === 'priority';
  return { ...search, [filter]: several ? toggled(search[filter], word) : undefined };
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

/// How many jobs the filter finds, where the figures per stage tell: nothing is counted for it.
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
