// The columns of the job table, in order. The header, the rows, the gaps between them and the cards of a narrow screen are
// all made from this list: a column is added here and nowhere else.

import type { ReactNode } from 'react';
import type { Job } from '../../api/types';
import { labelOf, PRIORITY } from '../../api/vocabulary';
import { Time } from '../../ui/Ago';
import { coarse, millis } from '../../ui/format';
import { usePlainJobLink } from '../../ui/links';
import { StageBadge } from '../../ui/StageBadge';
import { useNow } from '../../ui/useNow';
import { visible } from '../../ui/visible';
import classes from './JobTable.module.css';
import { reposOf, since } from './rows';

interface CellProps {
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
  {
    id: 'stage',
    header: 'Stage',
    width: 112,
    cell: ({ job }) => <StageBadge stage={job.stage} needsInput={job.needsInput} />,
  },
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
    cell: ({ job }) => reposOf(job),
    title: (job) => reposOf(job),
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

const HOUR = 3_600_000;

/// How long the job has been in its stage, or when it may start.
function InStage({ job }: CellProps) {
  const now = useNow();
  const ready = job.stage === 'queued' ? millis(job.readyAt) : undefined;
  if (ready !== undefined && ready > now + 1_000) {
    return <span title={new Date(ready).toLocaleString()}>in {coarse(ready - now, HOUR)}</span>;
  }
  const at = since(job);
  const then = millis(at);
  if (then === undefined) return '–';
  return <Time at={at}>{coarse(now - then, HOUR)}</Time>;
}

/// Rows come and go by the dozen while somebody scrolls.
function JobLink({ job, activate }: Pick<CellProps, 'job' | 'activate'>) {
  const link = usePlainJobLink(job.id);
  return (
    <a
      href={link.href}
      onClick={link.onClick}
      className={classes.link}
      data-job={job.id}
      title={visible(job.name)}
      onFocus={() => activate(job.id)}
    >
      {visible(job.name)}
    </a>
  );
}
