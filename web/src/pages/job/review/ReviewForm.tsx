import { Alert, Button, Checkbox, Group, NativeSelect, Radio, Stack, Text, Textarea } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { answer, api } from '../../../api/client';
import { Problem } from '../../../api/problem';
import { keys, whoamiQuery } from '../../../api/queries';
import type { Job } from '../../../api/types';
import { REVIEW_VERDICT, type ReviewVerdict, wordIn, wordsOf } from '../../../api/vocabulary';
import { useMay } from '../../../session/useSession';
import { Hint } from '../../../ui/Basics';
import { CommandLine } from '../../../ui/CommandLine';
import { notifyDone } from '../../../ui/Confirm';
import { shellWord } from '../../../ui/format';
import { ProblemAlert } from '../../../ui/States';
import { visible } from '../../../ui/visible';
import { reviewedEpoch } from '../runs/runFacts';

export function reviewCommand(
  job: Pick<Job, 'id'>,
  { verdict, comment }: Draft,
  reviewer?: string,
  acknowledge = false,
): string {
  const as = reviewer ? ` --as ${shellWord(reviewer)}` : '';
  const text = comment.trim() ? ` -m ${shellWord(comment.trim())}` : '';
  const unseen = acknowledge ? ' --acknowledge-unseen' : '';
  return `giga review ${job.id} --${verdict.replace('_', '-')}${unseen}${text}${as}`;
}

/// Why a verdict cannot be given without a comment.
const NEEDS_WORDS: Partial<Record<ReviewVerdict, string>> = {
  request_changes: 'Say what should change: the next run gets this comment.',
  reject: 'Say why you reject it.',
};

interface ReviewFormProps {
  job: Job;
  /// The result is shown; nobody can judge it otherwise.
  isShown: boolean;
}

/// The verdict on the result that the reviewer has seen, and on no other.
export function ReviewForm({ job, isShown }: ReviewFormProps) {
  const client = useQueryClient();
  const may = useMay('operator');
  const admin = useMay('admin');
  const { data: me } = useQuery(whoamiQuery());
  const there = reviewedEpoch(job);
  const [draft, setDraft] = useState<Draft>(() => ({ epoch: there, ...readDraft(job.id) }));
  const [reviewer, setReviewer] = useState('');
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  /// The run whose unseen changes the reviewer knows of.
  const [acknowledged, setAcknowledged] = useState<number>();

  const seen = draft.epoch ?? there;
  const other = seen !== there;
  const sent = useRef<Draft>(undefined);
  // From here on this is the result that was seen, also after a reload. After sending, the next review starts over.
  useEffect(() => keepDraft(job.id, draft === sent.current ? NO_DRAFT : draft), [job.id, draft]);
  const reviewers = job.gate?.reviewers ?? [];
  const outsider = reviewers.length > 0 && me?.label !== undefined && !reviewers.includes(me.label ?? '');

  const unseen = draft.verdict === 'approve' ? (job.result?.unseen ?? undefined) : undefined;
  const acknowledges = unseen !== undefined && acknowledged === there;
  // Whoever has to act on a verdict has to know what is wrong, and whoever approves what is not shown.
  const words = draft.comment.trim() === '' ? NEEDS_WORDS[draft.verdict] : undefined;
  const missing =
    words ?? (unseen && !acknowledges ? 'Confirm that the diff does not show everything.' : undefined);

  const change = (part: Partial<Draft>) => {
    setDraft((old) => ({ ...old, epoch: seen, ...part }));
  };

  const send = async (event: FormEvent) => {
    event.preventDefault();
    const comment = draft.comment.trim();
    if (missing) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const call = api.POST('/api/fleet/jobs/{id}/review', {
        params: { path: { id: job.id } },
        body: {
          verdict: draft.verdict,
          ...(comment ? { comment } : {}),
          ...(reviewer ? { reviewer } : {}),
          leaseEpoch: seen,
          ...(acknowledges ? { acknowledgeUnseen: true } : {}),
        },
      });
      await answer(call);
      notifyDone(`${visible(job.name)} is ${REVIEW_VERDICT[draft.verdict].done}`);
      // More reviews may be needed: they are about the same result while it is on the screen.
      sent.current = { ...NO_DRAFT, epoch: seen };
      setDraft(sent.current);
      keepDraft(job.id, NO_DRAFT);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
      void client.invalidateQueries({ queryKey: keys.job(job.id) });
    }
  };

  if (!may) {
    return <Hint>Reviewing requires the operator role; your token is read-only.</Hint>;
  }
  return (
    <form onSubmit={(event) => void send(event)} aria-label="Review" noValidate>
      <Stack gap="sm">
        {other && (
          <Alert color="orange" title="New result" role="alert">
            <Text size="sm">
              Run {there} has finished since you looked at run {seen}. Review the new result.
            </Text>
            <Button
              size="xs"
              mt="xs"
              variant="default"
              onClick={() => {
                change({ epoch: there });
                setProblem(undefined);
              }}
            >
              Review run {there}
            </Button>
          </Alert>
        )}
        {outsider && (
          <Text size="sm" c="var(--giga-warn)">
            Only {visible(reviewers.join(' or '))} can approve; your token is{' '}
            {me?.label ? `labeled ${me.label}` : 'not labeled'}.
          </Text>
        )}
        <Radio.Group
          label="Verdict"
          value={draft.verdict}
          onChange={(value) => change({ verdict: wordIn(REVIEW_VERDICT, value) ?? 'approve' })}
        >
          <Stack gap={6} mt={4}>
            {wordsOf(REVIEW_VERDICT).map((verdict) => (
              <Radio
                key={verdict}
                size="xs"
                value={verdict}
                label={REVIEW_VERDICT[verdict].label}
                description={REVIEW_VERDICT[verdict].about}
              />
            ))}
          </Stack>
        </Radio.Group>
        <Textarea
          label="Comment"
          description="Markdown"
          placeholder="What is good, what should change"
          autosize
          minRows={3}
          maxRows={14}
          value={draft.comment}
          onChange={(event) => change({ comment: event.currentTarget.value })}
          required={draft.verdict !== 'approve'}
        />
        {unseen && (
          <Checkbox
            size="xs"
            label="I know that the diff does not show everything"
            description={visible(unseen)}
            checked={acknowledges}
            onChange={(event) => setAcknowledged(event.currentTarget.checked ? there : undefined)}
          />
        )}
        {admin && reviewers.length > 0 && (
          <NativeSelect
            label="On behalf of"
            value={reviewer}
            onChange={(event) => setReviewer(event.currentTarget.value)}
            data={[{ value: '', label: me?.label || 'this token' }, ...reviewers]}
          />
        )}
        {problem !== undefined && !(other && Problem.from(problem).code === 'result_mismatch') && (
          <ProblemAlert error={problem} />
        )}
        <Group justify="space-between">
          <Button
            type="submit"
            size="sm"
            loading={busy}
            disabled={other || !isShown || missing !== undefined}
            color={draft.verdict === 'reject' ? 'red' : undefined}
          >
            {REVIEW_VERDICT[draft.verdict].label}
          </Button>
          {!isShown && <Hint>You can review run {there} once its result is shown.</Hint>}
          {isShown && missing && <Hint>{missing}</Hint>}
        </Group>
        <CommandLine command={reviewCommand(job, draft, reviewer || undefined, acknowledges)} />
      </Stack>
    </form>
  );
}

// A draft of a review survives a reload: it is saved for this tab, by job, with the run that it is about. So a result that
// comes in meanwhile is noticed even if the form was closed in between.

export interface Draft {
  verdict: ReviewVerdict;
  comment: string;
  /// The run whose result was shown.
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
      verdict: wordIn(REVIEW_VERDICT, verdict) ?? 'approve',
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
    // Without storage the form still works.
  }
}
