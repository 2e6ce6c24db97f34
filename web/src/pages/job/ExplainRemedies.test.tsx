import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { act, screen, within } from '@testing-library/react';
import { beforeEach, expect, test, vi } from 'vitest';
import { jobQuery } from '../../api/queries';
import type { Remedy } from '../../api/types';
import type { Stage } from '../../api/vocabulary';
import { show } from '../../test/show';
import { sentence } from '../../ui/format';
import { actionOf, callOf, jobOf, OneRemedy, poolOf } from './ExplainRemedies';

const id = '01J0000000000000000000000A';
let sent: Request[] = [];
let stage: Stage = 'failed';

beforeEach(() => {
  sent = [];
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener() {}, removeEventListener() {} }));
  vi.stubGlobal('fetch', async (request: Request) => {
    sent.push(request);
    const { pathname } = new URL(request.url);
    if (pathname.endsWith('/whoami'))
      return Response.json({ kind: 'user', role: 'admin', everyProduct: true });
    return Response.json({ id, name: 'fix-greeting', stage, rev: 7 });
  });
});

async function offer(remedy: Remedy) {
  const root = createRootRoute({ component: () => <OneRemedy remedy={remedy} /> });
  const router = createRouter({ routeTree: root, history: createMemoryHistory() });
  const { client } = show(<RouterProvider router={router as never} />);
  await screen.findByText(sentence(remedy.message));
  return client;
}

const giveUp: Remedy = {
  message: 'give it up',
  command: `giga job cancel ${id}`,
  call: {
    method: 'POST',
    path: `/api/fleet/jobs/${id}/actions/cancel`,
    role: 'operator',
    everyProduct: false,
  },
};

test('what is final says so and is done to the job as it was seen', async () => {
  stage = 'failed';
  await offer(giveUp);
  const button = await screen.findByRole('button', { name: /^(Cancel|Apply)/ });
  await vi.waitFor(() => expect(button.hasAttribute('disabled')).toBe(false));
  button.click();
  const dialog = await screen.findByRole('dialog');
  expect(dialog.textContent).toContain('Cancel fix-greeting?');
  expect(dialog.textContent).toContain('This cannot be undone.');
  within(dialog).getByRole('button', { name: 'Cancel job' }).click();
  await vi.waitFor(() => expect(sent.some((request) => request.method === 'POST')).toBe(true));
  const post = sent.find((request) => request.method === 'POST');
  expect(post?.headers.get('if-match')).toBe('"rev-7"');
});

test('a job that has moved on is not acted on', async () => {
  stage = 'shipped';
  const client = await offer(giveUp);
  await vi.waitFor(() => expect(client.getQueryData(jobQuery(id).queryKey)?.stage).toBe('shipped'));
  await act(async () => {});
  expect(screen.queryByRole('button', { name: /^(Cancel|Apply)/ })).toBeNull();
});

test('a review is a place to go to and not a thing to do', async () => {
  await offer({ message: 'review the dependency', command: `giga review ${id}` });
  expect(screen.getByRole('link', { name: 'Open the review' }).getAttribute('href')).toBe(`/jobs/${id}`);
  expect(screen.queryByRole('button', { name: /^(Cancel|Apply)/ })).toBeNull();
});

function call(method: string, path: string) {
  return callOf({
    message: 'x',
    call: { method: method as never, path, role: 'operator', everyProduct: false },
  });
}

test('an action on a job is known as such', () => {
  const of = (method: string, path: string) => {
    const known = call(method, path);
    return known && actionOf(known);
  };
  expect(of('POST', `/api/fleet/jobs/${id}/actions/cancel`)).toEqual({ id, name: 'cancel' });
  expect(of('POST', `/api/fleet/jobs/${id}/actions/unknown`)).toBeUndefined();
  expect(of('DELETE', `/api/fleet/jobs/${id}/actions/cancel`)).toBeUndefined();
  expect(of('POST', '/api/fleet/budgets/demo/resume')).toBeUndefined();
});

test('a command says which job it is about, and whether one should look at it', () => {
  expect(jobOf({ message: 'x', command: `giga review ${id}` })).toEqual({ id, review: true });
  expect(jobOf({ message: 'x', command: `giga job ship ${id}` })).toEqual({ id, review: false });
  expect(jobOf({ message: 'x', command: `giga job submit FILE... --parent ${id}` })).toBeUndefined();
  expect(jobOf({ message: 'x', command: 'giga budget resume demo' })).toBeUndefined();
  expect(jobOf({ message: 'x' })).toBeUndefined();
});

test('a command says which pool it is about', async () => {
  expect(poolOf({ message: 'x', command: 'giga pool show gpu-1' })).toBe('gpu-1');
  expect(poolOf({ message: 'x', command: 'giga pool resume gpu' })).toBe('gpu');
  expect(poolOf({ message: 'x', command: 'giga pool show POOL/../x' })).toBeUndefined();
  expect(poolOf({ message: 'x', command: 'giga pool list' })).toBeUndefined();
  await offer({ message: 'see what its pool is doing', command: 'giga pool show gpu' });
  expect(screen.getByRole('link', { name: 'Open the pool' }).getAttribute('href')).toBe('/pools/gpu');
});
