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
  parent?: string;
  /// The name contains this.
  name?: string;
}

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
