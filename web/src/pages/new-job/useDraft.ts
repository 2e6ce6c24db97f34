import { useCallback, useEffect, useState } from 'react';
import { newKey } from '../../api/client';
import { type Draft, type DraftPlace, dropDraft, loadDraft, newDraft, saveDraft } from './draft';
import type { JobForm } from './form';

export interface Drafting {
  draft: Draft;
  /// Something was typed, in this visit or before a reload.
  dirty: boolean;
  /// False if the browser cannot save it.
  kept: boolean;
  /// The time under "Not before" is incomplete. Not saved: the browser does not say what was typed.
  halfTime: boolean;
  setTime(runAt: string, half: boolean): void;
  set<K extends keyof JobForm>(key: K, value: JobForm[K]): void;
  /// Edits the manifest; `null` goes back to the form.
  setText(text: string | null): void;
  /// Back to the form, with the edits of the manifest.
  setForm(form: JobForm): void;
  /// The next submit creates a new job, whatever was sent before.
  renewKey(): void;
  startOver(): void;
  /// The draft became a job.
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
    // A group has no such input.
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
