import { useCallback, useEffect, useState } from 'react';
import { type Draft, type DraftPlace, dropDraft, loadDraft, newDraft, newKey, saveDraft } from './draft';
import type { JobForm } from './form';

export interface Drafting {
  draft: Draft;
  /// Something was typed, in this visit or before a reload.
  dirty: boolean;
  /// False where the browser does not keep it.
  kept: boolean;
  set<K extends keyof JobForm>(key: K, value: JobForm[K]): void;
  /// Edits the manifest by hand; `null` goes back to what the form says.
  setText(text: string | null): void;
  /// The form again, with what was edited by hand.
  setForm(form: JobForm): void;
  /// A job of its own, whatever was sent before.
  renewKey(): void;
  startOver(): void;
  /// It has become a job.
  forget(): void;
}

export function useDraft(place: DraftPlace, start: JobForm): Drafting {
  const { owner, from } = place;
  const [first] = useState(() => loadDraft({ owner, from }));
  const [draft, setDraft] = useState(() => first ?? newDraft(start));
  const [dirty, setDirty] = useState(first !== undefined);
  const [kept, setKept] = useState(true);
  useEffect(() => {
    if (dirty) setKept(saveDraft({ owner, from }, draft));
  }, [draft, dirty, owner, from]);
  const change = useCallback((next: (before: Draft) => Draft) => {
    setDirty(true);
    setDraft(next);
  }, []);
  const forget = useCallback(() => {
    dropDraft({ owner, from });
    setDirty(false);
  }, [owner, from]);
  return {
    draft,
    dirty,
    kept,
    set: (key, value) => change((before) => ({ ...before, form: { ...before.form, [key]: value } })),
    setText: (text) => change((before) => ({ ...before, text })),
    setForm: (form) => change((before) => ({ ...before, form, text: null })),
    renewKey: () => change((before) => ({ ...before, key: newKey() })),
    startOver: () => {
      forget();
      setDraft(newDraft(start));
    },
    forget,
  };
}
