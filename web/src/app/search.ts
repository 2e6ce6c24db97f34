// The search parameters of every page. Anyone may have typed an address: only what is expected is taken from it.

import type { operations } from '../api/schema';
import type { Job } from '../api/types';
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

/// The filters of the job table, kept in the address so that a view can be sent to somebody.
type ListQuery = NonNullable<operations['listJobs']['parameters']['query']>;
export type JobFilter = Exclude<keyof ListQuery, 'id' | 'limit' | 'cursor'> | 'product';

interface FilterMeaning {
  /// What its chip says before the value.
  label: string;
  /// Several words, separated by commas.
  several?: boolean;
  /// Whether the job is one of those that the value asks for.
  matches(job: Job, value: string): boolean;
}

/// Every filter that the API has, in the order of the chips: one that is missing here is a type error.
export const FILTERS: Record<JobFilter, FilterMeaning> = {
  stage: { label: 'stage', several: true, matches: (job, value) => words(value).includes(job.stage) },
  priority: {
    label: 'priority',
    several: true,
    matches: (job, value) => words(value).includes(job.priority),
  },
  product: { label: 'product', matches: (job, value) => job.productId === value },
  repo: { label: 'repository', matches: (job, value) => job.repo === value },
  factory: { label: 'running on', matches: (job, value) => job.lease?.factoryId === value },
  parent: { label: 'child of', matches: (job, value) => job.parentId === value },
  needsInput: {
    label: 'needs input',
    matches: (job, value) => value !== 'true' || job.needsInput === true,
  },
  name: { label: 'name contains', matches: (job, value) => asciiLower(job.name).includes(asciiLower(value)) },
};
export const JOB_FILTERS = Object.keys(FILTERS) as JobFilter[];

export function words(list: string | undefined): string[] {
  return (list ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/// As SQL compares names: only the letters A to Z have a lower case.
function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

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
