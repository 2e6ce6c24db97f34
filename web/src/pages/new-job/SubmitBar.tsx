import { Anchor, Button, Group, Stack, Text, Tooltip } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { Link, useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { Problem } from '../../api/problem';
import { useMay } from '../../session/useSession';
import { Hint, SmallButton } from '../../ui/Basics';
import { CodeText } from '../../ui/CodeText';
import { CommandLine } from '../../ui/CommandLine';
import { notifyDone, useConfirm } from '../../ui/Confirm';
import { sentence, shellWord } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import { Note } from '../../ui/Note';
import { saveBlob } from '../../ui/saveBlob';
import { visible } from '../../ui/visible';
import { manifestText, submit } from './send';
import type { Drafting } from './useDraft';
import { type Outcome, type Plan, verdictOf } from './usePlan';

const JOB_ID = /\b[0-9A-HJKMNP-TV-Z]{26}\b/;

export function SubmitBar({ drafting, plan }: { drafting: Drafting; plan: Plan }) {
  const { draft } = drafting;
  const may = useMay('submitter');
  const ask = useConfirm();
  const navigate = useNavigate();
  const [busy, setBusy] = useState(false);
  // A second click may come before the first has rendered anything.
  const sending = useRef(false);
  const [problem, setProblem] = useState<Problem>();
  const unnamed = draft.text === null && draft.form.name.trim() === '';
  const never = plan.answer !== undefined && !plan.answer.routable;
  const why = whyNot({ may, unnamed, halfTime: drafting.halfTime, plan });
  const blocked = why !== undefined;

  const send = async () => {
    if (sending.current) return;
    sending.current = true;
    setProblem(undefined);
    try {
      // The dry run in sight may be of an older draft.
      setBusy(!plan.current);
      const outcome = await plan.ask();
      const verdict = verdictOf(outcome);
      // The reason is shown by now.
      if (verdict === 'wrong' || verdict === 'strict') return;
      // After the question the focus returns to the button, which must not be busy then.
      setBusy(verdict === 'good');
      if (verdict === 'never' && !(await ask(neverQuestion(outcome)))) return;
      if (verdict === 'unknown' && !(await ask(UNKNOWN_QUESTION))) return;
      setBusy(true);
      const job = await submit(draft);
      drafting.forget();
      notifyDone(`${visible(job.name)} was submitted`);
      await navigate({ to: '/jobs/$id', params: { id: job.id }, search: {} });
    } catch (error) {
      setProblem(Problem.from(error));
    } finally {
      sending.current = false;
      setBusy(false);
    }
  };

  const renew = () => {
    drafting.renewKey();
    setProblem(undefined);
  };

  useHotkeys([['mod+Enter', () => !blocked && void send()]], []);
  return (
    <Stack gap="xs">
      {problem && <SubmitProblem problem={problem} renew={renew} />}
      <Group gap="xs">
        <Tooltip label={why && <CodeText text={why} />} disabled={!blocked}>
          <Button
            color={never && !blocked ? 'red' : undefined}
            disabled={blocked}
            loading={busy}
            onClick={() => void send()}
          >
            {never && !blocked
              ? 'Submit anyway…'
              : problem?.code === 'unreachable'
                ? 'Submit again'
                : 'Submit'}
          </Button>
        </Tooltip>
        <Download draft={draft} />
        {blocked && (
          <Hint>
            <CodeText text={`${sentence(why)}.`} />
          </Hint>
        )}
      </Group>
      <Text size="xs" c="dimmed" component="div">
        From a terminal: <CommandLine command={commandOf(drafting)} />
      </Text>
    </Stack>
  );
}

/// Why it cannot be submitted, if it cannot.
function whyNot(now: { may: boolean; unnamed: boolean; halfTime: boolean; plan: Plan }): string | undefined {
  if (!now.may) return 'requires the submitter role';
  if (now.unnamed) return 'the job needs a name';
  if (now.halfTime) return 'the time under “Not before” is incomplete';
  const verdict = now.plan.current ? verdictOf(now.plan) : undefined;
  if (verdict === 'wrong') return 'the job has errors';
  return verdict === 'strict' ? 'the flag `strict` refuses jobs that no factory can run' : undefined;
}

const UNKNOWN_QUESTION = {
  title: 'Submit without a dry run?',
  text: 'The coordinator did not answer, so it is unknown whether any factory can run the job.',
  yes: 'Submit without a dry run',
  danger: true,
};

function neverQuestion({ answer }: Outcome) {
  return {
    title: 'Submit although no factory can run it?',
    text: (
      <>
        <CodeText text={sentence(answer?.warnings.join('; ') || answer?.explanation.summary || '')} />. The
        job would wait until the fleet changes.
      </>
    ),
    yes: 'Submit anyway',
    danger: true,
  };
}

function fileName(drafting: { draft: Drafting['draft'] }): string {
  const name = drafting.draft.form.name
    .trim()
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '');
  return `${name.slice(0, 60) || 'job'}.md`;
}

function commandOf(drafting: Drafting): string {
  const { parent } = drafting.draft.form;
  const under = parent ? ` --parent ${shellWord(parent.id)}` : '';
  return `giga job submit ${fileName(drafting)}${under}`;
}

function Download({ draft }: { draft: Drafting['draft'] }) {
  const save = () =>
    saveBlob(new Blob([manifestText(draft)], { type: 'text/markdown' }), fileName({ draft }));
  return (
    <Button variant="default" leftSection={<Icon name="down" />} onClick={save}>
      Download manifest
    </Button>
  );
}

function SubmitProblem({ problem, renew }: { problem: Problem; renew: () => void }) {
  if (problem.code === 'unreachable') {
    return (
      <Note tone="warn" title="No answer from the coordinator" urgent>
        The coordinator cannot be reached, so it is unknown whether the job was created. Submitting this draft
        again is safe and never creates a second job.
      </Note>
    );
  }
  if (problem.code === 'idempotency_conflict') {
    const made = JOB_ID.exec(problem.message)?.[0];
    return (
      <Note tone="warn" title="An earlier version of this draft was submitted" urgent>
        <Stack gap="xs" align="flex-start">
          <Text size="sm">The draft has changed since then.</Text>
          {made && (
            <Anchor component={Link} to={`/jobs/${made}`} size="sm" underline="always">
              Open that job
            </Anchor>
          )}
          <SmallButton onClick={renew}>Submit this as a new job</SmallButton>
        </Stack>
      </Note>
    );
  }
  return (
    <Note tone="bad" title="The job was not submitted" urgent>
      <CodeText text={problem.message} />
      {problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((error) => (
            <li key={`${error.field} ${error.message}`}>
              <CodeText text={error.message} />
            </li>
          ))}
        </ul>
      )}
    </Note>
  );
}
