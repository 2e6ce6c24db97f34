// Which input an error belongs to.

import type { FieldError } from '../../api/problem';

/// Paths of the manifest, as the coordinator names them; each has an input. Those under "More fields", which open if one of
/// them has an error:
// biome-ignore format: a table
export const UNDER_MORE = [
  'persona', 'repos', 'base', 'target', 'merge.strategy', 'merge.by', 'merge.feedback', 'merge.message', 'merge.author', 'onConflict',
  'deps', 'depsMode', 'onFailure', 'budget.tokens', 'budget.wall', 'retry.max', 'retry.backoff', 'retry.on',
  'review.reviewers', 'secrets', 'permissions', 'ask.parkAfter', 'ask.deadline',
  'concurrency.key', 'concurrency.limit', 'runAt', 'parent',
] as const;
// biome-ignore format: a table
export const FIELDS = [
  'name', 'product', 'kind', 'repo', 'engine', 'model', 'script', 'capabilities', 'priority', 'budget.usd', 'verify',
  'review.quorum', 'ship', 'bodyMd', ...UNDER_MORE,
] as const;
export type Field = (typeof FIELDS)[number];

export type FieldErrors = Partial<Record<Field, string>>;

/// An error of a whole group is shown at its first input.
const WHOLE = new Map<string, Field>([
  ['budget', 'budget.usd'],
  ['retry', 'retry.max'],
  ['merge', 'merge.strategy'],
  ['review', 'review.quorum'],
  ['concurrency', 'concurrency.key'],
  ['ask', 'ask.parkAfter'],
]);

/// `children[0].budget.usd` and `verify[2]` as the inputs they are about.
export function fieldOf(path: string): Field | undefined {
  const own = path.replace(/^(children\[\d+\]|manifest)\.?/, '').replace(/\[\d+\]/g, '');
  return WHOLE.get(own) ?? FIELDS.find((field) => field === own);
}

/// Errors by input, and the rest as they came.
export function sortErrors(errors: FieldError[]): { fields: FieldErrors; others: FieldError[] } {
  const fields: FieldErrors = {};
  const others: FieldError[] = [];
  for (const error of errors) {
    const field = fieldOf(error.field);
    if (!field) others.push(error);
    else fields[field] = fields[field] ? `${fields[field]}; ${error.message}` : error.message;
  }
  return { fields, others };
}
