import { memo } from 'react';
import type { Job } from '../../api/types';
import { duration, millis } from '../../ui/format';
import { StageBadge } from '../../ui/StageBadge';
import { useNow } from '../../ui/useNow';
import { visible } from '../../ui/visible';
import { JobLink } from './JobLink';
import classes from './JobTable.module.css';
import { since } from './rows';
import type { RowState } from './useJobList';

interface JobRowProps {
  job: Job;
  index: number;
  state: RowState;
  isSelected: boolean;
  isActive: boolean;
  choose(id: string, range: boolean): void;
  activate(id: string): void;
}

const ABOUT: Record<RowState, string | undefined> = {
  listed: undefined,
  elsewhere: 'no longer matches',
  gone: 'no longer there',
};

export const JobRow = memo(function JobRow(props: JobRowProps) {
  const { job, index, state, isSelected, isActive, choose, activate } = props;
  const about = ABOUT[state];
  return (
    <tr
      className={classes.row}
      aria-rowindex={index + 2}
      data-selected={isSelected || undefined}
      data-active={isActive || undefined}
      data-stray={about ? true : undefined}
    >
      <td className={classes.check}>
        <label className={classes.box}>
          <input
            type="checkbox"
            aria-label={`Select ${visible(job.name)}`}
            checked={isSelected}
            onChange={(event) => {
              const { nativeEvent } = event;
              choose(job.id, nativeEvent instanceof MouseEvent && nativeEvent.shiftKey);
            }}
          />
        </label>
      </td>
      <td className={classes.stage}>
        <StageBadge stage={job.stage} />
      </td>
      <td className={classes.priority} data-priority={job.priority}>
        {job.priority}
      </td>
      <td className={classes.name}>
        <JobLink job={job} activate={activate} />
        {about && <span className={classes.stray}>{about}</span>}
      </td>
      <td className={classes.product} title={job.productId}>
        {job.productId}
      </td>
      <td className={classes.repo} title={job.repo ?? undefined}>
        {job.repo}
      </td>
      <td className={classes.where}>
        <Where job={job} />
      </td>
      <td className={classes.since}>
        <InStage job={job} />
      </td>
      <td className={classes.attempts}>{job.attempts}</td>
    </tr>
  );
});

function Where({ job }: { job: Job }) {
  if (job.lease) return <span title={`held by ${job.lease.factoryId}`}>{job.lease.factoryId}</span>;
  if (job.stage !== 'queued' || !job.targetFactoryId) return null;
  return <span title={`offered to ${job.targetFactoryId}`}>→ {job.targetFactoryId}</span>;
}

/// For how long it is where it is, or when it may begin.
function InStage({ job }: { job: Job }) {
  const now = useNow();
  const ready = job.stage === 'queued' ? millis(job.readyAt) : undefined;
  if (ready !== undefined && ready > now + 1_000) {
    return <span title={new Date(ready).toLocaleString()}>in {coarse(ready - now)}</span>;
  }
  const at = since(job);
  const then = millis(at);
  if (then === undefined) return '–';
  return (
    <time dateTime={at} title={new Date(then).toLocaleString()}>
      {coarse(now - then)}
    </time>
  );
}

/// Seconds only where they matter, and no shorter than one: a figure that races says nothing.
function coarse(ms: number): string {
  const whole = Math.max(0, ms);
  return duration(whole < 3_600_000 ? whole - (whole % 1_000) : whole - (whole % 60_000));
}
