// What an operator can do to a job, and when: the same table as the coordinator's. It refuses what does not fit, so this
// one only keeps buttons away that would be refused.

import { answer, api } from '../../api/client';
import type { Job, Role, Stage } from '../../api/types';
import { shellWord } from '../../ui/format';

export const JOB_ACTIONS = ['ship', 'requeue', 'reject', 'cancel'] as const;
export type JobActionName = (typeof JOB_ACTIONS)[number];

export interface JobAction {
  name: JobActionName;
  /// What the button says.
  label: string;
  /// What the button of the question says.
  yes: string;
  /// What was done, in the past tense: "shipped".
  done: string;
  /// What it means, for whoever is asked.
  about: string;
  /// The same of several.
  aboutMany: string;
  /// Cannot be taken back.
  danger: boolean;
  /// The least role that may.
  role: Role;
  from: readonly Stage[];
}

export const ACTIONS: Record<JobActionName, JobAction> = {
  ship: {
    name: 'ship',
    label: 'Ship',
    yes: 'Ship it',
    done: 'shipped',
    about: 'It is done, and its result is merged where the job says so.',
    aboutMany: 'They are done, and their results are merged where the jobs say so.',
    danger: false,
    role: 'operator',
    from: ['testing'],
  },
  requeue: {
    name: 'requeue',
    label: 'Requeue',
    yes: 'Queue it again',
    done: 'queued again',
    about: 'It is run once more, and its attempts start over.',
    aboutMany: 'They are run once more, and their attempts start over.',
    danger: false,
    role: 'operator',
    from: ['failed', 'review'],
  },
  reject: {
    name: 'reject',
    label: 'Reject',
    yes: 'Reject it',
    done: 'rejected',
    about: 'It fails with the reason "rejected". It can be queued again later.',
    aboutMany: 'They fail with the reason "rejected". They can be queued again later.',
    danger: true,
    role: 'operator',
    from: ['review'],
  },
  cancel: {
    name: 'cancel',
    label: 'Cancel',
    yes: 'Cancel it',
    done: 'cancelled',
    about: 'It stops, whatever it is doing, and so does everything below it. This is final.',
    aboutMany: 'They stop, whatever they are doing, and so does everything below them. This is final.',
    danger: true,
    role: 'operator',
    from: ['queued', 'blocked', 'assigned', 'building', 'review', 'testing', 'failed'],
  },
};

type Steered = Pick<Job, 'id' | 'stage' | 'rev'>;

export function isLegal(action: JobActionName, stage: string): boolean {
  return ACTIONS[action].from.some((from) => from === stage);
}

/// The actions that make sense for a job where it stands now.
export function jobActions(job: Pick<Job, 'stage'>): JobAction[] {
  return JOB_ACTIONS.filter((name) => isLegal(name, job.stage)).map((name) => ACTIONS[name]);
}

/// The same as a command. `giga job …` takes one job, so several go through xargs.
export function actionCommand(action: JobActionName, ids: readonly string[], reason?: string): string {
  const why = reason ? ` -m ${shellWord(reason)}` : '';
  const [only, ...more] = ids;
  if (only === undefined) return '';
  if (more.length === 0) return `giga job ${action} ${shellWord(only)}${why}`;
  return `printf '%s\\n' ${ids.map(shellWord).join(' ')} | xargs -n1 giga job ${action}${why}`;
}

/// Does it. For a single job that somebody looks at, only if it is still as they see it; in a batch the stage decides.
export function act(
  action: JobActionName,
  job: Steered,
  options: { reason?: string; onlyIfUnchanged?: boolean } = {},
): Promise<Job> {
  const { reason, onlyIfUnchanged = true } = options;
  return answer(
    api.POST('/api/fleet/jobs/{id}/actions/{action}', {
      params: {
        path: { id: job.id, action },
        header: onlyIfUnchanged ? { 'if-match': `"rev-${job.rev}"` } : {},
      },
      body: reason ? { reason } : {},
    }),
  );
}
