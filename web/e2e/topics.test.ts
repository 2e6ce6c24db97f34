import { expect, test } from 'vitest';
import { percent } from '../src/ui/format';
import { firstOf, good, NETWORK, setTheStage } from './harness';
import { visit } from './harness/walk';
import { Worker } from './harness/worker';

const stage = setTheStage({ flags: { heartbeat_interval_ms: 500 } });

const params = { path: { name: 'mail' }, header: { 'x-product-id': 'demo' } };
const topic = async () => (await good(stage.world.api().GET('/api/fleet/topics', {}))).topics[0];

test('a topic is fed, paused and resumed from the page', async () => {
  const { world } = stage;
  await good(
    world.api().POST('/api/fleet/topics/{name}/jobs', { params, body: { payload: { to: 'ana' } } as never }),
  );
  const { page } = await stage.open('/topics');
  await page.getByRole('button', { name: 'Pause mail' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('giga topic pause mail').waitFor();
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await world.eventually('it is paused', async () => (await topic())?.paused != null);

  await visit(page, '/topics/demo/mail');
  await page.getByLabel('Payload').fill('{"to": ');
  await page.getByText(/JSON/).first().waitFor();
  await page.getByLabel('Payload').fill('{"to": "bo"}');
  await page.getByRole('button', { name: /^(Add|Enqueue)/ }).click();
  await world.eventually('there are two', async () => (await topic())?.byState.ready === 2);

  await firstOf(page.getByRole('button', { name: /^Resume/ })).click();
  await dialog.getByRole('button', { name: 'Resume', exact: true }).click();
  await world.eventually('it is resumed', async () => (await topic())?.paused == null);
});

test('dead jobs say what went wrong, and get another chance', async () => {
  const { world } = stage;
  let broken = true;
  const worker = await Worker.serve(world, 'demo', ['mail'], 'mailer-1', () =>
    broken ? { error: 'the post office is closed', permanent: true } : null,
  );
  const { page } = await stage.open('/topics/demo/mail?state=dead');
  await page.getByText('the post office is closed').first().waitFor();
  await world.eventually('both are dead', async () => (await topic())?.byState.dead === 2);
  broken = false;
  await page.getByRole('button', { name: 'Retry all dead…' }).click();
  await page.getByRole('dialog').getByText('giga topic retry mail').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Retry', exact: true }).click();
  await world.eventually('both are done', async () => (await topic())?.byState.done === 2);
  worker.leave();
});

test('a flag is set after a question, sticks, and is taken back', async () => {
  const { world } = stage;
  const flag = async (name: string) =>
    (await good(world.api().GET('/api/fleet/flags', {}))).flags.find((one) => one.name === name);
  const { page } = await stage.open('/flags');
  await page.getByRole('combobox', { name: 'delivery', exact: true }).selectOption('poll');
  await page.getByText('giga flags set delivery poll').first().waitFor();
  await page.getByRole('button', { name: /^Set/ }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  expect((await flag('delivery'))?.value).toBe('stream');
  await dialog.getByRole('button').last().click();
  await world.eventually('it is set', async () => (await flag('delivery'))?.value === 'poll');
  await page.reload();
  const field = page.getByRole('combobox', { name: 'delivery', exact: true });
  await field.waitFor();
  expect(await field.inputValue()).toBe('poll');

  await page.getByRole('button', { name: 'Reset delivery to stream' }).click();
  await dialog.getByText('giga flags set delivery').waitFor();
  await dialog.getByRole('button', { name: 'Deliver by stream' }).click();
  await world.eventually('it is as by default', async () => (await flag('delivery'))?.isDefault === true);
  expect((await flag('delivery'))?.value).toBe('stream');
  await page.getByRole('button', { name: 'Reset delivery to stream' }).waitFor({ state: 'detached' });
  expect(await field.inputValue()).toBe('stream');
});

test('a token for one product is told kindly that flags are for the whole fleet', async () => {
  const { token } = await stage.world.issueToken('operator', ['demo']);
  const tab = await stage.open('/flags', { token });
  tab.tolerate(NETWORK);
  await tab.page.getByText('Flags apply to the whole fleet').waitFor();
});

test('the shadow page counts what the dispatcher would have done otherwise', async () => {
  const { world } = stage;
  await world.flag('delivery', 'shadow');
  await world.factory('shade-1');
  const job = await world.submit({ name: 'seen by both', engine: 'shell', script: 'true' });
  await world.waitFor(job.id, 'testing');
  await world.eventually('it was compared', async () => {
    const shadow = await good(world.api().GET('/api/fleet/shadow', {}));
    return shadow.agreements + shadow.divergences > 0;
  });
  const { page } = await stage.open('/flags');
  const panel = page.getByRole('region', { name: 'Shadow divergence' });
  const figure = (name: string) =>
    panel.locator('dl > div').filter({ hasText: name }).locator('dd').textContent();
  const { agreements, divergences } = await good(world.api().GET('/api/fleet/shadow', {}));
  const shown = () =>
    Promise.all(['factories in shadow mode', 'same choice', 'different choice', 'divergence'].map(figure));
  await panel.locator('dl').waitFor();
  const rate = percent(divergences / (agreements + divergences));
  await expect.poll(shown).toEqual(['1', String(agreements), String(divergences), rate]);
});
