import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { good, setTheStage } from './harness';
import { sent, type World } from './harness/world';

const stage = setTheStage();

const MANY = 10_000;
const BATCH = 500;

/// Jobs that wait for a time long after us: they cost nothing.
async function seed(world: World, count: number): Promise<void> {
  for (let from = 0; from < count; from += BATCH) {
    const jobs = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => ({
      manifest: sent({ ...later(`job ${String(from + index).padStart(5, '0')}`), product: 'demo' }),
      bodyMd: 'x',
    }));
    await good(world.api().POST('/api/fleet/jobs/batch', { body: { jobs } }));
  }
}

const later = (name: string) => ({ name, runAt: '2099-01-01T00:00:00Z' });
const rows = (page: Page) => page.locator('tbody tr[aria-rowindex]');

/// How long frames took while it was scrolled.
async function watchFrames(page: Page): Promise<() => Promise<number[]>> {
  await page.evaluate(() => {
    const frames: number[] = [];
    let last = performance.now();
    const tick = (now: number) => {
      frames.push(now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    Object.assign(window, { frames });
  });
  return () => page.evaluate(() => (window as unknown as { frames: number[] }).frames);
}

test('ten thousand jobs: a page at a time, and only what is in sight is in the document', async () => {
  await seed(stage.world, MANY);
  const tab = await stage.open('/jobs');
  const { page } = tab;
  const asked: URL[] = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.pathname === '/api/fleet/jobs') asked.push(url);
  });
  await page.getByText(`job 0${MANY - 1}`).waitFor();
  const frames = await watchFrames(page);
  let most = 0;
  const last = page.getByText('job 00000');
  const started = Date.now();
  while (!(await last.isVisible())) {
    expect(Date.now() - started, 'the end of the list comes in sight').toBeLessThan(90_000);
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
    most = Math.max(most, await rows(page).count());
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  const took = [...(await frames())].sort((a, b) => a - b);
  const part = (of: number) => Math.round(took[Math.floor((took.length - 1) * of)] ?? 0);
  process.stdout.write(
    `10,000 jobs: ${asked.length} calls, at most ${most} rows, frames p50 ${part(0.5)} ms, p95 ${part(0.95)} ms, worst ${part(1)} ms\n`,
  );
  expect(most).toBeLessThan(200);
  const cursors = asked.map((url) => url.searchParams.get('cursor')).filter((cursor) => cursor !== null);
  expect(new Set(cursors).size, 'every page is asked for once').toBe(cursors.length);
  expect(cursors.length).toBeGreaterThan(MANY / 100 - 5);
  expect(cursors.length).toBeLessThan(MANY / 100 + 5);
  await page.getByText('10,000 jobs').waitFor();
});

test('rows stay where they are while one points at them; what is new waits to be shown', async () => {
  const { world } = stage;
  const { page } = await stage.open('/jobs');
  const row = rows(page).nth(3);
  await row.waitFor();
  await row.hover();
  const before = { box: await row.boundingBox(), text: await row.getByRole('link').textContent() };
  for (const name of ['new one', 'new two', 'new three']) await world.submit(later(name));
  const pill = page.getByRole('button', { name: '3 new jobs, show' });
  await pill.waitFor();
  expect({ box: await row.boundingBox(), text: await row.getByRole('link').textContent() }).toEqual(before);
  await pill.click();
  await page.getByRole('link', { name: 'new three' }).waitFor();
});

test('filters live in the address; a changed row stays in place and says that it no longer matches', async () => {
  const { world } = stage;
  const job = await world.submit({ ...later('filter me'), priority: 'high' });
  const { page } = await stage.open('/jobs?stage=queued&priority=high');
  await page.getByRole('link', { name: 'filter me' }).waitFor();
  expect(await rows(page).count()).toBe(1);
  await page.getByText('giga job list --stage queued --priority high').waitFor();
  const path = { id: job.id, action: 'cancel' as const };
  await good(world.api().POST('/api/fleet/jobs/{id}/actions/{action}', { params: { path }, body: {} }));
  await page.getByText('no longer matches').first().waitFor();
  await page.locator('[data-filter]').fill('new t');
  await page.getByText('giga job list').filter({ hasText: 'new t' }).waitFor();
  await page.waitForURL(/name=new/);

  // What is typed replaces the address; what is chosen is a step that one can take back.
  const queued = page.getByRole('button', { name: /^queued/, pressed: true });
  await queued.click();
  await queued.waitFor({ state: 'detached' });
  await page.waitForURL((url) => !url.searchParams.has('stage'));
  await page.goBack();
  await queued.waitFor();
  const { searchParams } = new URL(page.url());
  expect(Object.fromEntries(searchParams)).toEqual({ stage: 'queued', priority: 'high', name: 'new t' });
  expect(await page.locator('[data-filter]').inputValue()).toBe('new t');
});

test('several at once: chosen by key and mouse, asked about once, told about one by one', async () => {
  const { world } = stage;
  for (const name of ['batch a', 'batch b', 'batch c']) await world.submit(later(name));
  const { page } = await stage.open('/jobs?name=batch');
  await page.getByRole('link', { name: 'batch c' }).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.getByRole('button', { name: /^Cancel/ }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('batch c').waitFor();
  await dialog.getByText('batch b').waitFor();
  expect(await dialog.getByText('batch a').count()).toBe(0);
  await dialog.getByRole('button', { name: /^Cancel/ }).click();
  await world.eventually('both are cancelled', async () => {
    const query = { name: 'batch', stage: ['cancelled' as const] };
    return (await good(world.api().GET('/api/fleet/jobs', { params: { query } }))).jobs.length === 2;
  });
  await page.getByText('2 jobs cancelled').waitFor();
  const chosen = page.getByRole('region', { name: 'Selected jobs' });
  await chosen.waitFor({ state: 'detached' });
  await dialog.waitFor({ state: 'detached' });
  await page.getByLabel('Select batch a').check();
  await chosen.getByText('1 selected').waitFor();
  await page.keyboard.press('Escape');
  await chosen.waitFor({ state: 'detached' });
});
