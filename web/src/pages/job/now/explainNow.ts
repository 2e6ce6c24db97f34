import { queryOptions } from '@tanstack/react-query';
import { answer, api } from '../../../api/client';
import { keys } from '../../../api/queries';
import type { Job } from '../../../api/types';

/// Why a job waits can change without an event: others come and go.
const FLOOR = 15_000;

/// The explanation of the job as it is shown. One of an earlier stage would tell what is no longer so.
export const explainNowQuery = (job: Pick<Job, 'id' | 'stage' | 'rev'>) =>
  queryOptions({
    queryKey: [...keys.job(job.id), 'explain', job.stage, job.rev],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/fleet/jobs/{id}/explain', { params: { path: { id: job.id } }, signal })),
    refetchInterval: FLOOR,
    placeholderData: (before, query) => (query?.queryKey.at(-2) === job.stage ? before : undefined),
  });
