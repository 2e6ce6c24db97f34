// The draft, saved for this tab: a reload loses nothing.

import { newKey } from '../../api/client';
import { EMPTY_FORM, type JobForm } from './form';
import { formOfText } from './read';

const KEY = 'giga.draft';

export interface Draft {
  form: JobForm;
  /// The edited manifest, which then replaces the form.
  text: string | null;
  /// The same for every submit of this draft, so that it creates one job however often it is sent.
  key: string;
}

export interface DraftPlace {
  /// Whose draft it is: another token in the same tab has its own.
  owner: string;
  /// The job that it is based on. Each has its own draft.
  from?: string;
}

export function newDraft(form: JobForm): Draft {
  return { form, text: null, key: newKey() };
}

function nameOf({ owner, from }: DraftPlace): string {
  return [KEY, owner, from ?? ''].join(' ');
}

export function loadDraft(place: DraftPlace): Draft | undefined {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(nameOf(place)) ?? 'null');
    if (!isRecord(kept) || !isRecord(kept.form) || typeof kept.key !== 'string') return undefined;
    const text = typeof kept.text === 'string' ? kept.text : null;
    return { form: mended(kept.form), text, key: kept.key };
  } catch {
    return undefined;
  }
}

/// The product it names; none if that is left to the coordinator, or unknown.
export function productOf({ form, text }: Draft): string | undefined {
  const read = text === null ? form : formOfText(text, form);
  return read?.product.trim() || undefined;
}

/// Whether it was saved: a full or forbidden storage must not stop anybody from typing.
export function saveDraft(place: DraftPlace, draft: Draft): boolean {
  try {
    sessionStorage.setItem(nameOf(place), JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}

export function dropDraft(place: DraftPlace): void {
  try {
    sessionStorage.removeItem(nameOf(place));
  } catch {
    // Without storage there is nothing to drop.
  }
}

/// Makes every field valid, whatever an older page wrote.
function mended(kept: Record<string, unknown>): JobForm {
  const form: Record<string, unknown> = { ...EMPTY_FORM };
  for (const [key, empty] of Object.entries(EMPTY_FORM)) {
    const value = kept[key];
    if (key === 'parent') form[key] = isPicked(value) ? value : null;
    else if (key === 'deps') form[key] = Array.isArray(value) ? value.filter(isPicked) : [];
    else if (Array.isArray(empty)) {
      form[key] = Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
    } else if (typeof value === 'string') form[key] = value;
  }
  if (form.kind !== 'composite') form.kind = 'agent';
  return form as unknown as JobForm;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isPicked(value: unknown): value is { id: string; name: string } {
  return isRecord(value) && typeof value.id === 'string' && typeof value.name === 'string';
}
