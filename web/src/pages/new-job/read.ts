// The reverse: a manifest as this page writes it, back into the form. Only that subset of YAML is parsed, and only if nothing
// is lost; anything else stays text for the coordinator to parse.

import { scalar } from './emit';
import {
  EMPTY_FORM,
  type JobForm,
  type Manifest,
  type ManifestItem,
  type ManifestValue,
  type PickedJob,
  type Scalar,
  toManifest,
} from './form';
import { filledIn } from './prefill';

const KEY = /^([A-Za-z]+):(?: (.*))?$/;
const BLOCK = /^\|([-+]?)$/;
const NUMBER = /^-?\d+(?:\.\d+)?$/;
/// A JSON string, a bare word, or punctuation of a list or a map.
const TOKEN = /\s*("(?:[^"\\]|\\.)*"|[[\]{},]|[^\s"[\]{},][^"[\]{},]*)/y;

/// The form that makes exactly this manifest, with the parent it had; nothing if there is none.
export function formOfText(text: string, before: JobForm): JobForm | undefined {
  const document = /^---\n([\s\S]*?\n)?---\n([\s\S]*)$/.exec(text);
  const manifest = document && frontMatter(document[1] ?? '');
  if (!manifest) return undefined;
  const named = new Map(before.deps.map((dep) => [dep.id, dep.name]));
  const ids = Array.isArray(manifest.deps) ? manifest.deps.map(String) : [];
  const form: JobForm = {
    ...EMPTY_FORM,
    ...filledIn(manifest, 0),
    deps: ids.map((id): PickedJob => ({ id, name: named.get(id) ?? id })),
    parent: before.parent,
    body: document[2] ?? '',
  };
  return same(toManifest(form), manifest) ? form : undefined;
}

function same(a: Manifest, b: Manifest): boolean {
  const sorted = (manifest: Manifest) =>
    JSON.stringify(Object.entries(manifest).sort(([x], [y]) => (x < y ? -1 : 1)));
  return sorted(a) === sorted(b);
}

function frontMatter(text: string): Manifest | undefined {
  const lines = text.split('\n').slice(0, -1);
  const manifest: Manifest = {};
  while (lines.length > 0) {
    const [, key, rest] = KEY.exec(lines.shift() ?? '') ?? [];
    if (key === undefined || Object.hasOwn(manifest, key)) return undefined;
    const block = BLOCK.exec(rest ?? '');
    const value = rest === undefined ? items(lines) : block ? blockText(lines, block[1] ?? '') : flow(rest);
    if (value === undefined) return undefined;
    manifest[key] = value;
  }
  return manifest;
}

function items(lines: string[]): Scalar[] | undefined {
  const found: Scalar[] = [];
  while (lines[0]?.startsWith('  - ')) {
    const value = flow((lines.shift() ?? '').slice(4));
    if (value === undefined || typeof value === 'object') return undefined;
    found.push(value);
  }
  return found.length > 0 ? found : undefined;
}

function blockText(lines: string[], keep: string): string | undefined {
  const found: string[] = [];
  while (lines[0] === '' || lines[0]?.startsWith('  ')) found.push((lines.shift() ?? '').slice(2));
  const text = found.join('\n').replace(/\n+$/, '');
  if (text === '' || /^[ \t\n]/.test(text)) return undefined;
  const ends = found.length - text.split('\n').length;
  return text + (keep === '-' ? '' : '\n'.repeat(keep === '+' ? ends + 1 : 1));
}

function flow(text: string): ManifestValue | undefined {
  TOKEN.lastIndex = 0;
  const tokens: string[] = [];
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const found = TOKEN.exec(text);
    if (!found) return undefined;
    tokens.push((found[1] ?? '').trimEnd());
  }
  const value = part(tokens);
  return tokens.length === 0 ? value : undefined;
}

function part(tokens: string[]): ManifestValue | undefined {
  const first = tokens.shift();
  if (first === '[') return listOf(tokens);
  if (first === '{') return mapOf(tokens);
  return first === undefined ? undefined : single(first);
}

function isList(value: ManifestValue): value is Scalar[] {
  return Array.isArray(value) && value.every((item) => typeof item !== 'object');
}

/// Unquoted only if this page would not quote it: anything else unquoted may mean something else.
function single(token: string): Scalar | undefined {
  if (NUMBER.test(token)) return Number(token);
  if (!token.startsWith('"')) return scalar(token) === token ? token : undefined;
  try {
    return JSON.parse(token) as string;
  } catch {
    return undefined;
  }
}

function listOf(tokens: string[]): ManifestItem[] | undefined {
  const found: ManifestItem[] = [];
  for (;;) {
    const value = itemOf(tokens);
    if (value === undefined || value === '') return undefined;
    found.push(value);
    const next = tokens.shift();
    if (next === ']') return found;
    if (next !== ',') return undefined;
  }
}

/// A map in a list holds nothing but text and numbers.
function itemOf(tokens: string[]): ManifestItem | undefined {
  const first = tokens.shift() ?? '';
  if (first !== '{') return single(first);
  const map = mapOf(tokens);
  const isFlat = map && Object.values(map).every((value) => !Array.isArray(value));
  return isFlat ? (map as Record<string, Scalar>) : undefined;
}

function mapOf(tokens: string[]): Record<string, Scalar | Scalar[]> | undefined {
  const found: Record<string, Scalar | Scalar[]> = {};
  for (;;) {
    // `usd: 2.5` is one token, `key:` before a string or a list is one by itself.
    const [, key, rest] = /^([A-Za-z]+):(?: (.*))?$/.exec(tokens.shift() ?? '') ?? [];
    if (key === undefined || Object.hasOwn(found, key)) return undefined;
    const value = rest === undefined ? part(tokens) : single(rest);
    if (value === undefined || (typeof value === 'object' && !isList(value))) return undefined;
    found[key] = value;
    const next = tokens.shift();
    if (next === '}') return found;
    if (next !== ',') return undefined;
  }
}
