import { useCallback, useEffect, useState } from 'react';
import { newKey } from '../../api/client';
import { type Draft, type DraftPlace, dropDraft, loadDraft, newDraft, saveDraft } from './draft';
import type { JobForm } from './form';

export interface Drafting {
  draft: Draft;
  /// Something was typed, in this visit or before a reload.
  dirty: boolean;
  /// False where the browser does not keep it.
  kept: boolean;
  /// The time that it is held back until is half typed. Not kept: the browser does not say what was typed.
  halfTime: boolean;
  setTime(runAt: string, half: boolean): void;
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
  const [half, setHalf] = useState(false);
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
    // A composite has no such input, and starts nothing.
    halfTime: half && draft.form.kind === 'agent',
    setTime: (runAt, isHalf) => {
      setHalf(isHalf);
      change((before) => ({ ...before, form: { ...before.form, runAt } }));
    },
    set: (key, value) => change((before) => ({ ...before, form: { ...before.form, [key]: value } })),
    setText: (text) => {
      setHalf(false);
      change((before) => ({ ...before, text }));
    },
    setForm: (form) => {
      setHalf(false);
      change((before) => ({ ...before, form, text: null }));
    },
    renewKey: () => change((before) => ({ ...before, key: newKey() })),
    startOver: () => {
      forget();
      setHalf(false);
      setDraft(newDraft(start));
    },
    forget,
  };
}
