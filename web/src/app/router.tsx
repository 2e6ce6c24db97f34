// Every page and its search parameters. All but the first are loaded when they are opened.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router';
import { FleetPage } from '../pages/fleet/FleetPage';
import { NotFound, PageCrashed, PageLoading } from './Fallbacks';
import { withRetry } from './loadChunk';
import { Shell } from './Shell';
import { budgetSearch, jobSearch, jobsSearch, newJobSearch, topicSearch } from './search';

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFound,
  errorComponent: PageCrashed,
});

const inShell = { getParentRoute: () => root };
const page: typeof lazyRouteComponent = (load, name) => lazyRouteComponent(withRetry(load), name);

const fleet = createRoute({ ...inShell, path: '/', component: FleetPage });

const jobs = createRoute({
  ...inShell,
  path: '/jobs',
  validateSearch: jobsSearch,
  component: page(() => import('../pages/jobs/JobsPage'), 'JobsPage'),
});

const newJob = createRoute({
  ...inShell,
  path: '/new',
  validateSearch: newJobSearch,
  component: page(() => import('../pages/new-job/NewJobPage'), 'NewJobPage'),
});

const job = createRoute({
  ...inShell,
  path: '/jobs/$id',
  validateSearch: jobSearch,
  component: page(() => import('../pages/job/JobPage'), 'JobPage'),
});

const budgets = createRoute({
  ...inShell,
  path: '/budgets',
  component: page(() => import('../pages/budgets/BudgetsPage'), 'BudgetsPage'),
});

const budget = createRoute({
  ...inShell,
  path: '/budgets/$product',
  validateSearch: budgetSearch,
  component: page(() => import('../pages/budgets/BudgetPage'), 'BudgetPage'),
});

const accounts = createRoute({
  ...inShell,
  path: '/accounts',
  component: page(() => import('../pages/accounts/AccountsPage'), 'AccountsPage'),
});

const account = createRoute({
  ...inShell,
  path: '/accounts/$account',
  component: page(() => import('../pages/accounts/AccountsPage'), 'AccountsPage'),
});

const capabilities = createRoute({
  ...inShell,
  path: '/capabilities',
  component: page(() => import('../pages/capabilities/CapabilitiesPage'), 'CapabilitiesPage'),
});

const pools = createRoute({
  ...inShell,
  path: '/pools',
  component: page(() => import('../pages/pools/PoolsPage'), 'PoolsPage'),
});

const pool = createRoute({
  ...inShell,
  path: '/pools/$name',
  component: page(() => import('../pages/pools/PoolPage'), 'PoolPage'),
});

const topics = createRoute({
  ...inShell,
  path: '/topics',
  component: page(() => import('../pages/topics/TopicsPage'), 'TopicsPage'),
});

const topic = createRoute({
  ...inShell,
  path: '/topics/$product/$name',
  validateSearch: topicSearch,
  component: page(() => import('../pages/topics/TopicPage'), 'TopicPage'),
});

const flags = createRoute({
  ...inShell,
  path: '/flags',
  component: page(() => import('../pages/flags/FlagsPage'), 'FlagsPage'),
});

const audit = createRoute({
  ...inShell,
  path: '/audit',
  component: page(() => import('../pages/audit/AuditPage'), 'AuditPage'),
});

export const router = createRouter({
  routeTree: root.addChildren([
    fleet,
    jobs,
    newJob,
    job,
    budgets,
    budget,
    accounts,
    account,
    capabilities,
    pools,
    pool,
    topics,
    topic,
    flags,
    audit,
  ]),
  defaultPreload: 'intent',
  defaultErrorComponent: PageCrashed,
  defaultPendingComponent: PageLoading,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
