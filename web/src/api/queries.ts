// What the page reads, each under one key. The live feed makes keys stale (live/freshen.ts); the intervals are for what
// changes without an event.

import { type QueryKey, queryOptions } from '@tanstack/react-query';
import { type Answered, answer, api, inProduct } from './client';
import type { Job } from './types';

/// Figures that change without an event (ages, heartbeats) are fetched this often.
const FLOOR = 15_000;

export const keys = {
  whoami: ['whoami'] as const,
  metrics: ['metrics'] as const,
  alerts: ['alerts'] as const,
  factories: ['factories'] as const,
  // Below the factories: what they report makes it stale.
  accounts: ['factories', 'accounts'] as const,
  capabilities: ['factories', 'capabilities'] as const,
  jobs: ['jobs'] as const,
  job: (id: string) => ['job', id] as const,
  dag: ['dag'] as const,
  budgets: ['budgets'] as const,
  budget: (product: string) => ['budgets', product] as const,
  pools: ['pools'] as const,
  pool: (name: string) => ['pools', name] as const,
  topics: ['topics'] as const,
  flags: ['flags'] as const,
  shadow: ['shadow'] as const,
  products: ['products'] as const,
  profiles: ['profiles'] as const,
  tokens: ['tokens'] as const,
  audit: ['audit'] as const,
};

/// What a key stands for: the answer of one call.
export function reads<T, K extends QueryKey>(
  queryKey: K,
  call: (init: { signal: AbortSignal }) => Promise<Answered<T>>,
  options: { staleTime?: number; refetchInterval?: number } = {},
) {
  return queryOptions({ queryKey, queryFn: ({ signal }) => answer(call({ signal })), ...options });
}

const FOR_GOOD = { staleTime: Number.POSITIVE_INFINITY };
export const POLLED = { refetchInterval: FLOOR };

export const whoamiQuery = () => reads(keys.whoami, (init) => api.GET('/api/fleet/whoami', init), FOR_GOOD);

/// For the labels of tokens; only admins may list them.
export const tokensQuery = () => reads(keys.tokens, (init) => api.GET('/api/fleet/tokens', init), FOR_GOOD);

export const metricsQuery = () => reads(keys.metrics, (init) => api.GET('/api/fleet/metrics', init), POLLED);

export const alertsQuery = () => reads(keys.alerts, (init) => api.GET('/api/fleet/alerts', init), POLLED);

export const factoriesQuery = () =>
  reads(keys.factories, (init) => api.GET('/api/fleet/factories', init), POLLED);

export const accountsQuery = () =>
  reads(keys.accounts, (init) => api.GET('/api/fleet/accounts', init), POLLED);

export const capabilitiesQuery = () =>
  reads(keys.capabilities, (init) => api.GET('/api/fleet/capabilities', init), POLLED);

export const jobQuery = (id: string) =>
  reads([...keys.job(id), 'job'], (init) =>
    api.GET('/api/fleet/jobs/{id}', { params: { path: { id } }, ...init }),
  );

export const runsQuery = (id: string) =>
  reads([...keys.job(id), 'runs'], (init) =>
    api.GET('/api/fleet/jobs/{id}/runs', { params: { path: { id } }, ...init }),
  );

export const conversationQuery = (id: string) =>
  reads([...keys.job(id), 'conversation'], (init) =>
    api.GET('/api/fleet/jobs/{id}/conversation', { params: { path: { id } }, ...init }),
  );

export const explainQuery = (id: string) =>
  reads(
    [...keys.job(id), 'explain'],
    (init) => api.GET('/api/fleet/jobs/{id}/explain', { params: { path: { id } }, ...init }),
    POLLED,
  );

export const artifactsQuery = (id: string) =>
  reads([...keys.job(id), 'artifacts'], (init) =>
    api.GET('/api/fleet/jobs/{id}/artifacts', { params: { path: { id } }, ...init }),
  );

export const dagQuery = (id: string) =>
  reads([...keys.dag, id], (init) =>
    api.GET('/api/fleet/jobs/{id}/dag', { params: { path: { id } }, ...init }),
  );

export const budgetsQuery = () => reads(keys.budgets, (init) => api.GET('/api/fleet/budgets', init), POLLED);

export const budgetQuery = (product: string) =>
  reads(
    [...keys.budget(product), 'budget'],
    (init) => api.GET('/api/fleet/budgets/{product}', { params: { path: { product } }, ...init }),
    POLLED,
  );

export const poolsQuery = () => reads(keys.pools, (init) => api.GET('/api/fleet/pools', init), POLLED);

export const poolQuery = (name: string) =>
  reads(
    keys.pool(name),
    (init) => api.GET('/api/fleet/pools/{name}', { params: { path: { name } }, ...init }),
    POLLED,
  );

/// Topic jobs are many and small: they have no events of their own.
export const topicsQuery = () =>
  reads(keys.topics, (init) => api.GET('/api/fleet/topics', init), { refetchInterval: 3_000 });

export const flagsQuery = () => reads(keys.flags, (init) => api.GET('/api/fleet/flags', init));

export const shadowQuery = () => reads(keys.shadow, (init) => api.GET('/api/fleet/shadow', init), POLLED);

export const productsQuery = () => reads(keys.products, (init) => api.GET('/api/fleet/products', init));

export const profilesQuery = (product?: string) =>
  reads([...keys.profiles, product ?? ''], (init) =>
    api.GET('/api/fleet/profiles', { params: { header: inProduct(product) }, ...init }),
  );

export const markdownQuery = (text: string) =>
  queryOptions({
    queryKey: ['markdown', text],
    queryFn: async ({ signal }) => {
      const { html } = await answer(api.POST('/api/fleet/markdown', { body: { texts: [text] }, signal }));
      return html[0] ?? '';
    },
    ...FOR_GOOD,
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
    ...FOR_GOOD,
  });

/// The explanation of the job in its current stage. One of an earlier stage would be wrong.
export const explainNowQuery = (job: Pick<Job, 'id' | 'stage' | 'rev'>) =>
  queryOptions({
    queryKey: [...keys.job(job.id), 'explain', job.stage, job.rev],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/fleet/jobs/{id}/explain', { params: { path: { id: job.id } }, signal })),
    ...POLLED,
    placeholderData: (before, query) => (query?.queryKey.at(-2) === job.stage ? before : undefined),
  });
