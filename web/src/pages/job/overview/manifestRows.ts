// The manifest as a person reads it: what was asked for, without what is empty.

export interface ManifestRow {
  key: string;
  value: string;
}

export function manifestRows(manifest: unknown): ManifestRow[] {
  if (typeof manifest !== 'object' || manifest === null || Array.isArray(manifest)) return [];
  return Object.entries(manifest)
    .map(([key, value]) => ({ key, value: readable(value) }))
    .filter(({ key, value }) => value !== '' && !HIDDEN.has(key) && USUAL[key] !== value);
}

/// Names the job, and stands above already.
const HIDDEN = new Set(['name', 'product']);

/// What goes without saying.
const USUAL: Record<string, string> = {
  kind: 'agent',
  depsMode: 'all',
  onFailure: 'fail_fast',
  review: 'quorum: 0',
};

function readable(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value.trimEnd();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return value.map(readable).filter(Boolean).join('\n');
  return Object.entries(value)
    .map(([key, inner]) => [key, readable(inner)] as const)
    .filter(([, text]) => text !== '')
    .map(([key, text]) => `${key}: ${text.replaceAll('\n', ', ')}`)
    .join('\n');
}
