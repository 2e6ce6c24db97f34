import { Paper, Progress, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useId } from 'react';
import { explainNowQuery } from '../../../api/queries';
import type { FeedEvent, Job, Run } from '../../../api/types';
import { isFinal, isHeld } from '../../../api/vocabulary';
import { useActorName } from '../../../session/useSession';
import { Ago, Time } from '../../../ui/Ago';
import { Hint } from '../../../ui/Basics';
import { CodeText } from '../../../ui/CodeText';
import { coarse, millis } from '../../../ui/format';
import { AnchorLink } from '../../../ui/links';
import { Fact } from '../../../ui/Panel';
import { useNow } from '../../../ui/useNow';
import { visible } from '../../../ui/visible';
import { OneRemedy } from '../ExplainRemedies';
import { plainText } from '../log/ansi';
import { useLog } from '../log/useLog';
import { Checks } from '../runs/Checks';
import classes from './StatusCard.module.css';
import { jobStatus, leaseLeft, spending } from './status';

interface StatusCardProps {
  job: Job;
  runs: readonly Run[];
  events: readonly FeedEvent[];
}

/// What is happening now, and the smallest fix.
export function StatusCard({ job, runs, events }: StatusCardProps) {
  const now = useNow(!isFinal(job.stage));
  const title = useId();
  const { data: explanation } = useQuery({ ...explainNowQuery(job), enabled: !isFinal(job.stage) });
  const actorName = useActorName();
  const status = jobStatus({ job, runs, events, explanation, now, actorName });
  // In review the form below is the remedy.
  const remedy = job.stage === 'review' || isHeld(job.stage) ? undefined : explanation?.remedies[0];
  return (
    <Paper
      component="section"
      withBorder
      p="md"
      className={classes.card}
      data-tone={status.tone}
      aria-labelledby={title}
    >
      <h2 id={title} className={classes.title} style={{ margin: 0 }}>
        <CodeText text={visible(status.title)} />
      </h2>
      {status.detail && !status.title.includes(status.detail) && (
        <Text size="sm" className={classes.detail} mt={4}>
          <CodeText text={visible(status.detail)} />
        </Text>
      )}
      {status.since && (
        <Hint size="xs" mt={4}>
          <Since at={status.since} over={isFinal(job.stage)} now={now} />
        </Hint>
      )}
      {isHeld(job.stage) && <Held job={job} runs={runs} now={now} />}
      {job.stage === 'blocked' && <Deps job={job} />}
      {(job.stage === 'failed' || job.stage === 'dead_letter') && <FailedRun job={job} run={runs[0]} />}
      {job.stage === 'dead_letter' && (
        <Text size="sm" mt="xs">
          It is not retried automatically. Check the log and the runs, then submit a new job based on this
          one.
        </Text>
      )}
      {remedy && (
        <div className={classes.remedy}>
          <OneRemedy remedy={remedy} />
        </div>
      )}
    </Paper>
  );
}

/// Since when: a duration while it lasts, a time ago when it is over.
function Since({ at, over, now }: { at: string; over: boolean; now: number }) {
  const then = millis(at);
  if (over || then === undefined) return <Ago at={at} />;
  return <Time at={at}>for {coarse(now - then)}</Time>;
}

/// The failed checks of the last run, and a link to its log.
function FailedRun({ job, run }: { job: Job; run: Run | undefined }) {
  if (!run) return null;
  const failed = run.report.checks?.filter((check) => !check.passed) ?? [];
  return (
    <div className={classes.remedy}>
      {failed.length > 0 && <Checks checks={failed} />}
      <AnchorLink
        size="sm"
        to="/jobs/$id"
        params={{ id: job.id }}
        search={{ tab: 'log', epoch: run.leaseEpoch }}
      >
        Log of run {run.leaseEpoch}
      </AnchorLink>
    </div>
  );
}

function Held({ job, runs, now }: { job: Job; runs: readonly Run[]; now: number }) {
  const run = runs.find((one) => one.leaseEpoch === job.leaseEpoch);
  const left = leaseLeft(job, now);
  const spent = spending(job);
  return (
    <>
      <dl className={classes.facts}>
        <Fact name="Factory">{job.lease?.factoryId ?? '–'}</Fact>
        <Fact name="Run">{job.leaseEpoch}</Fact>
        <Fact name="Claimed">
          <Ago at={job.lease?.grantedAt} />
        </Fact>
        {run?.engine && <Fact name="Engine">{run.model ? `${run.engine} (${run.model})` : run.engine}</Fact>}
        {spent && <Fact name="Cost of this run">{spent}</Fact>}
        {left && (
          <Fact name="Lease">
            {left.text}
            <Progress
              className={classes.bar}
              value={Math.round(left.share * 100)}
              size={5}
              color="var(--giga-busy)"
              transitionDuration={1_000}
              aria-label="Lease left"
            />
          </Fact>
        )}
      </dl>
      <LastLine jobId={job.id} epoch={job.leaseEpoch} />
    </>
  );
}

/// Enough to find a line that is not blank.
const LAST_ROWS = 200;

function LastLine({ jobId, epoch }: { jobId: string; epoch: number }) {
  const { buffer, error } = useLog(jobId, epoch, LAST_ROWS);
  let at = buffer.length - 1;
  while (at > 0 && plainText(buffer.row(at)?.text ?? '').trim() === '') at -= 1;
  const line = plainText(buffer.row(at)?.text ?? '').trim();
  return (
    <Link
      className={classes.lastLine}
      to="/jobs/$id"
      params={{ id: jobId }}
      search={{ tab: 'log' }}
      title="Open the log"
    >
      {error !== undefined
        ? 'The log is not available right now'
        : visible(line.slice(0, 500)) || 'The log is empty so far'}
    </Link>
  );
}

/// The jobs it is blocked by.
function Deps({ job }: { job: Job }) {
  if (job.deps.length === 0) return null;
  return (
    <Text size="sm" mt="xs" component="div">
      Blocked by {job.depsMode === 'any' ? 'one of ' : ''}
      {job.deps.slice(0, 20).map((id, index) => (
        <span key={id}>
          {index > 0 ? ', ' : ''}
          <AnchorLink size="sm" to="/jobs/$id" params={{ id }} search={{}}>
            {id}
          </AnchorLink>
        </span>
      ))}
      {job.deps.length > 20 ? ` and ${job.deps.length - 20} more` : ''}
    </Text>
  );
}
