import { describe, expect, it } from 'vitest';
import type { Job } from '../../api/types';
import { EMPTY_FORM, type JobForm, toManifest } from './form';
import { filledIn, formOf } from './prefill';

const form = (fields: Partial<JobForm>): JobForm => ({ ...EMPTY_FORM, ...fields });

describe('the manifest of a form', () => {
  it('leaves out what is empty', () => {
    expect(toManifest(EMPTY_FORM)).toEqual({});
    expect(toManifest(form({ name: ' x ', capabilities: ['', ' '], verify: ['  '], reviewers: [] }))).toEqual(
      {
        name: 'x',
      },
    );
  });

  it('takes engines in order of preference, each with its model', () => {
    const manifest = (engine: string) => toManifest(form({ engine }));
    expect(manifest('claude')).toEqual({ engine: 'claude' });
    expect(manifest(' claude (opus) ')).toEqual({ engine: 'claude', model: 'opus' });
    expect(manifest('claude (opus), codex,')).toEqual({
      engine: [{ name: 'claude', model: 'opus' }, 'codex'],
    });
    const of = (more: object) => filledIn({ name: 'x', ...more }, 0).engine;
    expect(of({ engine: 'claude', model: 'opus' })).toBe('claude (opus)');
    expect(of({ engine: [{ name: 'claude', model: 'opus' }, 'codex'] })).toBe('claude (opus), codex');
  });

  it('has every field under the name that the coordinator knows', () => {
    const full = form({
      name: 'fix',
      product: 'demo',
      repo: 'hello',
      engine: 'shell',
      script: ' ./fix.sh\n',
      persona: 'coder@1',
      capabilities: ['os:linux'],
      priority: 'high',
      deps: [{ id: '01M7GDVVXGXDBVAT1V5VCQ8QN7', name: 'before' }],
      depsMode: 'any',
      budgetUsd: '2.50',
      budgetTokens: '1000',
      budgetWall: '20m',
      retryMax: '0',
      retryBackoff: '5s',
      verify: ['cargo test', 'a\nb'],
      secrets: ['API_KEY', 'NPM_TOKEN=npm_token', 'DEPLOY_KEY:.ssh/id'],
      quorum: '1',
      reviewers: ['ana'],
      ship: 'auto',
      concurrencyKey: 'k',
      concurrencyLimit: '2',
      onFailure: 'continue',
    });
    expect(toManifest(full)).toEqual({
      name: 'fix',
      product: 'demo',
      repo: 'hello',
      engine: 'shell',
      script: ' ./fix.sh\n',
      persona: 'coder@1',
      capabilities: ['os:linux'],
      priority: 'high',
      deps: ['01M7GDVVXGXDBVAT1V5VCQ8QN7'],
      depsMode: 'any',
      budget: { usd: 2.5, tokens: 1000, wall: '20m' },
      retry: { max: 0, backoff: '5s' },
      verify: ['cargo test', 'a\nb'],
      secrets: ['API_KEY', { name: 'NPM_TOKEN', env: 'npm_token' }, { name: 'DEPLOY_KEY', file: '.ssh/id' }],
      review: { quorum: 1, reviewers: ['ana'] },
      ship: 'auto',
      concurrency: { key: 'k', limit: 2 },
    });
  });

  it('sends what is no number as it was typed, for the coordinator to refuse', () => {
    const { budget, retry } = toManifest(form({ budgetUsd: 'lots', budgetTokens: '1e9', retryMax: '-1' }));
    expect(budget).toEqual({ usd: 'lots', tokens: '1e9' });
    expect(retry).toEqual({ max: -1 });
  });

  it('of a composite says nothing that only work could mean', () => {
    const manifest = toManifest(
      form({
        name: 'release',
        kind: 'composite',
        repo: 'hello',
        engine: 'shell',
        script: 'x',
        budgetUsd: '1',
        verify: ['x'],
        priority: 'high',
        depsMode: 'any',
        deps: [{ id: 'A', name: 'a' }],
        onFailure: 'continue',
        quorum: '1',
      }),
    );
    expect(manifest).toEqual({
      name: 'release',
      kind: 'composite',
      deps: ['A'],
      onFailure: 'continue',
      review: { quorum: 1 },
    });
  });

  it('keeps a script for an engine that runs none out of it', () => {
    expect(toManifest(form({ name: 'x', engine: 'claude', script: 'x' }))).not.toHaveProperty('script');
  });

  it('takes a local time to a moment', () => {
    const { runAt } = toManifest(form({ runAt: '2030-01-31T09:00' }));
    expect(runAt).toBe(new Date(2030, 0, 31, 9).toISOString());
  });
});

describe('a form from a job', () => {
  const job = (manifest: Record<string, unknown>, more: Partial<Job> = {}) =>
    ({
      id: 'J',
      name: 'fix',
      productId: 'demo',
      deps: [],
      manifest,
      bodyMd: 'Do it.',
      ...more,
    }) as unknown as Job;
  const WRITTEN_OUT = {
    name: 'fix',
    product: 'demo',
    engine: 'any',
    capabilities: [],
    priority: 'normal',
    kind: 'agent',
    deps: [],
    depsMode: 'all',
    budget: {},
    retry: { max: 3, backoff: '30s' },
    verify: [],
    review: { quorum: 0, reviewers: [] },
    ship: 'manual',
    idempotencyKey: 'once',
  };

  it('leaves out what was only written out, and never its key', () => {
    expect(toManifest(formOf(job(WRITTEN_OUT), 0))).toEqual({ name: 'fix', product: 'demo' });
    expect(formOf(job(WRITTEN_OUT), 0).body).toBe('Do it.');
  });

  it('keeps every word beside a profile, which would fill in what is left out', () => {
    const manifest = toManifest(formOf(job({ ...WRITTEN_OUT, persona: 'coder@1' }), 0));
    expect(manifest).toMatchObject({
      persona: 'coder@1',
      priority: 'normal',
      ship: 'manual',
      retry: { max: 3 },
    });
  });

  it('comes back to the same manifest', () => {
    const fields = {
      name: 'fix',
      product: 'demo',
      repo: 'hello',
      engine: 'shell',
      script: 'a\nb\n',
      capabilities: ['gpu'],
      priority: 'low',
      budget: { usd: 2.5, wall: '1h30m' },
      retry: { max: 0, backoff: '5s' },
      verify: ['x', 'y\nz'],
      review: { quorum: 2, reviewers: ['ana', 'bo'] },
      ship: 'auto',
      concurrency: { key: 'k', limit: 1 },
    };
    expect(toManifest(formOf(job({ ...WRITTEN_OUT, ...fields }), 0))).toEqual(fields);
  });

  it('takes over a time only while it is still to come', () => {
    const later = job({ ...WRITTEN_OUT, runAt: '2030-01-31T09:00:00.000Z' });
    const now = Date.parse('2029-01-01T00:00:00Z');
    expect(toManifest(formOf(later, now)).runAt).toBe('2030-01-31T09:00:00.000Z');
    expect(toManifest(formOf(later, now + 400 * 86_400_000 * 2)).runAt).toBeUndefined();
  });

  it('survives a manifest that it does not understand', () => {
    expect(formOf(job({ budget: 7, verify: 'x', review: null }), 0).name).toBe('fix');
    expect(formOf(job(null as unknown as Record<string, unknown>), 0).verify).toEqual([]);
  });
});
