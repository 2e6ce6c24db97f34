// A review that is half written survives a reload: it is kept for this tab, by job, with the run that it is about. So
// a result that comes in meanwhile is noticed also when the form was gone in between.

export const VERDICTS = ['approve', 'request_changes', 'reject'] as const;
export type Verdict = (typeof VERDICTS)[number];

export interface Draft {
  verdict: Verdict;
  comment: string;
  /// The run whose result was looked at.
  epoch?: number;
}

export const NO_DRAFT: Draft = { verdict: 'approve', comment: '' };

const key = (jobId: string) => `giga.review.${jobId}`;

export function readDraft(jobId: string): Draft {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(key(jobId)) ?? 'null');
    if (typeof kept !== 'object' || kept === null) return NO_DRAFT;
    const { verdict, comment, epoch } = kept as Partial<Draft>;
    return {
      verdict: VERDICTS.find((known) => known === verdict) ?? 'approve',
      comment: typeof comment === 'string' ? comment : '',
      ...(Number.isSafeInteger(epoch) ? { epoch } : {}),
    };
  } catch {
    return NO_DRAFT;
  }
}

export function keepDraft(jobId: string, draft: Draft): void {
  try {
    if (draft.comment === '' && draft.verdict === 'approve' && draft.epoch === undefined)
      sessionStorage.removeItem(key(jobId));
    else sessionStorage.setItem(key(jobId), JSON.stringify(draft));
  } catch {
    // A browser that keeps nothing still lets one write.
  }
}
