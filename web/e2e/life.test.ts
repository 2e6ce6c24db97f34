import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { firstOf, setTheStage } from './harness';
import { expectSense } from './harness/walk';

const stage = setTheStage({
  factories: ['forge-1'],
  repos: { hello: { 'greeting.txt': 'helo\n', 'test.sh': 'grep -q hello greeting.txt\n' } },
});

const badge = (page: Page, word: string) => page.locator('main').getByText(word, { exact: true }).first();

async function choose(page: Page, label: string, value: string): Promise<void> {
  await page.getByRole('combobox', { name: label, exact: true }).fill(value);
  await page.getByRole('option', { name: value }).first().click();
}

test('from the form to the merge, live, with a reload in the middle of every step', async () => {
  const { world } = stage;
  const [first, second] = [world.gate('first'), world.gate('second')];
  const script = [
    'echo "the work begins"',
    // The second run finds what the first one left.
    'if grep -q hello greeting.txt; then',
    second.wait,
    'echo "hello, world" > greeting.txt; else',
    first.wait,
    'echo hello > greeting.txt; fi',
    'echo "the work is done"',
  ].join('\n');
  const { page } = await stage.open('/new');

  // Written into the form, which answers while one types and forgets nothing.
  await page.getByLabel(/^Name/).fill('fix the greeting');
  await page.getByRole('combobox', { name: 'Product', exact: true }).fill('demo');
  await choose(page, 'Repository', 'hello');
  await choose(page, 'Engine', 'shell');
  await page.getByLabel('Script', { exact: true }).fill(script);
  await page.getByLabel('Prompt', { exact: true }).fill('The greeting has **one** l too few.');
  await page.getByRole('button', { name: 'Add a command' }).click();
  await page.getByLabel('Verify command 1', { exact: true }).fill('sh test.sh');
  await page.getByLabel('Approvals').fill('1');
  await page.getByLabel('Cost limit').fill('0.5');
  await page.getByText('Would be placed on forge-1 now').waitFor();
  await page.reload();
  expect(await page.getByLabel('Script', { exact: true }).inputValue()).toBe(script);
  await page.getByText('Would be placed on forge-1 now').waitFor();
  await expectSense(page, 'the form');
  await page.getByRole('button', { name: 'Submit', exact: true }).click();

  // It runs, and the page follows without being told to.
  await page.getByRole('heading', { level: 1, name: 'fix the greeting' }).waitFor();
  const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  await badge(page, 'running').waitFor();
  await page.getByRole('tab', { name: 'Log' }).click();
  await page.getByText('the work begins').waitFor();
  expect(await page.getByText('the work is done').count()).toBe(0);
  await page.reload();
  await page.getByText('the work begins').waitFor();
  await first.open();
  await page.getByText('the work is done').waitFor();

  // A reviewer wants it otherwise; the comment is half typed when the page is loaded anew.
  await page.getByRole('tab', { name: 'Overview' }).click();
  await badge(page, 'review').waitFor();
  await page.getByText('greeting.txt').first().waitFor();
  await firstOf(page.getByText('+hello').or(page.getByText('hello', { exact: true }))).waitFor();
  await page.getByLabel('Request changes').check();
  await page.getByLabel('Comment').fill('Please greet the *world*.');
  await page.reload();
  expect(await page.getByLabel('Comment').inputValue()).toBe('Please greet the *world*.');
  const before = (await world.job(id)).leaseEpoch;
  await page.getByRole('button', { name: 'Request changes', exact: true }).click();
  await world.until(id, (job) => job.stage === 'building' && job.leaseEpoch > before, 'run again');
  await badge(page, 'running').waitFor();
  await page.reload();
  await badge(page, 'running').waitFor();
  await second.open();

  // The second result is approved and shipped, and the repository has it.
  await badge(page, 'review').waitFor();
  await page.getByText('Please greet the world.').waitFor();
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  await badge(page, 'ready to ship').waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Ship', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Ship', exact: true }).click();
  await badge(page, 'shipped').waitFor();
  await world.until(id, (job) => job.merge?.state === 'merged', 'merged');
  await firstOf(page.getByText(/merged/i)).waitFor();
  expect(await world.repos.get('hello')?.file('greeting.txt')).toBe('hello, world\n');
  expect((await world.repos.get('hello')?.subjects())?.length).toBeGreaterThan(1);
  await page.getByRole('tab', { name: /^Runs/ }).click();
  await expectSense(page, 'the runs');
});

test('a job that fails says why, and is queued again from the page', async () => {
  const { world } = stage;
  const gate = world.gate('mended');
  const job = await world.submit({
    name: 'a check that fails',
    repo: 'hello',
    engine: 'shell',
    script: `[ -e ${world.folder.path}/gate-mended ] && echo "mended"; echo x > x.txt`,
    verify: [`echo "no mend yet" && test -e ${world.folder.path}/gate-mended`],
    retry: { max: 0, backoff: '1s' },
  });
  const { page } = await stage.open(`/jobs/${job.id}`);
  await badge(page, 'failed').waitFor();
  await firstOf(page.getByText(/verification failed/i)).waitFor();
  await gate.open();
  await page.getByRole('button', { name: 'Requeue', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Requeue', exact: true }).click();
  await badge(page, 'ready to ship').waitFor();
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  const dialog = page.getByRole('dialog');
  // Every action shows the same as a command, and asks first.
  await dialog.getByText(`giga job cancel ${job.id}`).waitFor();
  await dialog.getByRole('button', { name: 'Keep' }).click();
  expect((await world.job(job.id)).stage).toBe('testing');
});
