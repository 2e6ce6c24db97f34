// The form, filled in from an existing job.

import type { Job } from '../../api/types';
import { DEPS_MODE, JOB_KIND, wordIn } from '../../api/vocabulary';
import { EMPTY_FORM, type JobForm, type PickedJob, secretTag } from './form';

/// What a job's manifest has for fields that were left out.
const DEFAULTS = {
  engine: 'any',
  priority: 'normal',
  depsMode: 'all',
  onFailure: 'fail_fast',
  retryMax: '3',
  retryBackoff: '30s',
  quorum: '0',
} as const;

export function formOf(job: Job, now: number): JobForm {
  const form: JobForm = {
    ...EMPTY_FORM,
    ...filledIn(job.manifest, now),
    product: job.productId,
    deps: job.deps.map((id): PickedJob => ({ id, name: id })),
    body: job.bodyMd ?? '',
  };
  form.name ||= job.name;
  // With a profile every field counts: an empty one would get the profile's value.
  return form.persona === '' ? withoutDefaults(form, form.kind === 'composite') : form;
}

/// A manifest as form fields. It has only the ids of its dependencies, not their names.
export function filledIn(given: unknown, now: number): Omit<JobForm, 'deps' | 'parent' | 'body'> {
  const manifest = record(given);
  const kind = wordIn(JOB_KIND, manifest.kind) ?? 'agent';
  const composite = kind === 'composite';
  const [budget, retry] = [record(manifest.budget), record(manifest.retry)];
  const [review, concurrency] = [record(manifest.review), record(manifest.concurrency)];
  const [merge, ask] = [record(manifest.merge), record(manifest.ask)];
  const [repo, ...moreRepos] = texts(manifest.repos);
  return {
    name: text(manifest.name),
    product: text(manifest.product),
    kind,
    repo: repo ?? text(manifest.repo),
    moreRepos,
    engine: engineText(manifest.engine, manifest.model),
    script: text(manifest.script),
    persona: text(manifest.persona),
    capabilities: texts(manifest.capabilities),
    priority: text(manifest.priority),
    depsMode: wordIn(DEPS_MODE, manifest.depsMode) ?? '',
    onFailure: composite ? text(manifest.onFailure) : '',
    base: text(manifest.base),
    target: text(manifest.target),
    mergeStrategy: text(merge.strategy),
    mergeBy: text(merge.by),
    mergeFeedback: text(merge.feedback),
    mergeMessage: text(merge.message),
    mergeAuthor: text(merge.author),
    onConflict: text(manifest.onConflict),
    budgetUsd: text(budget.usd),
    budgetTokens: text(budget.tokens),
    budgetWall: text(budget.wall),
    retryMax: text(retry.max),
    retryBackoff: text(retry.backoff),
    retryOn: texts(retry.on),
    verify: texts(manifest.verify),
    secrets: Array.isArray(manifest.secrets)
      ? manifest.secrets.map(secretTag).filter((tag) => tag !== '')
      : [],
    permissions: text(manifest.permissions),
    askParkAfter: text(ask.parkAfter),
    askDeadline: text(ask.deadline),
    quorum: text(review.quorum),
    reviewers: texts(review.reviewers),
    ship: text(manifest.ship),
    concurrencyKey: text(concurrency.key),
    concurrencyLimit: text(concurrency.limit),
    runAt: future(text(manifest.runAt), now),
  };
}

function withoutDefaults(form: JobForm, composite: boolean): JobForm {
  const kept = { ...form };
  for (const key of Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]) {
    if (kept[key] === DEFAULTS[key]) kept[key] = '';
  }
  if (kept.ship === (composite ? 'auto' : 'manual')) kept.ship = '';
  return kept;
}

/// A time in the past means nothing to a new job.
function future(rfc3339: string, now: number): string {
  const at = Date.parse(rfc3339);
  if (Number.isNaN(at) || at <= now) return '';
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(text).filter((item) => item !== '') : [];
}

/// As the form takes it: `claude (opus), codex`.
function engineText(engine: unknown, model: unknown): string {
  const shown = (pick: unknown, own: string) => {
    const named = record(pick);
    const [name, ofPick] = typeof pick === 'string' ? [pick, own] : [text(named.name), text(named.model)];
    return ofPick ? `${name} (${ofPick})` : name;
  };
  if (Array.isArray(engine)) return engine.map((pick) => shown(pick, '')).join(', ');
  return engine === undefined ? '' : shown(engine, text(model));
}
