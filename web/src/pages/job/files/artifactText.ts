import { queryOptions } from '@tanstack/react-query';
import { answer, api } from '../../../api/client';

/// The bytes of a file as text. What stands under an id never changes, so it is fetched once.
export const artifactTextQuery = (id: string) =>
  queryOptions({
    queryKey: ['artifact', id],
    queryFn: async ({ signal }): Promise<string> => {
      const call = api.GET('/api/fleet/artifacts/{id}', {
        params: { path: { id } },
        parseAs: 'text',
        signal,
      });
      return String(await answer(call));
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
