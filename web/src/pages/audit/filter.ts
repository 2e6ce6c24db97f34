// What the audit log is asked for, as parameters of the API and as the command that shows the same.

import type { EventType } from '../../api/vocabulary';
import { shellWord } from '../../ui/format';

export interface AuditFilter {
  actor: string;
  kind: string;
  /// As the command line says it: `7d`.
  since: string;
}

const HOUR = 3_600_000;

export const SINCE = [
  { label: 'the beginning', value: '', ms: undefined },
  { label: 'an hour ago', value: '1h', ms: HOUR },
  { label: 'a day ago', value: '1d', ms: 24 * HOUR },
  { label: 'a week ago', value: '7d', ms: 7 * 24 * HOUR },
  { label: 'a month ago', value: '30d', ms: 30 * 24 * HOUR },
] as const;

export function auditParams({ actor, since }: AuditFilter, now: number): { actor?: string; since?: string } {
  const ms = SINCE.find((one) => one.value === since)?.ms;
  return {
    actor: actor.trim() || undefined,
    since: ms === undefined ? undefined : new Date(now - ms).toISOString(),
  };
}

/// The coordinator says which word it does not know.
export function typesOf(kind: string): EventType[] | undefined {
  const types = kind.split(/[\s,]+/).filter((word) => word !== '');
  return types.length === 0 ? undefined : (types as EventType[]);
}

export function auditCommand({ actor, kind, since }: AuditFilter): string {
  const types = typesOf(kind)?.join(',');
  const words = [
    actor.trim() && `--actor ${shellWord(actor.trim())}`,
    types && `--kind ${shellWord(types)}`,
    since && `--since ${since}`,
  ];
  return ['giga audit', ...words.filter(Boolean)].join(' ');
}
