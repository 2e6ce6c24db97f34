import type { Job, Run } from '../../../api/types';

export function totals(runs: readonly Run[]): { usd: number; tokens: number } {
  return {
    usd: runs.reduce((sum, run) => sum + (run.report.costUsd ?? 0), 0),
    tokens: runs.reduce((sum, run) => sum + (run.report.tokens ?? 0), 0),
  };
}

export function outcomeTone(outcome: string): 'ok' | 'bad' | 'busy' | 'warn' | 'quiet' {
  if (outcome === 'succeeded') return 'ok';
  if (outcome === 'failed') return 'bad';
  if (outcome === 'running') return 'busy';
  return outcome === 'expired' || outcome === 'preempted' ? 'warn' : 'quiet';
}

/// An address that may be followed: https, and nothing hidden in it. A factory told it, so it is anyone's word.
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

/// The run whose work is up for review: what it handed over, or where it hands nothing over, the last one. A composite
/// has none of its own: that is 0.
export function judgedEpoch(job: Pick<Job, 'leaseEpoch' | 'result'>): number {
  return job.result?.leaseEpoch ?? job.leaseEpoch;
}
