import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, expect, it, vi } from 'vitest';
import { runsQuery } from '../../../api/queries';
import type { Job } from '../../../api/types';
import { live, newClient, show as showAnything } from '../../../test/show';
import { ReviewPanel } from './ReviewPanel';

// What the coordinator answers, and the verdicts that it got.
let runs: unknown;
let verdicts: { leaseEpoch?: number }[] = [];
let client: ReturnType<typeof newClient>;

const run = (leaseEpoch: number, report: object = {}) => ({ leaseEpoch, outcome: 'succeeded', report });
const job = (epoch: number) =>
  ({ id: 'J1', name: 'a job', repo: 'app', stage: 'review', leaseEpoch: epoch, deps: [] }) as unknown as Job;

beforeEach(() => {
  sessionStorage.clear();
  // The browser of the tests has no fonts, which a textarea that grows listens to.
  Object.defineProperty(document, 'fonts', { value: new EventTarget(), configurable: true });
  verdicts = [];
  client = newClient();
  vi.stubGlobal('fetch', async (request: Request | string) => {
    // The feed, which says nothing.
    if (typeof request === 'string') return new Promise<Response>(() => {});
    const { pathname } = new URL(request.url);
    if (pathname.endsWith('/whoami')) return Response.json({ role: 'admin', products: [] });
    if (pathname.endsWith('/artifacts')) return Response.json({ artifacts: [] });
    if (pathname.endsWith('/review')) {
      verdicts.push(await request.json());
      return Response.json({});
    }
    if (pathname.endsWith('/runs') && runs) return Response.json({ runs });
    return Response.json({ code: 'unavailable', message: 'not now' }, { status: 503 });
  });
});

function show(first: Job) {
  const { rerender } = showAnything(live(<ReviewPanel job={first} />), client);
  return (next: Job) => rerender(live(<ReviewPanel job={next} />));
}

const approve = () => screen.findByRole<HTMLButtonElement>('button', { name: 'Approve' });

it('takes no verdict on a result that cannot be read, and does not say that there is none', async () => {
  runs = undefined;
  show(job(2));
  await screen.findByText('Something went wrong');
  expect((await approve()).disabled).toBe(true);
  expect(screen.queryByText('Checks')).toBeNull();
  expect(screen.queryByText(/no changes|No run/)).toBeNull();
  runs = [run(1), run(2)];
  await client.refetchQueries(runsQuery('J1'));
  await screen.findByText('Checks');
  expect((await approve()).disabled).toBe(false);
});

it('shows the run that is judged and no other in its place', async () => {
  runs = [run(1, { summary: 'what the first did' })];
  show(job(2));
  await screen.findByText('Run 2 not found');
  expect(screen.queryByText('what the first did')).toBeNull();
  expect((await approve()).disabled).toBe(true);
});

it('says that a diff was not kept, and where the changes are', async () => {
  runs = [run(2, { filesChanged: 1, branch: 'giga/j1' })];
  show(job(2));
  await screen.findByText('The diff of run 2 is not available');
  await screen.findByText('giga/j1');
});

it('keeps to the result that was looked at after a verdict, until one looks again', async () => {
  runs = [run(2), run(3)];
  const become = show(job(2));
  await waitFor(async () => expect((await approve()).disabled).toBe(false));
  await userEvent.click(await approve());
  await waitFor(() => expect(verdicts.map((one) => one.leaseEpoch)).toEqual([2]));
  await waitFor(async () => expect((await approve()).disabled).toBe(false));
  become(job(3));
  await screen.findByText('New result');
  expect((await approve()).disabled).toBe(true);
  await userEvent.click(screen.getByRole('button', { name: 'Review run 3' }));
  await userEvent.click(await approve());
  await waitFor(() => expect(verdicts.map((one) => one.leaseEpoch)).toEqual([2, 3]));
});

it('pins nothing for whoever comes back after a verdict', async () => {
  runs = [run(2)];
  show(job(2));
  await waitFor(async () => expect((await approve()).disabled).toBe(false));
  expect(sessionStorage.getItem('giga.review.J1')).toContain('2');
  await userEvent.click(await approve());
  await waitFor(() => expect(sessionStorage.getItem('giga.review.J1')).toBeNull());
});

it('lets a composite be judged, which has no run of its own', async () => {
  runs = [];
  show(job(0));
  await screen.findByText('This job has no run of its own');
  expect((await approve()).disabled).toBe(false);
});
