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

const fleet = createRoute({ getParentRoute: () => root, path: '/', component: FleetPage });

const jobs = createRoute({
  getParentRoute: () => root,
  path: '/jobs',
  validateSearch: jobsSearch,
  component: lazyRouteComponent(
    withRetry(() => import('../pages/jobs/JobsPage')),
    'JobsPage',
  ),
});

const newJob = createRoute({
  getParentRoute: () => root,
  path: '/new',
  validateSearch: newJobSearch,
  component: lazyRouteComponent(
    withRetry(() => import('../pages/new-job/NewJobPage')),
    'NewJobPage',
  ),
});

const job = createRoute({
  getParentRoute: () => root,
  path: '/jobs/$id',
  validateSearch: jobSearch,
  component: lazyRouteComponent(
    withRetry(() => import('../pages/job/JobPage')),
    'JobPage',
  ),
});

const budgets = createRoute({
  getParentRoute: () => root,
  path: '/budgets',
  component: lazyRouteComponent(
    withRetry(() => import('../pages/budgets/BudgetsPage')),
    'BudgetsPage',
  ),
});

const budget = createRoute({
  getParentRoute: () => root,
  path: '/budgets/$product',
  validateSearch: budgetSearch,
  component: lazyRouteComponent(
    withRetry(() => import('../pages/budgets/BudgetPage')),
    'BudgetPage',
  ),
});

const topics = createRoute({
  getParentRoute: () => root,
  path: '/topics',
  component: lazyRouteComponent(
    withRetry(() => import('../pages/topics/TopicsPage')),
    'TopicsPage',
  ),
});

const topic = createRoute({
  getParentRoute: () => root,
  path: '/topics/$product/$name',
  validateSearch: topicSearch,
  component: lazyRouteComponent(
    withRetry(() => import('../pages/topics/TopicPage')),
    'TopicPage',
  ),
});

const flags = createRoute({
  getParentRoute: () => root,
  path: '/flags',
  component: lazyRouteComponent(
    withRetry(() => import('../pages/flags/FlagsPage')),
    'FlagsPage',
  ),
});

export const router = createRouter({
  routeTree: root.addChildren([fleet, jobs, newJob, job, budgets, budget, topics, topic, flags]),
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
