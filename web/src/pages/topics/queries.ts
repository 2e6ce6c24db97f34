import { infiniteQueryOptions } from '@tanstack/react-query';
import { answer, api, inProduct } from '../../api/client';
import { keys } from '../../api/queries';
import type { components } from '../../api/schema';
import { listed, parseExact } from './payload';
import type { TopicState } from './search';

type TopicJobPage = components['schemas']['TopicJobPage'];

const PAGE = '50';

/// Jobs of a topic in one state, newest first. Topic jobs have no events, so the first pages are looked at often; of a
/// long list that somebody reads, only when they ask.
export const topicJobsQuery = (product: string, name: string, state: TopicState) =>
  infiniteQueryOptions({
    queryKey: [...keys.topics, product, name, state],
    queryFn: async ({ signal, pageParam }) => {
      const text = await answer(
        api.GET('/api/fleet/topics/{name}/jobs', {
          params: {
            path: { name },
            query: { state, limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) },
            header: inProduct(product),
          },
          parseAs: 'text',
          signal,
        }),
      );
      const page = parseExact(text) as TopicJobPage;
      return { jobs: page.jobs.map(listed), nextCursor: page.nextCursor };
    },
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor ?? undefined,
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 0) <= 2 ? 3_000 : false),
  });
