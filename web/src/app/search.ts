// The search parameters of every page. Anyone may have typed an address: only what is expected is taken from it.

import type { operations } from '../api/schema';
import { type Period, TOPIC_JOB_STATE, type TopicJobState, wordIn } from '../api/vocabulary';

function text(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value.slice(0, 500) : undefined;
}

function oneOf<T extends string>(value: unknown, known: readonly T[]): T | undefined {
  return known.find((word) => word === value);
}

function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/// The filters of the job table, kept in the address so that a view can be sent to somebody. What each of them means is in
/// pages/jobs/filter.ts.
type ListQuery = NonNullable<operations['listJobs']['parameters']['query']>;
export type JobFilter = Exclude<keyof ListQuery, 'id' | 'limit' | 'cursor'> | 'product';
/// Every filter that the API has, in the order of the chips: one that is missing here is a type error.
const IN_ORDER: Record<JobFilter, null> = {
  stage: null,
  priority: null,
  product: null,
  repo: null,
  factory: null,
  parent: null,
  name: null,
};
export const JOB_FILTERS = Object.keys(IN_ORDER) as JobFilter[];
export type JobsSearch = { [F in JobFilter]?: string };

export function jobsSearch(search: Record<string, unknown>): JobsSearch {
  return Object.fromEntries(JOB_FILTERS.map((name) => [name, text(search[name])]));
}

export const JOB_TABS = ['overview', 'log', 'diff', 'runs', 'files', 'graph', 'explain'] as const;
export type JobTab = (typeof JOB_TABS)[number];

export interface JobSearch {
  tab?: JobTab;
  /// The run that log and diff are of; the newest without it.
  epoch?: number;
}

export function jobSearch(search: Record<string, unknown>): JobSearch {
  return { tab: oneOf(search.tab, JOB_TABS), epoch: wholeNumber(search.epoch) };
}

/// The periods that a chart can show.
export const SPANS = ['day', 'week', 'month'] as const satisfies readonly Period[];
export type Span = (typeof SPANS)[number];

export interface BudgetSearch {
  /// How much of the ledger the chart shows.
  span?: Span;
}

export function budgetSearch(search: Record<string, unknown>): BudgetSearch {
  return { span: oneOf(search.span, SPANS) };
}

export interface TopicSearch {
  state?: TopicJobState;
}

export function topicSearch(search: Record<string, unknown>): TopicSearch {
  return { state: wordIn(TOPIC_JOB_STATE, search.state) };
}

export interface NewJobSearch {
  /// A job whose manifest the form starts from.
  from?: string;
  product?: string;
}

export function newJobSearch(search: Record<string, unknown>): NewJobSearch {
  return { from: text(search.from), product: text(search.product) };
}
