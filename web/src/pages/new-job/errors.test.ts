import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FIELDS, fieldOf, sortErrors } from './errors';

describe('an error', () => {
  it('finds its input', () => {
    expect(fieldOf('budget.wall')).toBe('budget.wall');
    expect(fieldOf('verify[2]')).toBe('verify');
    expect(fieldOf('review.reviewers[1]')).toBe('review.reviewers');
    expect(fieldOf('children[0].deps[3]')).toBe('deps');
    expect(fieldOf('manifest.name')).toBe('name');
    expect(fieldOf('budget')).toBe('budget.usd');
    expect(fieldOf('')).toBeUndefined();
    expect(fieldOf('bugdet')).toBeUndefined();
    expect(fieldOf('constructor')).toBeUndefined();
  });

  it('is never lost: two of one input stand together, others are listed', () => {
    const sorted = sortErrors([
      { field: 'verify[0]', message: 'first' },
      { field: 'verify[1]', message: 'second' },
      { field: 'nmae', line: 2, message: 'unknown' },
      { field: '', message: 'whole' },
    ]);
    expect(sorted.fields).toEqual({ verify: 'first; second' });
    expect(sorted.others.map((error) => error.message)).toEqual(['unknown', 'whole']);
  });

  it('has an input for every key of the manifest but the one that the page makes itself', () => {
    const table = readFileSync('../docs/manifest.md', 'utf8').matchAll(/^\| `(\w+)` \|/gm);
    const keys = [...table].map((found) => found[1] ?? '');
    expect(keys).toContain('runAt');
    const without = keys.filter(
      (key) => !FIELDS.some((field) => field === key || field.startsWith(`${key}.`)),
    );
    expect(without).toEqual(['idempotencyKey']);
  });
});
