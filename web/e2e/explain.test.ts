import { expect, test } from 'vitest';
import { firstOf, good, setTheStage } from './harness';
import { visit } from './harness/walk';

const stage = setTheStage({ factories: ['forge-1'], repos: { hello: { 'a.txt': 'a\n' } } });

test('a job that nobody can ever run is named as such before it is submitted, and runs when somebody comes who can', async () => {
  const { world } = stage;
  const { page } = await stage.open('/new');
  await page.getByLabel(/^Name/).fill('build the app');
  await page.getByRole('combobox', { name: 'Product', exact: true }).fill('demo');
  await page.getByRole('combobox', { name: 'Engine', exact: true }).fill('shell');
  await page.getByLabel('Script', { exact: true }).fill('xcodebuild');
  await page.getByRole('combobox', { name: 'Capabilities', exact: true }).fill('has:xcodebuild');
  await page.getByRole('combobox', { name: 'Capabilities', exact: true }).press('Enter');
  await page.getByText('No factory in the fleet can run this job').waitFor();
  await page.getByRole('button', { name: 'Submit anyway…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Keep' }).click();
  const none = await good(world.api().GET('/api/fleet/jobs', {}));
  expect(none.jobs).toEqual([]);
  await page.getByRole('button', { name: 'Submit anyway…' }).click();
  await dialog.getByRole('button', { name: 'Submit anyway' }).click();
  await page.getByRole('heading', { level: 1, name: 'build the app' }).waitFor();
  const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';

  await page.getByRole('tab', { name: 'Explain' }).click();
  await page.getByText('has:xcodebuild').first().waitFor();
  await page.getByText('forge-1').first().waitFor();

  // A machine that has it: a real one, which is found by looking.
  await world.factory('mac-1', { programs: { xcodebuild: '#!/bin/sh\necho "** BUILD SUCCEEDED **"\n' } });
  await page.locator('main').getByText('ready to ship', { exact: true }).first().waitFor();
  await visit(page, `/jobs/${id}?tab=log`);
  await page.getByText('** BUILD SUCCEEDED **').waitFor();
  const runs = await good(world.api().GET('/api/fleet/jobs/{id}/runs', { params: { path: { id } } }));
  expect(runs.runs[0]?.factoryId).toBe('mac-1');
});

test('a drain that keeps a job waiting is ended by the button beside it', async () => {
  const { world } = stage;
  for (const { id } of (await good(world.api().GET('/api/fleet/factories', {}))).factories) {
    const params = { path: { id } };
    await good(world.api().POST('/api/fleet/factories/{id}/drain', { params, body: { undo: false } }));
  }
  const job = await world.submit({ name: 'held up', engine: 'shell', script: 'true' });
  const { page } = await stage.open(`/jobs/${job.id}?tab=explain`);
  await page.getByText('forge-1 and mac-1 could run it but are draining', { exact: true }).waitFor();
  expect((await world.job(job.id)).stage).toBe('queued');
  await firstOf(page.getByRole('button', { name: /^Stop draining: / })).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop draining' }).click();
  await page.locator('main').getByText('ready to ship', { exact: true }).first().waitFor();
  expect((await world.job(job.id)).stage).toBe('testing');
});

test('scores of those who could take it are shown term by term', async () => {
  const { page } = await stage.open('/new');
  await page.getByLabel(/^Name/).fill('any job');
  await page.getByRole('combobox', { name: 'Engine', exact: true }).fill('shell');
  await page.getByLabel('Script', { exact: true }).fill('true');
  await firstOf(page.getByText(/^score/)).waitFor();
  await page.getByText('has room').first().waitFor();
});
