// Every page there is, and what none of them may ever say.

import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { JOB_TABS } from '../../src/pages/job/search';

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
  const every = ['/', '/jobs', '/new', '/budgets', '/topics', '/flags', '/no/such/page'];
  return [...every, ...jobs, ...budgets, ...topics];
}

/// Goes there without loading the page anew, as a link does.
export async function visit(page: Page, address: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
  }, address);
  await settled(page);
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
  await page.waitForFunction(() => !document.querySelector('[aria-busy="true"], [data-loading="true"]'));
}

const NONSENSE = /\bNaN\b|\bundefined\b|Invalid Date|\[object Object\]|\bInfinity\b|∞/;

export async function expectSense(page: Page, where: string): Promise<void> {
  // What is seen, not what is in the document: a script element says what it likes.
  // biome-ignore lint/performance/useDomNodeTextContent: see above
  const text = await page.locator('body').innerText();
  expect(NONSENSE.exec(text)?.[0], `what ${where} says:\n${text}`).toBeUndefined();
}
