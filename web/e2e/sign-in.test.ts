import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { NETWORK, setTheStage } from './harness';
import { Provider } from './harness/provider';

let provider: Provider | undefined;
const stage = setTheStage({
  async serve() {
    provider = await Provider.start();
    await provider.groups('ada', ['eng']);
    return provider.settings(['eng=operator', 'staff=viewer']);
  },
});
afterAll(() => provider?.stop());

/// The provider is another site on purpose, and its forms ask for fonts that nobody gets here.
const PROVIDER =
  /another origin: (http:\/\/127\.0\.0\.1:\d+\/(auth|interaction)|https:\/\/fonts\.)|ERR_NAME_NOT_RESOLVED/;

/// The provider's own forms: who one is, and that one consents.
async function signInAs(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: 'Sign in with 127.0.0.1' }).click();
  await page.getByPlaceholder('Enter any login').fill(name);
  await page.getByPlaceholder('and password').fill('anything');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
}

test('somebody signs in with the provider, sees who did what, and signs out for good', async () => {
  await provider?.knows(stage.world.coordinatorUrl);
  const tab = await stage.open('/jobs?stage=failed', { token: null });
  const { page } = tab;
  tab.tolerate(PROVIDER, NETWORK);
  await signInAs(page, 'ada');
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor();
  expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe('/jobs?stage=failed');
  expect(page.url()).not.toContain('giga_');
  const token = (await page.evaluate(() => sessionStorage.getItem('giga.token'))) ?? '';
  expect(token).toMatch(/^giga_login_/);

  await page.getByRole('link', { name: 'Audit' }).click();
  const log = page.getByRole('region', { name: 'Audit log' });
  await log.getByText('signed in on the page as ada@example.com').waitFor();
  expect(await log.innerText()).not.toContain('tok-');
  await page.getByLabel('Types').fill('flag.changed');
  await page.getByRole('button', { name: 'Filter' }).click();
  await log.getByText('flag.changed').first().waitFor();
  expect(await log.getByText('signed in').count()).toBe(0);
  await page.getByText('giga audit --kind flag.changed').waitFor();

  await page.getByRole('button', { name: 'Your token' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('link', { name: /^Sign in with/ }).waitFor();
  await stage.world.eventually('the token has ended', async () => {
    const { response } = await stage.world.api(token).GET('/api/fleet/whoami', {});
    return response.status === 401;
  });
});

test('somebody in no group that counts is told so, and a viewer is not offered the audit log', async () => {
  await provider?.groups('bob', ['sales']);
  const tab = await stage.open('/', { token: null });
  tab.tolerate(PROVIDER, NETWORK);
  await signInAs(tab.page, 'bob');
  await tab.page.getByText('bob@example.com is in sales').waitFor();

  await provider?.groups('cy', ['staff']);
  const other = await stage.open('/', { token: null });
  other.tolerate(PROVIDER);
  await signInAs(other.page, 'cy');
  await other.page.getByRole('heading', { level: 1, name: 'Fleet' }).waitFor();
  await other.page.getByRole('link', { name: 'Flags' }).waitFor();
  expect(await other.page.getByRole('link', { name: 'Audit' }).count()).toBe(0);
});
