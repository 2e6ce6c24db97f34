import type { Job, Run } from '../../api/types';

/// The run that the address names; else the one whose result is up for review; else the newest.
export function chosenRun(job: Job, newestFirst: readonly Run[], epoch: number | undefined): Run | undefined {
  const wanted = epoch ?? (job.stage === 'review' ? job.result?.leaseEpoch : undefined);
  return newestFirst.find((run) => run.leaseEpoch === wanted) ?? newestFirst[0];
}
