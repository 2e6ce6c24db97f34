// The pictures of the README and the docs: real pages of a real fleet. `npm run screenshots`.

import { mkdir, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { demoFleet } from './fleet';
import { Tab } from './harness/tabs';
import { drawn, gigaTop } from './harness/terminal';
import { expectSense, settled } from './harness/walk';

const IMAGES = resolve('../docs/images');
const LARGEST = 300_000;

const stage = demoFleet();
beforeAll(() => mkdir(IMAGES, { recursive: true }));

const job = (name: string) => {
  const found = stage.fleet.jobs.get(name);
  if (!found) throw new Error(`the fleet has no job ${name}`);
  return found.id;
};

interface Picture {
  name: string;
  path: () => string;
  schemes: ('light' | 'dark')[];
  height?: number;
  /// What must be drawn before it is taken.
  shows?: string;
}

const PICTURES: Picture[] = [
  { name: 'fleet', path: () => '/', schemes: ['light', 'dark'] },
  { name: 'jobs', path: () => '/jobs', schemes: ['light', 'dark'] },
  { name: 'job', path: () => `/jobs/${job('Retry webhooks that fail')}`, schemes: ['light', 'dark'] },
  { name: 'diff', path: () => `/jobs/${job('Fix rounding in the cart total')}?tab=diff`, schemes: ['dark'] },
  {
    name: 'graph',
    path: () => `/jobs/${job('Release 2.4')}?tab=graph`,
    schemes: ['light', 'dark'],
    height: 680,
  },
  {
    name: 'explain',
    path: () => `/jobs/${job('Build the iOS app')}?tab=explain`,
    schemes: ['dark'],
    height: 720,
  },
  { name: 'new-job', path: () => `/new?from=${job('Fix rounding in the cart total')}`, schemes: ['light'] },
  { name: 'budget', path: () => '/budgets/shop?span=day', schemes: ['light', 'dark'], shows: 'canvas' },
  { name: 'budgets', path: () => '/budgets', schemes: ['dark'] },
  { name: 'topics', path: () => '/topics', schemes: ['light'], height: 540 },
];

const shots = PICTURES.flatMap((picture) => picture.schemes.map((scheme) => ({ ...picture, scheme })));

test.each(shots)('$name in $scheme', async ({ name, path, scheme, height = 860, shows = 'h1' }) => {
  const tab = await Tab.open(stage.browser, stage.fleet.world.url, { scheme, width: 1360, height });
  try {
    await tab.goto(`${path()}#token=${stage.fleet.world.token}`);
    await tab.page.getByLabel('Connection: live').waitFor();
    await settled(tab.page);
    await tab.page.locator(shows).first().waitFor({ state: 'attached' });
    await expectSense(tab.page, name);
    const file = `${IMAGES}/${name}-${scheme}.png`;
    await tab.page.screenshot({ path: file, animations: 'disabled' });
    expect((await stat(file)).size).toBeLessThan(LARGEST);
  } finally {
    expect(await tab.close()).toEqual([]);
  }
});

test('giga top', async () => {
  const screen = await gigaTop(stage.fleet.world, { columns: 112, lines: 15, shows: 'Fix roundin' });
  const page = await stage.browser.newPage();
  await page.setContent(drawn(screen));
  const file = `${IMAGES}/top.png`;
  await page.locator('#screen').screenshot({ path: file });
  await page.close();
  expect((await stat(file)).size).toBeLessThan(LARGEST);
});
