import { oneOf, wholeNumber } from '../../app/search';

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
