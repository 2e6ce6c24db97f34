import type { Job, Run } from '../../../api/types';

export function totals(runs: readonly Run[]): { usd: number; tokens: number } {
  return {
    usd: runs.reduce((sum, run) => sum + (run.report.costUsd ?? 0), 0),
    tokens: runs.reduce((sum, run) => sum + (run.report.tokens ?? 0), 0),
  };
}

/// An address that may be followed: https, without credentials. A factory reported it, so anyone may have written it.
export function webLink(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const parsed = new URL(url);
  return parsed.protocol === 'https:' && parsed.username === '' && parsed.password === ''
    ? parsed.href
    : undefined;
}

/// The run that the address names; else the one whose result is up for review; else the newest.
export function chosenRun(job: Job, newestFirst: readonly Run[], epoch: number | undefined): Run | undefined {
  const wanted = epoch ?? (job.stage === 'review' ? job.result?.leaseEpoch : undefined);
  return newestFirst.find((run) => run.leaseEpoch === wanted) ?? newestFirst[0];
}

/// The run whose result is up for review, or the last one. A group has none of its own: that is 0.
export function reviewedEpoch(job: Pick<Job, 'leaseEpoch' | 'result'>): number {
  return job.result?.leaseEpoch ?? job.leaseEpoch;
}
