// The form of the limits: what people type, what is sent, and the same as a command.

import type { Budget } from '../../api/types';
import { shellWord } from '../../ui/format';

export const FIELDS = ['day', 'week', 'month', 'total', 'job'] as const;
export type Field = (typeof FIELDS)[number];
export type Typed = Record<Field, string>;

const MOST = 1_000_000_000;
const DOLLARS = /^\$?(\d{1,10}(?:\.\d{1,6})?)$/;

export type Parsed = { usd: number | null; error?: undefined } | { usd?: undefined; error: string };

/// Dollars as people type them; nothing is no limit.
export function parseDollars(text: string): Parsed {
  const typed = text.trim();
  if (typed === '') return { usd: null };
  const usd = Number(DOLLARS.exec(typed)?.[1] ?? Number.NaN);
  if (!Number.isFinite(usd) || usd > MOST) {
    return {
      error:
        'Enter dollars from 0 to 1000000000 with at most six decimals, such as 12.50, or leave it empty for no limit',
    };
  }
  return { usd };
}

/// A correction: a sign is allowed, nothing and zero are not.
export function parseCorrection(text: string): Parsed {
  const typed = text.trim().replace('−', '-');
  const negative = typed.startsWith('-');
  const size = parseDollars(typed.replace(/^[+-]/, ''));
  if (size.error || !size.usd) {
    return {
      error: 'Enter dollars with at most six decimals, not 0, such as 1.20, or -1.20 if less was spent',
    };
  }
  return { usd: negative ? -size.usd : size.usd };
}

export function typedFrom(budget: Pick<Budget, 'ceilings' | 'jobUsd'>): Typed {
  const text = (usd: number | null | undefined) => (usd === null || usd === undefined ? '' : String(usd));
  const { day, week, month, total } = budget.ceilings;
  return {
    day: text(day),
    week: text(week),
    month: text(month),
    total: text(total),
    job: text(budget.jobUsd),
  };
}

export function errorsOf(typed: Typed): Partial<Typed> {
  const errors: Partial<Typed> = {};
  for (const field of FIELDS) {
    const { error } = parseDollars(typed[field]);
    if (error) errors[field] = error;
  }
  return errors;
}

type Figures = Pick<Budget, 'ceilings' | 'jobUsd'>;

export function changedFields(typed: Typed, budget: Figures): Field[] {
  return differing(typed, typedFrom(budget));
}

function differing(now: Typed, before: Typed): Field[] {
  return FIELDS.filter((field) => {
    const { usd, error } = parseDollars(now[field]);
    return error !== undefined || usd !== parseDollars(before[field]).usd;
  });
}

/// A pause raises the revision of a budget and leaves its figures alone.
export function sameFigures(a: Figures, b: Figures): boolean {
  return changedFields(typedFrom(a), b).length === 0;
}

/// What was typed since `before` stays; the other fields say what is set by now.
export function rebased(typed: Typed, before: Typed, now: Typed): Typed {
  const own = new Set(differing(typed, before));
  const next = { ...now };
  for (const field of FIELDS) if (own.has(field)) next[field] = typed[field];
  return next;
}

/// Everything, since what is left out is none from then on.
export function requestOf(typed: Typed) {
  const usd = (field: Field) => parseDollars(typed[field]).usd ?? null;
  return {
    ceilings: { day: usd('day'), week: usd('week'), month: usd('month'), total: usd('total') },
    jobUsd: usd('job'),
  };
}

/// `giga budget set` leaves what it does not name as it is.
export function commandOf(product: string, typed: Typed, changed: readonly Field[]): string {
  const options = changed.map((field) => ` --${field} ${parseDollars(typed[field]).usd ?? 'none'}`);
  return `giga budget set ${shellWord(product)}${options.join('')}`;
}
