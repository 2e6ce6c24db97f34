// What the page reads, each under one key. The live feed makes keys stale (live/freshen.ts); the intervals are for what
// changes without an event.

import { queryOptions } from '@tanstack/react-query';
import { answer, api, inProduct } from './client';
import type { Job } from './types';

/// Figures that change without an event (ages, heartbeats) are fetched this often.
const FLOOR = 15_000;

export const keys = {
  whoami: ['whoami'] as const,
  metrics: ['metrics'] as const,
  alerts: ['alerts'] as const,
  factories: ['factories'] as const,
  jobs: ['jobs'] as const,
  job: (id: string) => ['job', id] as const,
  dag: ['dag'] as const,
  budgets: ['budgets'] as const,
  budget: (product: string) => ['budgets', product] as const,
  topics: ['topics'] as const,
  flags: ['flags'] as const,
  shadow: ['shadow'] as const,
  products: ['products'] as const,
  profiles: ['profiles'] as const,
  tokens: ['tokens'] as const,
};

export const whoamiQuery = () =>
  queryOptions({
    queryKey: keys.whoami,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/whoami', { signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

/// For the labels of tokens; only admins may list them.
export const tokensQuery = () =>
  queryOptions({
    queryKey: keys.tokens,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/tokens', { signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const metricsQuery = () =>
  queryOptions({
    queryKey: keys.metrics,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/metrics', { signal })),
    refetchInterval: FLOOR,
  });

export const alertsQuery = () =>
  queryOptions({
    queryKey: keys.alerts,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/alerts', { signal })),
    refetchInterval: FLOOR,
  });

export const factoriesQuery = () =>
  queryOptions({
    queryKey: keys.factories,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/factories', { signal })),
    refetchInterval: FLOOR,
  });

export const jobQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.job(id), 'job'],
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/jobs/{id}', { params: { path: { id } }, signal })),
  });

export const runsQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.job(id), 'runs'],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/fleet/jobs/{id}/runs', { params: { path: { id } }, signal })),
  });

export const explainQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.job(id), 'explain'],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/fleet/jobs/{id}/explain', { params: { path: { id } }, signal })),
    refetchInterval: FLOOR,
  });

export const artifactsQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.job(id), 'artifacts'],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/fleet/jobs/{id}/artifacts', { params: { path: { id } }, signal })),
  });

export const dagQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.dag, id],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/fleet/jobs/{id}/dag', { params: { path: { id } }, signal })),
  });

export const budgetsQuery = () =>
  queryOptions({
    queryKey: keys.budgets,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/budgets', { signal })),
    refetchInterval: FLOOR,
  });

export const budgetQuery = (product: string) =>
  queryOptions({
    queryKey: [...keys.budget(product), 'budget'],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/fleet/budgets/{product}', { params: { path: { product } }, signal })),
    refetchInterval: FLOOR,
  });

export const topicsQuery = () =>
  queryOptions({
    queryKey: keys.topics,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/topics', { signal })),
    // Topic jobs are many and small: they have no events of their own.
    refetchInterval: 3_000,
  });

export const flagsQuery = () =>
  queryOptions({
    queryKey: keys.flags,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/flags', { signal })),
  });

export const shadowQuery = () =>
  queryOptions({
    queryKey: keys.shadow,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/shadow', { signal })),
    refetchInterval: FLOOR,
  });

export const productsQuery = () =>
  queryOptions({
    queryKey: keys.products,
    queryFn: ({ signal }) => answer(api.GET('/api/fleet/products', { signal })),
  });

export const profilesQuery = (product?: string) =>
  queryOptions({
    queryKey: [...keys.profiles, product ?? ''],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/fleet/profiles', { params: { header: inProduct(product) }, signal })),
  });

export const markdownQuery = (text: string) =>
  queryOptions({
    queryKey: ['markdown', text],
    queryFn: async ({ signal }) => {
      const { html } = await answer(api.POST('/api/fleet/markdown', { body: { texts: [text] }, signal }));
      return html[0] ?? '';
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

/// A file as text. Its content never changes, so it is fetched once.
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

/// The explanation of the job in its current stage. One of an earlier stage would be wrong.
export const explainNowQuery = (job: Pick<Job, 'id' | 'stage' | 'rev'>) =>
  queryOptions({
    queryKey: [...keys.job(job.id), 'explain', job.stage, job.rev],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/fleet/jobs/{id}/explain', { params: { path: { id: job.id } }, signal })),
    refetchInterval: FLOOR,
    placeholderData: (before, query) => (query?.queryKey.at(-2) === job.stage ? before : undefined),
  });
