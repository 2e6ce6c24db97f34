import { Progress, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { runsQuery } from '../../../api/queries';
import type { Job, Run } from '../../../api/types';
import { Hint, SmallButton } from '../../../ui/Basics';
import { plural, usd } from '../../../ui/format';
import { Panel } from '../../../ui/Panel';
import { Empty, Loaded } from '../../../ui/States';
import { visible } from '../../../ui/visible';
import { DiffPanel } from '../diff/DiffPanel';
import { Checks } from '../runs/Checks';
import { reviewedEpoch, totals } from '../runs/runFacts';
import { quorumOf } from '../status/status';
import { EarlierReviews } from './EarlierReviews';
import classes from './Review.module.css';
import { ReviewForm } from './ReviewForm';

/// All that a review needs on one screen: checks, changes, earlier reviews and the form.
export function ReviewPanel({ job }: { job: Job }) {
  const query = useQuery(runsQuery(job.id));
  const epoch = reviewedEpoch(job);
  const run = query.data?.runs.find((one) => one.leaseEpoch === epoch);
  return (
    <div className={classes.review}>
      <Stack gap="md" className={classes.form}>
        <Panel title="Review">
          <Quorum job={job} />
          <ReviewForm job={job} isShown={run !== undefined || epoch === 0} />
        </Panel>
      </Stack>
      <Stack gap="md">
        <Panel
          title={epoch === 0 ? 'Result' : `Result of run ${epoch}`}
          aside={run && <Hint size="xs">{cost(query.data?.runs ?? [], run)}</Hint>}
        >
          {epoch === 0 ? (
            <Empty title="This job has no run of its own">
              Its children did the work; see the Graph tab.
            </Empty>
          ) : (
            <Loaded query={query} what="runs">
              {() =>
                run ? (
                  <Result job={job} run={run} />
                ) : (
                  <Empty title={`Run ${epoch} not found`}>
                    <Text size="sm">It is not among the runs that are known so far.</Text>
                    <SmallButton mt="xs" onClick={() => void query.refetch()}>
                      Try again
                    </SmallButton>
                  </Empty>
                )
              }
            </Loaded>
          )}
        </Panel>
        <EarlierReviews job={job} />
      </Stack>
    </div>
  );
}

function Result({ job, run }: { job: Job; run: Run }) {
  return (
    <>
      {run.report.summary && (
        <Text size="sm" mb="xs" className={classes.summary}>
          {visible(run.report.summary)}
        </Text>
      )}
      <Title order={3} size="h6" mb={4}>
        Checks
      </Title>
      <Checks checks={run.report.checks} />
      <Title order={3} size="h6" mt="md" mb={4}>
        Changes
      </Title>
      <DiffPanel job={job} run={run} />
    </>
  );
}

/// Of the run under review, and of the whole job where it took several.
function cost(runs: readonly Run[], run: Run): string {
  const { costUsd, tokens } = run.report;
  const sum = totals(runs);
  const both = (dollars: number, used: number) => `${usd(dollars)}, ${plural(used, 'token')}`;
  const unknown = (costUsd ?? undefined) === undefined && (tokens ?? undefined) === undefined;
  const whole =
    runs.length > 1 && (sum.usd > 0 || sum.tokens > 0)
      ? `; ${both(sum.usd, sum.tokens)} in ${runs.length} runs`
      : '';
  return `${unknown ? 'Cost unknown' : both(costUsd ?? 0, tokens ?? 0)}${whole}`;
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
        <Hint size="xs" mt={4}>
          Approved by {visible(job.approvals?.join(', ') ?? '')}
        </Hint>
      )}
    </div>
  );
}
