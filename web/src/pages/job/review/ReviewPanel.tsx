import { Progress, Stack, Text, Title } from '@mantine/core';
import type { Job, Run } from '../../../api/types';
import { plural, usd } from '../../../ui/format';
import { Panel } from '../../../ui/Panel';
import { DiffPanel } from '../diff/DiffPanel';
import { quorumOf } from '../now/now';
import { Checks } from '../runs/Checks';
import { totals } from '../runs/runFacts';
import { visible } from '../visible';
import { EarlierReviews } from './EarlierReviews';
import classes from './Review.module.css';
import { ReviewForm } from './ReviewForm';

/// Everything that a verdict takes on one screen: the checks, the changes, what others said, and the form.
export function ReviewPanel({ job, runs }: { job: Job; runs: readonly Run[] }) {
  const run = runs.find((one) => one.leaseEpoch === job.result?.leaseEpoch) ?? runs[0];
  return (
    <div className={classes.review}>
      <Stack gap="md" className={classes.form}>
        <Panel title="Review">
          <Quorum job={job} />
          <ReviewForm job={job} />
        </Panel>
      </Stack>
      <Stack gap="md" className={classes.result}>
        <Panel
          title={run ? `The result of run ${run.leaseEpoch}` : 'The result'}
          aside={
            <Text size="xs" c="dimmed">
              {cost(runs, run)}
            </Text>
          }
        >
          {run?.report.summary && (
            <Text size="sm" mb="xs" className={classes.summary}>
              {visible(run.report.summary)}
            </Text>
          )}
          <Title order={3} size="h6" mb={4}>
            Checks
          </Title>
          <Checks checks={run?.report.checks} />
          <Title order={3} size="h6" mt="md" mb={4}>
            Changes
          </Title>
          <DiffPanel job={job} run={run} />
        </Panel>
        <EarlierReviews job={job} />
      </Stack>
    </div>
  );
}

/// Of the run that is judged, and of the whole job where it took several.
function cost(runs: readonly Run[], run: Run | undefined): string {
  const { costUsd, tokens } = run?.report ?? {};
  const sum = totals(runs);
  const told = (dollars: number, used: number) => `${usd(dollars)}, ${plural(used, 'token')}`;
  const untold = (costUsd ?? undefined) === undefined && (tokens ?? undefined) === undefined;
  const whole =
    runs.length > 1 && (sum.usd > 0 || sum.tokens > 0)
      ? `; ${told(sum.usd, sum.tokens)} in ${runs.length} runs`
      : '';
  return `${untold ? 'cost not told' : told(costUsd ?? 0, tokens ?? 0)}${whole}`;
}

function Quorum({ job }: { job: Job }) {
  const { quorum, given, who } = quorumOf(job);
  return (
    <div className={classes.quorum}>
      <Text size="sm">
        {given} of {quorum} {quorum === 1 ? 'approval' : 'approvals'}, from {who}
      </Text>
      <Progress value={Math.min(100, (given / quorum) * 100)} color="green" mt={4} aria-label="Approvals" />
      {given > 0 && (
        <Text size="xs" c="dimmed" mt={4}>
          Approved by {job.approvals?.join(', ')}
        </Text>
      )}
    </div>
  );
}
