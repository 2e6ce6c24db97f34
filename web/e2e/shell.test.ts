import { expect, test } from 'vitest';
import { setTheStage } from './harness';

const stage = setTheStage();

const PAGES = [
  ['f', 'Fleet'],
  ['j', 'Jobs'],
  ['n', 'New job'],
  ['b', 'Budgets'],
  ['t', 'Topics'],
  ['l', 'Flags'],
  ['a', 'Audit'],
] as const;

test('every page is two keys away, and has its name in the window’s title', async () => {
  const { page } = await stage.open('/flags');
  await page.getByRole('heading', { level: 1, name: 'Flags' }).waitFor();
  for (const [key, name] of PAGES) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
    await page.waitForFunction((title) => document.title.startsWith(title), name);
  }
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  // What is open has the keyboard to itself.
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor({ state: 'detached' });
  expect(new URL(page.url()).pathname).toBe('/audit');
});

test('letters that are typed into a field go nowhere else', async () => {
  const { page } = await stage.open('/jobs');
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('gbgt?');
  expect(await page.locator('[data-filter]').inputValue()).toBe('gbgt?');
  expect(new URL(page.url()).pathname).toBe('/jobs');
  expect(await page.getByRole('dialog').count()).toBe(0);
});

test('on a phone the pages are behind a menu that closes when one is chosen', async () => {
  const { page } = await stage.open('/', { width: 375, height: 667 });
  const link = page.getByRole('link', { name: 'Budgets', exact: true });
  await page.getByRole('button', { name: 'Menu' }).click();
  await link.click();
  await page.getByRole('heading', { level: 1, name: 'Budgets' }).waitFor();
  await page.waitForFunction(() => {
    const nav = document.querySelector('nav')?.getBoundingClientRect();
    return nav === undefined || nav.right <= 0 || nav.width === 0;
  });
  // Who, colours and connection are still within reach.
  for (const name of ['Your token', 'Menu']) {
    const box = await page.getByRole('button', { name }).boundingBox();
    expect(box && box.x >= 0 && box.x + box.width <= 375, name).toBe(true);
  }
});

test('dark and light follow the system, until one chooses; the choice stays', async () => {
  const { page } = await stage.open('/', { scheme: 'light' });
  const scheme = () => page.locator('html').getAttribute('data-mantine-color-scheme');
  await page.getByRole('heading', { level: 1, name: 'Fleet' }).waitFor();
  expect(await scheme()).toBe('light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.waitForFunction(() => document.documentElement.dataset.mantineColorScheme === 'dark');
  await page.getByRole('button', { name: /^Colours: auto/ }).click();
  expect(await scheme()).toBe('light');
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Fleet' }).waitFor();
  expect(await scheme()).toBe('light');
});
