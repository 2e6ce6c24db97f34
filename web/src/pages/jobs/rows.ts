// The rows of the table: pages of jobs, newest first, changed in place. Ids sort by the time of submission, so an id says
// where its row belongs.

import type { InfiniteData } from '@tanstack/react-query';
import type { FeedEvent, Job, JobPage } from '../../api/types';
import { isHeld } from '../../api/vocabulary';
import { millis } from '../../ui/format';

export type Pages = InfiniteData<JobPage>;

export function rowsOf(pages: Pages | undefined): Job[] {
  return pages?.pages.flatMap((page) => page.jobs) ?? [];
}

/// Rows that changed, each in its place. The same pages where none did.
export function changed(pages: Pages, change: ReadonlyMap<string, (job: Job) => Job>): Pages {
  let any = false;
  const next = pages.pages.map((page) => {
    if (!page.jobs.some((job) => change.has(job.id))) return page;
    any = true;
    return { ...page, jobs: page.jobs.map((job) => change.get(job.id)?.(job) ?? job) };
  });
  return any ? { ...pages, pages: next } : pages;
}

/// The fetched job, unless the row is newer already, for example by an event that overtook the answer.
export function newer(read: Job): (job: Job) => Job {
  const readAt = millis(read.updatedAt) ?? 0;
  return (job) => {
    if (read.rev !== job.rev) return read.rev > job.rev ? read : job;
    return readAt >= (millis(job.updatedAt) ?? 0) ? read : job;
  };
}

/// New jobs, each in its place. Those past the end of the loaded pages come with their page.
export function withArrivals(pages: Pages, arrivals: readonly Job[]): Pages {
  const known = new Set(rowsOf(pages).map((job) => job.id));
  let rest = arrivals.filter((job) => !known.has(job.id)).sort(newestFirst);
  if (rest.length === 0) return pages;
  const next = pages.pages.map((page, index) => {
    const isEnd = index === pages.pages.length - 1 && !page.nextCursor;
    const last = page.jobs.at(-1);
    const here = rest.filter((job) => isEnd || (last !== undefined && job.id > last.id));
    if (here.length === 0) return page;
    rest = rest.filter((job) => !here.includes(job));
    return { ...page, jobs: [...page.jobs, ...here].sort(newestFirst) };
  });
  return { ...pages, pages: next };
}

/// Appends the next page, if the last one is still the one it was fetched for.
export function withPage(pages: Pages, cursor: string, page: JobPage): Pages {
  if (pages.pages.at(-1)?.nextCursor !== cursor) return pages;
  const known = new Set(rowsOf(pages).map((job) => job.id));
  const next = { ...page, jobs: page.jobs.filter((job) => !known.has(job.id)) };
  return { pages: [...pages.pages, next], pageParams: [...pages.pageParams, cursor] };
}

function newestFirst(a: Job, b: Job): number {
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0;
}

/// Only the newest page, to be fetched again: reloading all would take a request for each.
export function firstPage(pages: Pages | undefined): Pages | undefined {
  return pages && { pages: pages.pages.slice(0, 1), pageParams: pages.pageParams.slice(0, 1) };
}

/// What an event says about a row, at once; the whole job is fetched a moment later.
export function afterEvent(event: FeedEvent): (job: Job) => Job {
  return (job) => {
    const data: Record<string, unknown> = event.data;
    const factoryId = typeof data.factoryId === 'string' ? data.factoryId : undefined;
    if (event.type === 'job.targeted') return { ...job, targetFactoryId: factoryId ?? job.targetFactoryId };
    if (!event.to || event.to === job.stage) return job;
    return {
      ...job,
      stage: event.to,
      updatedAt: event.at,
      enqueuedAt: event.to === 'queued' ? event.at : job.enqueuedAt,
      targetFactoryId: event.to === 'queued' ? job.targetFactoryId : null,
      lease: isHeld(event.to) ? (job.lease ?? leaseOf(factoryId, event.at)) : null,
    };
  };
}

function leaseOf(factoryId: string | undefined, at: string): Job['lease'] {
  return factoryId === undefined ? null : { factoryId, grantedAt: at, expiresAt: at };
}

/// Since when it is in its stage, as closely as a job says.
export function since(job: Job): string {
  if (job.lease) return job.lease.grantedAt;
  return job.stage === 'queued' ? job.enqueuedAt : job.updatedAt;
}

/// All of them, where it works on several.
export function reposOf(job: Job): string | undefined {
  return job.repos?.length ? job.repos.join(', ') : (job.repo ?? undefined);
}
