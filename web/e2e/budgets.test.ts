import { expect, test } from 'vitest';
import { firstOf, good, setTheStage } from './harness';
import { expectSense, visit } from './harness/walk';

const stage = setTheStage({ factories: ['forge-1'], repos: { hello: { 'a.txt': 'a\n' } } });

const params = { path: { product: 'demo' } };
const JOB = { engine: 'shell', repo: 'hello', ship: 'auto' };

test('pausing on the page stops placement, and the waiting job says why; resuming starts it and it ships', async () => {
  const { world } = stage;
  await good(world.api().PUT('/api/fleet/budgets/{product}', { params, body: { ceilings: {}, jobUsd: 1 } }));
  const { page } = await stage.open('/budgets');
  await page.getByRole('button', { name: 'Pause…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('giga budget pause demo').waitFor();
  await dialog.getByLabel('Reason').fill('the books are closed');
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByText('the books are closed').first().waitFor();

  const job = await world.submit({ name: 'waits for money', ...JOB, script: 'echo b > b.txt' });
  await visit(page, `/jobs/${job.id}?tab=explain`);
  await firstOf(page.getByText(/paused/i)).waitFor();
  await page.getByText('the books are closed').first().waitFor();
  expect((await world.job(job.id)).stage).toBe('queued');

  await visit(page, '/budgets/demo');
  await page.getByRole('button', { name: 'Resume' }).first().click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resume', exact: true }).click();
  await world.waitFor(job.id, 'shipped');
  await visit(page, `/jobs/${job.id}`);
  await page.locator('main').getByText('shipped', { exact: true }).first().waitFor();
});

test('what runs is stopped too when that is asked for, and goes on when it is resumed', async () => {
  const { world } = stage;
  const gate = world.gate('stop');
  const job = await world.submit({
    name: 'stopped in the middle',
    ...JOB,
    script: `${gate.wait}\necho c > c.txt`,
  });
  await world.waitFor(job.id, 'building');
  const { page } = await stage.open('/budgets/demo');
  await page.getByRole('button', { name: 'Pause…' }).click();
  await page.getByLabel('Also stop running jobs').check();
  await page.getByRole('dialog').getByText('giga budget pause demo --stop-running').waitFor();
  await page.getByRole('button', { name: 'Pause and stop running jobs' }).click();
  await world.waitFor(job.id, 'queued');
  await gate.open();
  await page.getByRole('button', { name: 'Resume' }).first().click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resume', exact: true }).click();
  await world.waitFor(job.id, 'shipped');
});

test('no limit, a limit that is set on the page, and money that is reserved: no figure is nonsense', async () => {
  const { world } = stage;
  const gate = world.gate('aside');
  const { page } = await stage.open('/budgets/demo');
  await page.getByRole('heading', { level: 1, name: /demo/ }).waitFor();
  await expectSense(page, 'a budget without a limit');
  const job = await world.submit({
    name: 'reserves money',
    ...JOB,
    script: gate.wait,
    budget: { usd: 2.5 },
  });
  await world.waitFor(job.id, 'building');
  await page.getByText('$2.50').first().waitFor();
  const day = page.getByLabel('Per day').first();
  await day.fill('ten');
  await expectSense(page, 'a limit that is no number');
  await day.fill('10');
  await firstOf(page.getByRole('button', { name: /^(Save|Set)/ })).click();
  await world.eventually('the limit is kept', async () => {
    const budget = await good(world.api().GET('/api/fleet/budgets/{product}', { params }));
    return budget.periods.some((period) => period.period === 'day' && period.ceilingUsd === 10);
  });
  await page.getByText('$10.00').first().waitFor();
  await expectSense(page, 'a budget with a limit');
  await visit(page, '/budgets');
  await expectSense(page, 'all budgets');
  await gate.open();
});
