import AxeBuilder from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { demoFleet } from './fleet';
import { Tab } from './harness/tabs';
import { addresses, expectSense, settled, visit } from './harness/walk';

// Every page, full of things, as everybody may see it: dark and light, on a desk and on a phone.

const stage = demoFleet();

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'];

async function violations(where: string, axe: AxeBuilder): Promise<string[]> {
  const found = (await axe.setLegacyMode().analyze()).violations;
  return found.map(({ id, help, nodes }) => {
    const shown = nodes.slice(0, 3).map((node) => `${node.target.join(' ')}: ${node.html.slice(0, 160)}`);
    return `${where}: ${id} (${help}), ${nodes.length} times:\n    ${shown.join('\n    ')}`;
  });
}

/// Colours on their way from one to another are nobody's colours: the page hears of new ones a moment later, and fades over.
async function inColours(page: Page, colorScheme: 'dark' | 'light'): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.waitForFunction(
    (wanted) =>
      document.documentElement.dataset.mantineColorScheme === wanted &&
      !document.getAnimations().some((one) => one instanceof CSSTransition),
    colorScheme,
  );
}

/// Every rule in the dark; in the light those again that go by colours.
async function looked(page: Page, where: string): Promise<string[]> {
  await inColours(page, 'dark');
  const dark = await violations(`${where} (dark)`, new AxeBuilder({ page }).withTags(RULES));
  await inColours(page, 'light');
  const colours = new AxeBuilder({ page }).withRules(['color-contrast', 'link-in-text-block']);
  return [...dark, ...(await violations(`${where} (light)`, colours))];
}

function everywhere(): string[] {
  const id = (name: string) => stage.fleet.jobs.get(name)?.id ?? '';
  return [
    ...addresses({ job: id('Retry webhooks that fail'), product: 'shop', topic: 'mail' }),
    `/jobs/${id('Release 2.4')}?tab=graph`,
    `/jobs/${id('Upgrade the linter')}`,
    `/jobs/${id('Move checkout to the new payment API')}`,
    `/jobs/${id('Build the iOS app')}?tab=explain`,
    `/new?from=${id('Fix rounding in the cart total')}`,
    '/jobs?stage=queued,building&priority=high',
    '/topics/billing/invoices?state=dead',
    '/budgets/billing',
    '/budgets/atlas',
  ];
}

test.each([1280, 375])('dark and light at %i px', async (width) => {
  const tab = await Tab.open(stage.browser, stage.fleet.world.url, { width, height: 800 });
  const { page } = tab;
  const wrong: string[] = [];
  await tab.goto('/');
  await settled(page);
  wrong.push(...(await looked(page, 'login')));
  await tab.goto(`/#token=${stage.fleet.world.token}`);
  await page.reload();
  await page.getByLabel('Connection: live').waitFor();
  for (const address of everywhere()) {
    await visit(page, address);
    await expectSense(page, address);
    wrong.push(...(await looked(page, address)));
    const over = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    if (over > 0) wrong.push(`${address}: the page is ${over} px wider than the screen`);
  }
  expect(wrong.join('\n')).toBe('');
  expect(await tab.close()).toEqual([]);
});
