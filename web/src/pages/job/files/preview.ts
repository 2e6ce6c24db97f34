import type { Artifact } from '../../../api/types';

/// Larger files are downloaded.
const SMALL = 256 * 1024;

const TEXTS = [
  'application/json',
  'application/x-ndjson',
  'application/xml',
  'application/yaml',
  'application/toml',
];

/// Only text, and only as text: what a job left is never rendered, whatever it says it is.
export function hasPreview(file: Pick<Artifact, 'mediaType' | 'size'>): boolean {
  const type = file.mediaType.split(';')[0]?.trim().toLowerCase() ?? '';
  return file.size <= SMALL && (type.startsWith('text/') || TEXTS.includes(type) || type.endsWith('+json'));
}
