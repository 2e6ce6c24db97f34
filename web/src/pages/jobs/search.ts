// The filters of the job table, kept in the address so that a view can be sent to somebody.

import { text } from '../../app/search';

export interface JobsSearch {
  /// Stages, separated by commas.
  stage?: string;
  /// Priorities, separated by commas.
  priority?: string;
  product?: string;
  repo?: string;
  factory?: string;
  /// The id of a job: its children.
  parent?: string;
  /// The name contains this.
  name?: string;
}

export const FILTERS = ['stage', 'priority', 'product', 'repo', 'factory', 'parent', 'name'] as const;
export type FilterName = (typeof FILTERS)[number];

export function jobsSearch(search: Record<string, unknown>): JobsSearch {
  return {
    stage: text(search.stage),
    priority: text(search.priority),
    product: text(search.product),
    repo: text(search.repo),
    factory: text(search.factory),
    parent: text(search.parent),
    name: text(search.name),
  };
}
