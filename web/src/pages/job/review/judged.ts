import type { Job } from '../../../api/types';

/// The run whose work is up for review: what it handed over, or where it hands nothing over, the last one. A composite
/// has none of its own: that is 0.
export function judgedEpoch(job: Pick<Job, 'leaseEpoch' | 'result'>): number {
  return job.result?.leaseEpoch ?? job.leaseEpoch;
}
