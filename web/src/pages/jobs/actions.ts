// What an operator can do to a job.

import { answer, api } from '../../api/client';
import type { Job } from '../../api/types';
import { type OperatorAction, type Role, STAGE, type Stage, wordsOf } from '../../api/vocabulary';
import { shellWord } from '../../ui/format';

export interface JobAction {
  name: OperatorAction;
  /// What the button says.
  label: string;
  /// What the button of the question says, where that is not the label.
  yes?: string;
  /// What was done, in the past tense: "shipped".
  done: string;
  /// What it means, for one job and for several.
  about: string;
  aboutMany: string;
  /// Cannot be undone.
  danger: boolean;
  /// The role it takes at least.
  role: Role;
}

/// When each of them is possible is in the table of stages (api/vocabulary.ts).
export const ACTIONS: Record<OperatorAction, JobAction> = {
  ship: {
    name: 'ship',
    label: 'Ship',
    done: 'shipped',
    about: 'The job is done, and its result is merged if the manifest asks for it.',
    aboutMany: 'The jobs are done, and their results are merged if their manifests ask for it.',
    danger: false,
    role: 'operator',
  },
  requeue: {
    name: 'requeue',
    label: 'Requeue',
    done: 'requeued',
    about: 'The job runs again, and its attempts start over.',
    aboutMany: 'The jobs run again, and their attempts start over.',
    danger: false,
    role: 'operator',
  },
  reject: {
    name: 'reject',
    label: 'Reject',
    done: 'rejected',
    about: 'The job fails with the reason "rejected". It can be requeued later.',
    aboutMany: 'The jobs fail with the reason "rejected". They can be requeued later.',
    danger: true,
    role: 'operator',
  },
  cancel: {
    name: 'cancel',
    label: 'Cancel',
    // Beside "Keep", "Cancel" alone could mean either.
    yes: 'Cancel job',
    done: 'cancelled',
    about: 'The job stops, and so do all jobs below it. This cannot be undone.',
    aboutMany: 'The jobs stop, and so do all jobs below them. This cannot be undone.',
    danger: true,
    role: 'operator',
  },
};
export const JOB_ACTIONS = wordsOf(ACTIONS);

type Steered = Pick<Job, 'id' | 'stage' | 'rev'>;

export function isLegal(action: OperatorAction, stage: Stage): boolean {
  return STAGE[stage]?.actions.includes(action) ?? false;
}

/// The actions that are possible in the stage of the job. Where only the merge failed, the word to ship is enough.
export function jobActions(job: Pick<Job, 'stage' | 'failure'>): JobAction[] {
  const onlyMerge = job.stage === 'failed' && job.failure?.reason.startsWith('merge_');
  const isPossible = (name: OperatorAction) => isLegal(name, job.stage) || (name === 'ship' && onlyMerge);
  return JOB_ACTIONS.filter(isPossible).map((name) => ACTIONS[name]);
}

/// The same as a command. `giga job …` takes one job, so several go through xargs.
export function actionCommand(action: OperatorAction, ids: readonly string[]): string {
  const [only, ...more] = ids;
  if (only === undefined) return '';
  if (more.length === 0) return `giga job ${action} ${shellWord(only)}`;
  return `printf '%s\\n' ${ids.map(shellWord).join(' ')} | xargs -n1 giga job ${action}`;
}

/// For a single job that somebody looks at, only if it is still as they see it; in a batch the stage decides.
export function act(action: OperatorAction, job: Steered, { onlyIfUnchanged = true } = {}): Promise<Job> {
  return answer(
    api.POST('/api/fleet/jobs/{id}/actions/{action}', {
      params: {
        path: { id: job.id, action },
        header: onlyIfUnchanged ? { 'if-match': `"rev-${job.rev}"` } : {},
      },
      body: {},
    }),
  );
}
