import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, renderHook } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { FeedEvent, Job } from '../../api/types';
import type { EventType, Stage } from '../../api/vocabulary';
import type { JobsSearch } from '../../app/search';
import { LiveProvider } from '../../live/LiveProvider';
import { eventOf, idOf, job } from '../../test/things';
import { NEW_JOBS_DELAY, REFETCH_DELAY } from './follow';
import { TIDY_AFTER, useJobList, useNextPage, useTidying } from './useJobList';

/// The jobs as the coordinator has them, and how long it takes to answer for a page below the first.
let jobs: Map<string, Job>;
let slowness: number;
let listReads: number;
let tell: (event: FeedEvent) => void;

const PAGE = 5;

function page(url: URL): { jobs: Job[]; nextCursor?: string } {
  const { id, cursor, stage } = Object.fromEntries(url.searchParams);
  const found = [...jobs.values()]
    .filter((one) => (!id || id.split(',').includes(one.id)) && (!stage || one.stage === stage))
    .filter((one) => !cursor || one.id < cursor)
    .sort((a, b) => (a.id < b.id ? 1 : -1));
  if (!id && !cursor) listReads += 1;
  const here = found.slice(0, id ? found.length : PAGE);
  return { jobs: here, nextCursor: here.length < found.length ? here.at(-1)?.id : undefined };
}

async function coordinator(asked: string | Request): Promise<Response> {
  if (typeof asked === 'string') {
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => {
        tell = (event) => stream.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`));
      },
    });
    return new Response(body, { status: 200 });
  }
  const url = new URL(asked.url);
  // What it answers is what was so when it was asked.
  const answer = page(url);
  if (url.searchParams.has('cursor') && slowness > 0) {
    await new Promise((settle) => setTimeout(settle, slowness));
  }
  return Response.json(answer);
}

let client: QueryClient;
const later = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));
const wrapper = ({ children }: { children: ReactNode }) => (
  <QueryClientProvider client={client}>
    <LiveProvider token="giga_secret123">{children}</LiveProvider>
  </QueryClientProvider>
);

/// A page that shows all its rows. `below` says how many are left to scroll to.
function shown(search: JobsSearch, first: { below: number; isCalm: boolean }) {
  return renderHook(
    ({ below, isCalm }) => {
      const list = useJobList(search);
      useNextPage(list, below);
      useTidying(list, isCalm);
      list.look(list.rows.map((row) => row.id));
      return list;
    },
    { wrapper, initialProps: first },
  );
}

async function happens(n: number, type: EventType, stage: Stage): Promise<void> {
  const before = jobs.get(idOf(n)) ?? job(n, { rev: 0 });
  const at = '2026-01-01T00:01:00Z';
  jobs.set(before.id, { ...before, stage, rev: before.rev + 1, updatedAt: at });
  await act(async () => tell(eventOf(n, type, { to: stage, at })));
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('fetch', coordinator);
  client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  jobs = new Map(Array.from({ length: 8 }, (_, n) => [idOf(n + 1), job(n + 1)]));
  slowness = 0;
  listReads = 0;
});

afterEach(() => client.clear());

const seen = (rows: readonly Job[]) => rows.map((row) => `${Number(row.id.slice(3))} ${row.stage}`);

test('what happens while the next page is read stays, above and in that page', async () => {
  const { result, rerender } = shown({}, { below: 100, isCalm: false });
  await later(2_000);
  expect(result.current.rows).toHaveLength(PAGE);
  slowness = 5_000;
  rerender({ below: 0, isCalm: false });
  await later(1_000);
  await happens(8, 'job.shipped', 'shipped');
  await happens(2, 'job.shipped', 'shipped');
  await happens(9, 'job.submitted', 'queued');
  await later(NEW_JOBS_DELAY + 500);
  act(() => result.current.showWaiting());
  await later(REFETCH_DELAY);
  const above = ['9 queued', '8 shipped', '7 queued', '6 queued', '5 queued', '4 queued'];
  expect(seen(result.current.rows)).toEqual(above);
  await later(slowness);
  expect(seen(result.current.rows).slice(0, 6)).toEqual(above);
  await later(REFETCH_DELAY);
  expect(seen(result.current.rows)).toEqual([...above, '3 queued', '2 shipped', '1 queued']);
});

test('a job that waits to be shown leaves when it no longer matches', async () => {
  const { result } = shown({ stage: 'queued' }, { below: 100, isCalm: false });
  await later(2_000);
  await happens(9, 'job.submitted', 'queued');
  await later(NEW_JOBS_DELAY);
  expect(result.current.waiting.jobs).toHaveLength(1);
  await happens(9, 'job.cancelled', 'cancelled');
  await later(NEW_JOBS_DELAY);
  expect(result.current.waiting.jobs).toEqual([]);
});

test('a job that changed just before it is shown is not shown as it was', async () => {
  const { result } = shown({ stage: 'queued' }, { below: 100, isCalm: false });
  await later(2_000);
  await happens(9, 'job.submitted', 'queued');
  await later(NEW_JOBS_DELAY);
  await happens(9, 'job.cancelled', 'cancelled');
  act(() => result.current.showWaiting());
  await later(REFETCH_DELAY + 100);
  expect(seen(result.current.rows)[0]).toBe('9 cancelled');
  expect(result.current.strays).toBe(1);
});

test('rows that no longer match are cleared away when nobody is busy with the list', async () => {
  const { result, rerender } = shown({ stage: 'queued' }, { below: 100, isCalm: false });
  await later(2_000);
  await happens(8, 'job.cancelled', 'cancelled');
  await later(3 * TIDY_AFTER);
  expect(result.current.strays).toBe(1);
  const before = listReads;
  rerender({ below: 100, isCalm: true });
  await later(TIDY_AFTER - 1);
  expect(result.current.strays).toBe(1);
  await later(REFETCH_DELAY);
  expect(seen(result.current.rows)).toEqual(['7 queued', '6 queued', '5 queued', '4 queued', '3 queued']);
  await later(3 * TIDY_AFTER);
  expect(listReads).toBe(before + 1);
});
