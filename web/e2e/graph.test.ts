import { expect, test } from 'vitest';
import { setTheStage } from './harness';
import { sent } from './harness/world';

const stage = setTheStage({ factories: ['forge-1'], repos: { hello: { 'a.txt': 'a\n' } } });

const child = (name: string, script: string, deps: string[] = []) => ({
  manifest: sent({ name, product: 'demo', engine: 'shell', ship: 'auto', deps, script }),
  bodyMd: name,
});

test('a graph follows its jobs, also a child that appears while it runs', async () => {
  const { world } = stage;
  const gate = world.gate('build');
  const parent = await world.submit({ name: 'the release', kind: 'composite' });
  await world.addChildren(parent.id, [child('build it', gate.wait), child('test it', 'true', ['build it'])]);

  const { page } = await stage.open(`/jobs/${parent.id}?tab=graph`);
  const graph = page.getByRole('tabpanel', { name: 'Graph' }).or(page.locator('main'));
  const node = (name: string) => graph.locator('.react-flow__node', { hasText: name });
  await node('build it').getByText('running').waitFor();
  await node('test it').getByText('blocked').waitFor();
  await page.locator('.react-flow__edge').first().waitFor({ state: 'attached' });
  expect(await page.locator('.react-flow__edge').count()).toBeGreaterThanOrEqual(1);

  await world.addChildren(parent.id, [child('sign it', 'true')]);
  await node('sign it').waitFor();
  await gate.open();
  await node('test it').getByText('shipped').waitFor();
  await world.waitFor(parent.id, 'shipped');

  // The same as a list, for whoever cannot see a drawing.
  await page.getByText('List', { exact: true }).click();
  for (const name of ['build it', 'test it', 'sign it']) await page.getByText(name).first().waitFor();
});

test('on a phone the graph is a list', async () => {
  const parent = await stage.world.submit({ name: 'small', kind: 'composite' });
  await stage.world.addChildren(parent.id, [child('only one', 'true')]);
  const { page } = await stage.open(`/jobs/${parent.id}?tab=graph`, { width: 375, height: 700 });
  await page.getByText('only one').first().waitFor();
  expect(await page.locator('.react-flow').count()).toBe(0);
});
