// The columns of the job table, in order. The header, the rows, the gaps between them and the cards of a narrow screen are
// all made from this list: a column is added here and nowhere else.

import { useRouter } from '@tanstack/react-router';
import type { MouseEvent, ReactNode } from 'react';
import type { Job } from '../../api/types';
import { labelOf, PRIORITY } from '../../api/vocabulary';
import { duration, millis } from '../../ui/format';
import { StageBadge } from '../../ui/StageBadge';
import { useNow } from '../../ui/useNow';
import { visible } from '../../ui/visible';
import classes from './JobTable.module.css';
import { since } from './rows';

export interface CellProps {
  job: Job;
  /// Why the row is no longer part of the list, if it is not.
  stray: string | undefined;
  activate(id: string): void;
}

interface Column {
  id: string;
  header: string;
  cell(props: CellProps): ReactNode;
  /// In pixels; a column without one takes what is left.
  width?: number;
  align?: 'right';
  /// Shown on wide screens only.
  wideOnly?: boolean;
  /// Its place on a card; otherwise in the order of the list.
  card?: { area: string; align?: 'right' };
  /// The whole text, where the cell may cut it short.
  title?(job: Job): string | undefined;
}

export const COLUMNS: readonly Column[] = [
  { id: 'stage', header: 'Stage', width: 112, cell: ({ job }) => <StageBadge stage={job.stage} /> },
  {
    id: 'priority',
    header: 'Priority',
    width: 76,
    cell: ({ job }) => (
      <span className={classes.priority} data-tone={PRIORITY[job.priority]?.tone}>
        {labelOf(PRIORITY, job.priority)}
      </span>
    ),
  },
  {
    id: 'name',
    header: 'Name',
    card: { area: '2 / 2 / 3 / -1' },
    cell: ({ job, stray, activate }) => (
      <>
        <JobLink job={job} activate={activate} />
        {stray && <span className={classes.stray}>{stray}</span>}
      </>
    ),
  },
  {
    id: 'product',
    header: 'Product',
    width: 128,
    card: { area: '3 / 2 / 4 / 4' },
    cell: ({ job }) => job.productId,
    title: (job) => job.productId,
  },
  {
    id: 'repo',
    header: 'Repository',
    width: 128,
    wideOnly: true,
    cell: ({ job }) => job.repo,
    title: (job) => job.repo ?? undefined,
  },
  {
    id: 'factory',
    header: 'Factory',
    width: 128,
    card: { area: '3 / 4 / 4 / -1', align: 'right' },
    cell: Placement,
  },
  { id: 'since', header: 'In stage', width: 104, card: { area: '1 / 5' }, cell: InStage },
  {
    id: 'attempts',
    header: 'Failed attempts',
    width: 120,
    align: 'right',
    wideOnly: true,
    cell: ({ job }) => job.attempts,
  },
];

/// Where the job runs, or which factory it is offered to.
function Placement({ job }: CellProps) {
  if (job.lease) return <span title={`running on ${job.lease.factoryId}`}>{job.lease.factoryId}</span>;
  if (job.stage !== 'queued' || !job.targetFactoryId) return null;
  return <span title={`offered to ${job.targetFactoryId}`}>→ {job.targetFactoryId}</span>;
}

/// How long the job has been in its stage, or when it may start.
function InStage({ job }: CellProps) {
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

/// Seconds only where they matter, and never fractions.
function coarse(ms: number): string {
  const whole = Math.max(0, ms);
  return duration(whole < 3_600_000 ? whole - (whole % 1_000) : whole - (whole % 60_000));
}

/// The router's own link computes its address and subscribes to the router, each for itself: too much for rows that come
/// and go by the dozen while somebody scrolls.
function JobLink({ job, activate }: Pick<CellProps, 'job' | 'activate'>) {
  const router = useRouter();
  const open = (event: MouseEvent) => {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    void router.navigate({ to: '/jobs/$id', params: { id: job.id } });
  };
  return (
    <a
      href={`/jobs/${encodeURIComponent(job.id)}`}
      className={classes.link}
      data-job={job.id}
      title={visible(job.name)}
      onClick={open}
      onFocus={() => activate(job.id)}
    >
      {visible(job.name)}
    </a>
  );
}
