import { text } from '../../app/search';

export interface NewJobSearch {
  /// A job whose manifest the form starts from.
  from?: string;
  product?: string;
}

export function newJobSearch(search: Record<string, unknown>): NewJobSearch {
  return { from: text(search.from), product: text(search.product) };
}
