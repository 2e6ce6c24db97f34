import { Alert, Button, Group, NativeSelect, Radio, Stack, Text, Textarea } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { answer, api } from '../../../api/client';
import { Problem } from '../../../api/problem';
import { keys, whoamiQuery } from '../../../api/queries';
import type { Job } from '../../../api/types';
import { useMay } from '../../../session/useSession';
import { CommandLine } from '../../../ui/CommandLine';
import { tellDone } from '../../../ui/Confirm';
import { shellWord } from '../../../ui/format';
import { ProblemAlert } from '../../../ui/States';
import { visible } from '../../../ui/visible';
import { judgedEpoch } from '../runs/runFacts';

const WORDS: Record<Verdict, { label: string; about: string; done: string }> = {
  approve: { label: 'Approve', about: 'It may go on.', done: 'approved' },
  request_changes: {
    label: 'Request changes',
    about: 'It is run again, on the same branch, with your comment.',
    done: 'sent back with your comment',
  },
  reject: { label: 'Reject', about: 'It fails with the reason "rejected".', done: 'rejected' },
};

export function reviewCommand(job: Pick<Job, 'id'>, { verdict, comment }: Draft, reviewer?: string): string {
  const as = reviewer ? ` --as ${shellWord(reviewer)}` : '';
  const text = comment.trim() ? ` -m ${shellWord(comment.trim())}` : '';
  return `giga review ${job.id} --${verdict.replace('_', '-')}${text}${as}`;
}

interface ReviewFormProps {
  job: Job;
  /// What is judged is there to be looked at. Without it nobody can tell whether it is good.
  isShown: boolean;
}

/// The verdict on the result that one has looked at, and on no other.
export function ReviewForm({ job, isShown }: ReviewFormProps) {
  const client = useQueryClient();
  const may = useMay('operator');
  const admin = useMay('admin');
  const { data: me } = useQuery(whoamiQuery());
  const there = judgedEpoch(job);
  const [draft, setDraft] = useState<Draft>(() => ({ epoch: there, ...readDraft(job.id) }));
  const [reviewer, setReviewer] = useState('');
  const [problem, setProblem] = useState<unknown>();
  const [wrong, setWrong] = useState<string>();
  const [busy, setBusy] = useState(false);

  const seen = draft.epoch ?? there;
  const other = seen !== there;
  const sent = useRef<Draft>(undefined);
  // From here on this is what was looked at, also after a reload. What was sent is not: whoever comes back looks anew.
  useEffect(() => keepDraft(job.id, draft === sent.current ? NO_DRAFT : draft), [job.id, draft]);
  const reviewers = job.gate?.reviewers ?? [];
  const outsider = reviewers.length > 0 && me?.label !== undefined && !reviewers.includes(me.label ?? '');

  const change = (part: Partial<Draft>) => {
    setDraft((old) => ({ ...old, epoch: seen, ...part }));
    setWrong(undefined);
  };

  const send = async (event: FormEvent) => {
    event.preventDefault();
    const comment = draft.comment.trim();
    if (draft.verdict === 'request_changes' && comment === '') {
      setWrong('Say what should be different: the next run gets this comment.');
      return;
    }
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
        },
      });
      await answer(call);
      tellDone(`${visible(job.name)} is ${WORDS[draft.verdict].done}`);
      // More verdicts may be needed: they are about the same result, as long as it is on the screen.
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
    return (
      <Text size="sm" c="dimmed">
        A verdict needs the role operator; your token may only look.
      </Text>
    );
  }
  return (
    <form onSubmit={(event) => void send(event)} aria-label="Review" noValidate>
      <Stack gap="sm">
        {other && (
          <Alert color="orange" title="Look again" role="alert">
            <Text size="sm">
              Another result has come in: run {there} instead of run {seen}, which you looked at.
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
              I have looked at run {there}
            </Button>
          </Alert>
        )}
        {outsider && (
          <Text size="sm" c="var(--giga-warn)">
            Only {visible(reviewers.join(' or '))} may approve; your token speaks for{' '}
            {me?.label || 'nobody by name'}.
          </Text>
        )}
        <Radio.Group
          label="Verdict"
          value={draft.verdict}
          onChange={(value) => change({ verdict: VERDICTS.find((known) => known === value) ?? 'approve' })}
        >
          <Stack gap={6} mt={4}>
            {VERDICTS.map((verdict) => (
              <Radio
                key={verdict}
                size="xs"
                value={verdict}
                label={WORDS[verdict].label}
                description={WORDS[verdict].about}
              />
            ))}
          </Stack>
        </Radio.Group>
        <Textarea
          label="Comment"
          description="Markdown"
          placeholder="What reads well, what should be different"
          autosize
          minRows={3}
          maxRows={14}
          value={draft.comment}
          onChange={(event) => change({ comment: event.currentTarget.value })}
          required={draft.verdict === 'request_changes'}
          error={wrong}
        />
        {admin && reviewers.length > 0 && (
          <NativeSelect
            label="In the name of"
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
            disabled={other || !isShown}
            color={draft.verdict === 'reject' ? 'red' : undefined}
          >
            {WORDS[draft.verdict].label}
          </Button>
          {!isShown && (
            <Text size="sm" c="dimmed">
              A verdict can be given when the result of run {there} is shown.
            </Text>
          )}
        </Group>
        <CommandLine command={reviewCommand(job, draft, reviewer || undefined)} />
      </Stack>
    </form>
  );
}

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
