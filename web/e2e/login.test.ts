import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { good, NETWORK, setTheStage } from './harness';
import { Holder } from './harness/holder';
import { visit } from './harness/walk';

const stage = setTheStage();

const login = (page: Page) => page.getByLabel(/^Token/);
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true });

/// Buttons that change nothing but what one sees, or a draft that nobody else does. All others are deeds.
const HARMLESS = /^(Copy .*|Download manifest|Clear|Start over|Add a command|Newest first)$/;
/// What says of itself that it only shows something, or that it does nothing now.
const SHOWS = '[aria-expanded], [aria-pressed], [role="tab"]';
const IDLE = ':disabled, [aria-disabled="true"], [data-disabled]';

/// What can be clicked in this page, or chosen from a menu of it, that changes something.
async function deeds(page: Page): Promise<string[]> {
  const offered = ':is(main, [role="menu"]) :is(button, [role="menuitem"], [role="switch"])';
  const names = await page.locator(`${offered}:not(${SHOWS}, ${IDLE})`).evaluateAll((all) =>
    all.map((one) => {
      const label = one instanceof HTMLInputElement ? one.labels?.[0]?.textContent : one.textContent;
      return one.getAttribute('aria-label') ?? label ?? '';
    }),
  );
  return names.filter((name) => !HARMLESS.test(name));
}

async function signIn(page: Page, token: string): Promise<void> {
  await login(page).fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/// Everything that a browser keeps for longer than a tab, and for the tab.
function kept(page: Page) {
  return page.evaluate(() => ({
    tab: Object.values(sessionStorage).join('\n'),
    longer: Object.values(localStorage).join('\n') + document.cookie,
  }));
}

test('the link that `giga web` prints signs in; its token stays in no address, history or storage but the tab’s', async () => {
  const token = stage.world.token;
  const tab = await stage.open('/', { token: null });
  await login(tab.page).waitFor();
  const link = new URL((await stage.world.giga('web')).trim());
  expect(link.origin).toBe(stage.world.coordinatorUrl);
  await tab.goto(`/${link.hash}`);
  await tab.page.reload();
  await heading(tab.page, 'Fleet').waitFor();
  expect(tab.page.url()).toBe(`${stage.world.url}/`);
  const { tab: own, longer } = await kept(tab.page);
  expect(own).toContain(token);
  expect(longer).not.toContain(token);
  expect(await tab.page.evaluate(() => history.state && JSON.stringify(history.state))).not.toContain(token);
  await tab.page.goBack();
  expect(tab.page.url()).toBe(`${stage.world.url}/`);
  // Another tab of the same browser is nobody.
  const other = await tab.sibling();
  await other.goto(stage.world.url);
  await login(other).waitFor();
});

test('a token is typed in; one that is wrong is named as such and nothing else happens', async () => {
  const tab = await stage.open('/', { token: null });
  const { page } = tab;
  await signIn(page, 'hunter2');
  await page.getByText('A token begins with giga_').waitFor();
  tab.tolerate(NETWORK);
  const { id, token } = await stage.world.issueToken('viewer');
  await good(stage.world.api().DELETE('/api/fleet/tokens/{id}', { params: { path: { id } } }));
  await signIn(page, token);
  await page.getByText('the token is unknown, revoked or expired').waitFor();
  const { tab: own, longer } = await kept(page);
  expect(own + longer).not.toContain('giga_');
  await signIn(page, ` ${stage.world.token}\n`);
  await heading(page, 'Fleet').waitFor();
});

test('a link deep into the page survives the login', async () => {
  const { page } = await stage.open('/jobs?stage=queued&name=hello', { token: null });
  await signIn(page, stage.world.token);
  await heading(page, 'Jobs').waitFor();
  const { pathname, searchParams } = new URL(page.url());
  expect([pathname, searchParams.get('stage'), searchParams.get('name')]).toEqual([
    '/jobs',
    'queued',
    'hello',
  ]);
});

test.each([
  ['a worker', async () => (await stage.world.issueToken('worker')).token],
  ['a factory', () => stage.world.enrol('press-1')],
])('the token of %s is refused, with a word about which to use', async (_, make) => {
  const token = await make();
  const typed = await stage.open('/', { token: null });
  await signIn(typed.page, token);
  await typed.page.getByText('Use one with the viewer role or higher').waitFor();
  const linked = await stage.open('/', { token });
  linked.tolerate(NETWORK);
  await linked.page.getByText('Use one with the viewer role or higher').waitFor();
  expect((await kept(linked.page)).tab).not.toContain(token);
});

test('a token that is revoked while the page is open leads to the login, which says so', async () => {
  const { id, token } = await stage.world.issueToken('operator');
  const tab = await stage.open('/jobs', { token });
  await heading(tab.page, 'Jobs').waitFor();
  await tab.page.getByLabel('Connection: live').waitFor();
  tab.tolerate(NETWORK);
  await good(stage.world.api().DELETE('/api/fleet/tokens/{id}', { params: { path: { id } } }));
  await tab.page.getByText('The token was revoked').waitFor();
  expect((await kept(tab.page)).tab).not.toContain(token);
});

test('signing out forgets the token and what was seen', async () => {
  const { page } = await stage.open('/jobs');
  await page.getByRole('button', { name: 'Your token' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByText('You are signed out').waitFor();
  expect((await kept(page)).tab).not.toContain(stage.world.token);
  await page.reload();
  await login(page).waitFor();
});

test('a viewer sees everything and is offered nothing that an admin is; the API refuses too', async () => {
  const { world } = stage;
  const { token } = await world.issueToken('viewer');
  const holder = await Holder.enrol(world, 'press-2');
  const job = await world.submit({ name: 'look but do not touch', capabilities: ['moon'] });
  const reviewed = await world.submit({ name: 'look at it', review: { quorum: 1, reviewers: [] } });
  await holder.report(await holder.take(reviewed.id), { summary: 'done' });
  await world.waitFor(reviewed.id, 'review');
  const params = { path: { product: 'demo' } };
  const body = { ceilings: { day: 5 }, jobUsd: null };
  await good(world.api().PUT('/api/fleet/budgets/{product}', { params, body }));
  const topic = { path: { name: 'mail' }, header: { 'x-product-id': 'demo' } };
  await good(
    world.api().POST('/api/fleet/topics/{name}/jobs', { params: topic, body: { payload: 1 } as never }),
  );

  // The way to what is not offered before one has chosen or typed something.
  const reach: Record<string, (page: Page) => Promise<void>> = {
    '/': (page) => page.getByRole('button', { name: 'Actions for press-2' }).click(),
    '/jobs': (page) => page.getByLabel('Select look but do not touch').check(),
    '/new': async (page) => {
      await page.getByRole('textbox', { name: 'Name' }).fill('a job');
      await page.getByRole('combobox', { name: 'Product' }).fill('demo');
    },
  };
  // biome-ignore format: a table
  const places = [
    '/', `/jobs/${job.id}`, `/jobs/${job.id}?tab=explain`, `/jobs/${reviewed.id}`, '/jobs', '/new',
    '/budgets', '/budgets/demo', '/topics', '/topics/demo/mail', '/flags',
  ];
  const viewer = (await stage.open('/', { token })).page;
  const admin = (await stage.open('/')).page;
  for (const page of [viewer, admin]) await heading(page, 'Fleet').waitFor();
  for (const address of places) {
    for (const page of [admin, viewer]) {
      await visit(page, address);
      await reach[address]?.(page);
    }
    await expect
      .poll(() => deeds(admin), { message: `what an admin is offered on ${address}` })
      .not.toEqual([]);
    expect(await deeds(viewer), `what a viewer is offered on ${address}`).toEqual([]);
  }
  const path = { id: job.id, action: 'cancel' as const };
  const { response } = await world
    .api(token)
    .POST('/api/fleet/jobs/{id}/actions/{action}', { params: { path }, body: {} });
  expect(response.status).toBe(403);
  expect((await world.job(job.id)).stage).toBe('queued');
});
