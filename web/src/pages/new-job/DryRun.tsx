import { Group, Stack, Text } from '@mantine/core';
import { Hint } from '../../ui/Basics';
import { CodeText } from '../../ui/CodeText';
import { usd } from '../../ui/format';
import { ErrorList, Note } from '../../ui/Note';
import { Panel } from '../../ui/Panel';
import { Loading } from '../../ui/States';
import { ExplainPanel } from '../job/ExplainPanel';
import type { JobForm } from './form';
import classes from './NewJob.module.css';
import { SubmitBar } from './SubmitBar';
import type { Drafting } from './useDraft';
import type { Plan } from './usePlan';

/// What submitting would do, updated while you type.
export function DryRun({ drafting, plan }: { drafting: Drafting; plan: Plan }) {
  const { form, text } = drafting.draft;
  const byHand = text !== null;
  return (
    <Panel
      title="Dry run"
      aside={
        <Text size="xs" c="dimmed" role="status">
          {plan.current ? 'Up to date' : plan.problem?.code === 'unreachable' ? 'No answer' : 'Updating…'}
        </Text>
      }
    >
      <Stack gap="md">
        <Verdict plan={plan} byHand={byHand} runs={byHand || form.kind === 'agent'} />
        {!byHand && <BlockedFirst form={form} />}
        <SubmitBar drafting={drafting} plan={plan} />
        {plan.answer && <ExplainPanel explanation={plan.answer.explanation} />}
      </Stack>
    </Panel>
  );
}

function Verdict({ plan, byHand, runs }: { plan: Plan; byHand: boolean; runs: boolean }) {
  const { answer, problem } = plan;
  if (problem?.code === 'unreachable') {
    return (
      <Note tone="warn" title="The coordinator cannot be reached" urgent>
        Your draft is saved in this tab, and the dry run continues automatically.
      </Note>
    );
  }
  if (problem) return <Refused plan={plan} byHand={byHand} />;
  if (!answer) return <Loading what="dry run" />;
  return (
    <Stack gap="xs">
      {!answer.routable && (
        <Note tone="bad" title="No factory in the fleet can run this job" urgent>
          <CodeText text={answer.warnings.join('; ') || answer.explanation.summary} />
          {answer.refused && (
            <Text size="sm" mt={4}>
              <CodeText text="The flag `strict` is on, so the job would be refused." />
            </Text>
          )}
        </Note>
      )}
      {answer.routable &&
        answer.warnings.map((warning) => (
          <Note key={warning} tone="warn" title={<CodeText text={warning} />} />
        ))}
      {runs && <Cost worst={answer.worstCaseUsd} />}
    </Stack>
  );
}

/// The dry run is about factories only; this is about what comes before.
function BlockedFirst({ form }: { form: JobForm }) {
  if (form.deps.length === 0) return null;
  const names = form.deps.map((dep) => dep.name).join(', ');
  const which = form.deps.length === 1 ? names : `${form.depsMode === 'any' ? 'any' : 'all'} of ${names}`;
  return (
    <Note tone="busy" title="Blocked at first">
      The job waits until {which} {form.deps.length === 1 ? 'has' : 'have'} shipped. The dry run shows what
      would happen then, with the fleet as it is now.
    </Note>
  );
}

function Refused({ plan, byHand }: { plan: Plan; byHand: boolean }) {
  const { problem, others } = plan;
  if (!problem) return null;
  const where = byHand ? 'The errors are listed below the manifest.' : 'The errors are shown at the fields.';
  const listed = byHand ? [] : others;
  const elsewhere = problem.errors.length > listed.length;
  return (
    <Note tone="bad" title="The job has errors">
      {problem.errors.length === 0 ? <CodeText text={problem.message} /> : elsewhere && where}
      {listed.length > 0 && <ErrorList errors={listed} />}
    </Note>
  );
}

function Cost({ worst }: { worst: number | null | undefined }) {
  const capped = worst !== null && worst !== undefined;
  return (
    <Group gap="xs" className={classes.cost}>
      <Hint>Worst-case cost</Hint>
      <Text size="sm" fw={600}>
        {capped ? usd(worst) : 'unlimited'}
      </Text>
      <Hint size="xs">{capped ? 'cost limit times attempts' : 'set a cost limit to bound it'}</Hint>
    </Group>
  );
}
