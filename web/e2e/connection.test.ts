import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { NETWORK, setTheStage } from './harness';
import { visitAll } from './harness/walk';

const stage = setTheStage();

/// Every event stream that this page opens from here on, with what it resumes from.
function streams(page: Page): (string | undefined)[] {
  const opened: (string | undefined)[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/events/stream')) opened.push(request.headers()['last-event-id']);
  });
  return opened;
}

const banner = (page: Page) =>
  page.getByRole('alert').filter({ hasText: 'Lost connection to the coordinator' });

test('a coordinator that dies is missed at once; when it is back the page goes on where it was', async () => {
  const { world } = stage;
  const tab = await stage.open('/jobs');
  const { page } = tab;
  const opened = streams(page);
  await page.getByLabel('Connection: live').waitFor();
  // Held back for want of a capability: the story is about the page.
  await world.submit({ name: 'before the fall', capabilities: ['moon'] });
  await page.getByText('before the fall').first().waitFor();

  tab.tolerate(NETWORK);
  await world.killCoordinator();
  const killed = Date.now();
  await banner(page).waitFor({ timeout: 5_000 });
  expect(Date.now() - killed).toBeLessThan(5_000);
  await page.getByLabel('Connection: connection lost').waitFor();
  // What was there is still shown.
  expect(await page.getByText('before the fall').count()).toBeGreaterThan(0);

  await world.startCoordinator();
  await world.submit({ name: 'meanwhile', capabilities: ['moon'] });
  await banner(page).waitFor({ state: 'detached' });
  await page.getByLabel('Connection: live').waitFor();
  const rows = page.getByRole('link', { name: 'meanwhile' });
  await rows.waitFor();
  expect(await rows.count()).toBe(1);
  expect(await page.getByRole('link', { name: 'before the fall' }).count()).toBe(1);
  expect(opened.at(-1), 'the stream goes on after the last event that was seen').toMatch(/^[0-9]+$/);
});

test('a tab has one event stream, whatever it shows', async () => {
  const { world } = stage;
  const job = await world.submit({ name: 'a job to look at', capabilities: ['moon'] });
  const { page, ...tab } = await stage.open('/', { token: null });
  const opened = streams(page);
  await page.goto(`${tab.origin}/#token=${world.token}`);
  await page.reload();
  await page.getByLabel('Connection: live').waitFor();
  opened.length = 0;
  // Within the page, as one who clicks does: a page that is loaded anew has to connect anew.
  await visitAll(page, { job: job.id });
  expect(opened).toEqual([]);
});

test('a page that is opened while the coordinator is away says so, and fills by itself when it is back', async () => {
  const { world } = stage;
  const tab = await stage.open('/topics');
  await tab.page.getByLabel('Connection: live').waitFor();
  tab.tolerate(NETWORK);
  await world.killCoordinator();
  await banner(tab.page).waitFor();
  await tab.page.getByRole('link', { name: 'Budgets' }).click();
  // Neither the page itself nor what it shows can be had; which of the two is missed first does not matter.
  const waits = tab.page.getByText(/Loading the page|cannot be reached/).first();
  await waits.waitFor();
  await world.startCoordinator();
  await banner(tab.page).waitFor({ state: 'detached' });
  await tab.page.getByRole('heading', { level: 1, name: 'Budgets' }).waitFor();
  await waits.waitFor({ state: 'detached' });
});
