// What the form holds, and the manifest it makes. Text stays text until the end: half-typed values are kept,
// and a value that is not a number is sent as it is, for the coordinator to refuse.

import type { DepsMode, JobKind } from '../../api/vocabulary';

export interface PickedJob {
  id: string;
  name: string;
}

export const EMPTY_FORM = {
  name: '',
  product: '',
  kind: 'agent' as JobKind,
  repo: '',
  /// Those beside `repo`, where the job works on several.
  moreRepos: [] as string[],
  engine: '',
  script: '',
  persona: '',
  capabilities: [] as string[],
  priority: '',
  deps: [] as PickedJob[],
  depsMode: '' as DepsMode | '',
  onFailure: '',
  base: '',
  target: '',
  mergeStrategy: '',
  mergeBy: '',
  mergeFeedback: '',
  mergeMessage: '',
  mergeAuthor: '',
  onConflict: '',
  budgetUsd: '',
  budgetTokens: '',
  budgetWall: '',
  retryMax: '',
  retryBackoff: '',
  retryOn: [] as string[],
  verify: [] as string[],
  /// `NAME`, `NAME=variable` or `NAME:file`.
  secrets: [] as string[],
  permissions: '',
  askParkAfter: '',
  askDeadline: '',
  quorum: '',
  reviewers: [] as string[],
  ship: '',
  concurrencyKey: '',
  concurrencyLimit: '',
  /// As an input for local time gives it: `2030-01-31T09:00`.
  runAt: '',
  parent: null as PickedJob | null,
  body: '',
};
export type JobForm = typeof EMPTY_FORM;

export type Scalar = string | number | boolean;
export type ManifestItem = Scalar | Record<string, Scalar>;
export type ManifestValue = Scalar | ManifestItem[] | Record<string, Scalar | Scalar[]>;
export type Manifest = Record<string, ManifestValue>;

/// Only what was filled in: the rest is left to the profile and to the coordinator's defaults. A group runs nothing itself,
/// so the fields of a task are left out.
export function toManifest(form: JobForm): Manifest {
  const runs = form.kind !== 'composite';
  const manifest: Manifest = {};
  const put = (key: string, value: ManifestValue | undefined) => {
    if (value !== undefined) manifest[key] = value;
  };
  put('name', word(form.name));
  put('product', word(form.product));
  if (!runs) put('kind', 'composite');
  if (runs) {
    const more = list(form.moreRepos) ?? [];
    if (more.length > 0) put('repos', list([form.repo.trim(), ...more]));
    else put('repo', word(form.repo));
    put('base', word(form.base));
    put('target', word(form.target));
    put(
      'merge',
      parts({
        strategy: word(form.mergeStrategy),
        by: word(form.mergeBy),
        feedback: word(form.mergeFeedback),
        message: block(form.mergeMessage),
        author: word(form.mergeAuthor),
      }),
    );
    put('onConflict', word(form.onConflict));
    const { engine, model } = engines(form.engine);
    put('engine', engine);
    put('model', model);
    if (form.engine.trim() === 'shell' || form.persona.trim() !== '') put('script', block(form.script));
    put('persona', word(form.persona));
    put('capabilities', list(form.capabilities));
    put('priority', word(form.priority));
  }
  put('deps', list(form.deps.map((dep) => dep.id)));
  if (form.deps.length > 0)
    put('depsMode', runs || form.depsMode !== 'any' ? word(form.depsMode) : undefined);
  if (!runs) put('onFailure', word(form.onFailure));
  if (runs) {
    put(
      'budget',
      parts({ usd: number(form.budgetUsd), tokens: number(form.budgetTokens), wall: word(form.budgetWall) }),
    );
    put(
      'retry',
      parts({ max: number(form.retryMax), backoff: word(form.retryBackoff), on: list(form.retryOn) }),
    );
    put('verify', list(form.verify));
    put('secrets', list(form.secrets)?.map(secret));
    put('permissions', word(form.permissions));
    put('ask', parts({ parkAfter: word(form.askParkAfter), deadline: word(form.askDeadline) }));
  }
  put('review', parts({ quorum: number(form.quorum), reviewers: list(form.reviewers) }));
  put('ship', word(form.ship));
  if (runs) {
    put('concurrency', parts({ key: word(form.concurrencyKey), limit: number(form.concurrencyLimit) }));
    put('runAt', instant(form.runAt));
  }
  return manifest;
}

/// `claude`, `claude (opus)`, or several in order of preference: `claude (opus), codex`.
export function engines(text: string): { engine?: ManifestValue; model?: string } {
  const pick = (part: string) => {
    const [, name, model] = /^([^()]+?)\s*\(([^()]+)\)$/.exec(part) ?? [undefined, part, undefined];
    return { name: name ?? part, model: model?.trim() };
  };
  const picks = (list(text.split(',').map((part) => part.trim())) ?? []).map(pick);
  const [only] = picks;
  if (picks.length === 1 && only) return { engine: only.name, model: only.model };
  if (picks.length === 0) return {};
  return { engine: picks.map(({ name, model }) => (model ? { name, model } : name)) };
}

function word(text: string): string | undefined {
  return text.trim() === '' ? undefined : text.trim();
}

/// Scripts keep their whitespace.
function block(text: string): string | undefined {
  return text.trim() === '' ? undefined : text;
}

function number(text: string): Scalar | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  return /^-?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
}

function list(items: string[]): string[] | undefined {
  const filled = items.filter((item) => item.trim() !== '');
  return filled.length > 0 ? filled : undefined;
}

/// In the variable of its name, in another one, or in a file.
function secret(tag: string): ManifestItem {
  const [, name = '', sign, place = ''] = /^([^=:]*)([=:])(.*)$/.exec(tag.trim()) ?? [];
  if (sign === undefined) return tag.trim();
  return sign === '=' ? { name: name.trim(), env: place.trim() } : { name: name.trim(), file: place.trim() };
}

/// The reverse.
export function secretTag(item: unknown): string {
  if (typeof item === 'string') return item;
  const { name, env, file } = (item ?? {}) as Record<string, unknown>;
  if (typeof name !== 'string') return '';
  if (typeof file === 'string') return `${name}:${file}`;
  return typeof env === 'string' && env !== name ? `${name}=${env}` : name;
}

function parts(
  values: Record<string, Scalar | Scalar[] | undefined>,
): Record<string, Scalar | Scalar[]> | undefined {
  const given = Object.entries(values).filter(
    (entry): entry is [string, Scalar | Scalar[]] => entry[1] !== undefined,
  );
  return given.length > 0 ? Object.fromEntries(given) : undefined;
}

function instant(local: string): string | undefined {
  if (local === '') return undefined;
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? local : at.toISOString();
}
