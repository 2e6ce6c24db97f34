// Every page there is, and what none of them may ever say.

import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { PLACES } from '../../src/app/places';
import { JOB_TABS } from '../../src/app/search';

export interface Things {
  job?: string;
  product?: string;
  topic?: string;
}

/// The addresses of all pages; those about a thing only where there is one.
export function addresses({ job, product, topic }: Things): string[] {
  const jobs = job ? JOB_TABS.map((tab) => `/jobs/${job}?tab=${tab}`) : [];
  const budgets = product ? [`/budgets/${product}`] : [];
  const topics = product && topic ? [`/topics/${product}/${topic}`] : [];
  return [...PLACES.map(({ to }) => to), '/no/such/page', ...jobs, ...budgets, ...topics];
}

/// Goes there without loading the page anew, as a link does.
export async function visit(page: Page, address: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
  }, address);
  await arrived(page, address);
  await settled(page);
}

/// The page of this address is shown, and no longer the one before it.
async function arrived(page: Page, address: string): Promise<void> {
  const { pathname, searchParams } = new URL(address, 'http://page');
  const [place, ...rest] = pathname.slice(1).split('/').map(decodeURIComponent);
  const title = (name: string) => page.getByRole('heading', { level: 1, name, exact: true });
  const known = PLACES.find(({ to }) => to === pathname);
  if (known) return title(known.label).waitFor();
  if (place === 'budgets' && rest.length === 1) return title(rest.join()).waitFor();
  if (place === 'topics' && rest.length === 2) return title(rest.join(' / ')).waitFor();
  if (place !== 'jobs' || rest.length !== 1) return title('Page not found').waitFor();
  // Two jobs may have the same name.
  await page.locator('main dl code').getByText(rest.join(), { exact: true }).waitFor();
  const name = new RegExp(`^${searchParams.get('tab') ?? 'overview'}`, 'i');
  await page.getByRole('tab', { name, selected: true }).waitFor();
}

export async function visitAll(page: Page, things: Things): Promise<void> {
  for (const address of addresses(things)) {
    await visit(page, address);
    await expectSense(page, address);
  }
}

/// There is a heading, and nothing is on its way any more.
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  const busy = '[aria-busy="true"], [data-loading="true"]';
  await page.waitForFunction((selector) => !document.querySelector(selector), busy);
}

const NONSENSE = /\bNaN\b|\bundefined\b|Invalid Date|\[object Object\]|\bInfinity\b|∞/;

export async function expectSense(page: Page, where: string): Promise<void> {
  // What is seen, not what is in the document: a script element says what it likes.
  const text = await page.locator('body').innerText();
  expect(NONSENSE.exec(text)?.[0], `what ${where} says:\n${text}`).toBeUndefined();
}
