// One action for many jobs. Each is its own call: a job that fails does not affect the others.

import { Problem } from '../../api/problem';
import type { Job } from '../../api/types';
import type { OperatorAction } from '../../api/vocabulary';
import { count, plural } from '../../ui/format';
import { visible } from '../../ui/visible';
import { act } from './actions';

/// Does not flood the coordinator, and a browser allows six connections.
const AT_ONCE = 4;

export interface Outcome {
  done: Job[];
  failed: { job: Job; why: string }[];
  /// Not tried: somebody stopped it.
  left: Job[];
}

export interface BatchOptions {
  signal?: AbortSignal;
  progress?(finished: number): void;
  call?: typeof act;
}

export async function runBatch(
  action: OperatorAction,
  jobs: readonly Job[],
  { signal, progress, call = act }: BatchOptions = {},
): Promise<Outcome> {
  const outcome: Outcome = { done: [], failed: [], left: [] };
  const queue = [...jobs];
  const worker = async () => {
    for (let job = queue.shift(); job; job = queue.shift()) {
      if (signal?.aborted) {
        outcome.left.push(job);
        continue;
      }
      try {
        // The rows may be slightly out of date. The coordinator checks whether the stage allows it.
        outcome.done.push(await call(action, job, { onlyIfUnchanged: false }));
      } catch (error) {
        outcome.failed.push({ job, why: Problem.from(error).message });
      }
      progress?.(outcome.done.length + outcome.failed.length);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, queue.length) }, worker));
  return outcome;
}

/// The names that fit a notification.
const NAMED = 3;

/// What was not done, in short, if anything.
export function undone({ done, failed, left }: Outcome): { title: string; why: string } | undefined {
  const not = failed.length + left.length;
  if (not === 0) return undefined;
  const lines = failed.slice(0, NAMED).map(({ job, why }) => `${visible(job.name)}: ${why}`);
  if (failed.length > NAMED) lines.push(`${count(failed.length - NAMED)} more failed`);
  if (left.length > 0) lines.push(`${plural(left.length, 'job')} skipped: stopped by you`);
  return { title: `${count(not)} of ${plural(not + done.length, 'job')} not done`, why: lines.join('; ') };
}
