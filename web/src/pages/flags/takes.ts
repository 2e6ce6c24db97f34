// What a flag accepts, from the coordinator's description. An unknown description makes a plain text field: the
// coordinator checks whatever is sent.

import type { Flag } from '../../api/types';
import { DELIVERY, wordIn } from '../../api/vocabulary';
import { shellWord, UNITS } from '../../ui/format';

export type Takes =
  | { kind: 'bool' }
  | { kind: 'choice'; words: string[] }
  | { kind: 'integer'; min: number; max: number }
  | { kind: 'json' };

export function takes(words: string): Takes {
  if (words === 'true or false') return { kind: 'bool' };
  const choice = /^one of (.+)$/.exec(words);
  if (choice?.[1]) return { kind: 'choice', words: choice[1].split(', ') };
  const [, min, max] = /^a whole number from (-?\d+) to (-?\d+)$/.exec(words) ?? [];
  if (min !== undefined && max !== undefined) return { kind: 'integer', min: Number(min), max: Number(max) };
  return { kind: 'json' };
}

/// A value as it stands in a field.
export function fieldText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export type Read = { value: unknown; error?: undefined } | { value?: undefined; error: string };

/// What was typed as a value, or what would be right instead.
export function readField(text: string, what: Takes): Read {
  const typed = text.trim();
  switch (what.kind) {
    case 'bool':
      return typed === 'true' || typed === 'false' ? { value: typed === 'true' } : { error: 'true or false' };
    case 'choice':
      return what.words.includes(typed) ? { value: typed } : { error: `One of ${what.words.join(', ')}` };
    case 'integer': {
      const number = /^-?\d{1,15}$/.test(typed) ? Number(typed) : Number.NaN;
      if (number >= what.min && number <= what.max) return { value: number };
      return { error: `A whole number from ${what.min} to ${what.max}` };
    }
    case 'json':
      try {
        return { value: JSON.parse(typed) };
      } catch {
        return typed === '' ? { error: 'A value, as JSON or as a plain word' } : { value: typed };
      }
  }
}

/// `null` takes it back.
export function flagCommand(name: string, value: unknown): string {
  return `giga flags set ${shellWord(name)} ${value === null ? 'null' : shellWord(fieldText(value))}`;
}

/// A flag whose change reaches into how jobs get to factories.
export function isDelivery(name: string): boolean {
  return name === 'delivery' || name.startsWith('delivery.');
}

/// What is deleted when a flag goes from one value to another, if anything is. Files are kept as long as their jobs where
/// their own time is 0.
export function loss(
  name: string,
  before: unknown,
  after: unknown,
): { title: string; text: string } | undefined {
  if (typeof before !== 'number' || typeof after !== 'number') return undefined;
  const time = pictured({ name }, after) ?? `${after} h`;
  const end = 'The next sweep starts within the hour. Raising the flag again does not bring anything back.';
  if (name === 'retention_hours' && after < before) {
    return {
      title: `Keep finished jobs for ${time} only?`,
      text: `Jobs that were shipped, cancelled or dead-lettered before that are deleted with their history, logs and files. So are topic jobs that are done or dead, and messages that were delivered or failed for good. ${end}`,
    };
  }
  if (name === 'artifact_retention_hours' && after > 0 && (before === 0 || after < before)) {
    return {
      title: `Keep the files of finished jobs for ${time} only?`,
      text: `Files of jobs that finished before that are deleted; the jobs stay. ${end}`,
    };
  }
  return undefined;
}

/// What a delivery mode means; nothing for a word that is none.
export function deliveryAbout(mode: string): string {
  const known = wordIn(DELIVERY, mode);
  return known ? DELIVERY[known].about : '';
}

/// Milliseconds and hours in words that one can picture.
export function pictured(flag: Pick<Flag, 'name'>, value: unknown): string | undefined {
  if (typeof value !== 'number') return undefined;
  const unit = flag.name.endsWith('_ms') ? 1 : flag.name.endsWith('_hours') ? 3_600_000 : 0;
  if (unit === 0 || value === 0) return undefined;
  const seconds = (value * unit) / 1_000;
  const [size, name] = UNITS.find(([size]) => seconds >= size) ?? [1, 's'];
  return `${Number((seconds / size).toFixed(2))} ${name}`;
}

/// How often the dispatcher would have chosen otherwise; nothing where nothing was compared.
export function divergenceRate(agreements: number, divergences: number): number | undefined {
  const all = agreements + divergences;
  return all > 0 ? divergences / all : undefined;
}
