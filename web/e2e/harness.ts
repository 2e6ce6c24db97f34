// What every browser test starts from: one world per file, a fresh browser context per test, and complaints that fail it.

import type { Browser, Locator } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { openBrowser, Tab, type TabOptions } from './harness/tabs';
import { World, type WorldOptions } from './harness/world';

export { Tab } from './harness/tabs';
export { good } from './harness/world';

/// What the browser says when a connection is cut or a call is refused on purpose.
export const NETWORK = /Failed to load resource|net::ERR_/;

/// Of several places that say the same.
export const firstOf = (found: Locator): Locator => found.first();

interface OpenOptions extends TabOptions {
  /// Who signs in; nobody when it is null, the admin without it.
  token?: string | null;
}

export interface Stage {
  readonly world: World;
  /// A tab of its own that shows this page.
  open(path?: string, options?: OpenOptions): Promise<Tab>;
}

export function setTheStage(options: WorldOptions = {}): Stage {
  let world: World | undefined;
  let browser: Browser | undefined;
  const tabs: Tab[] = [];

  beforeAll(async () => {
    world = await World.start(options);
    browser = await openBrowser();
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') await Promise.all(tabs.map((tab) => tab.keep(task.name)));
    const complaints = await Promise.all(tabs.splice(0).map((tab) => tab.close()));
    expect(complaints.flat().join('\n'), 'what the browser complained about').toBe('');
  });

  afterAll(async () => {
    await browser?.close();
    await world?.stop();
  });

  return {
    get world() {
      if (!world) throw new Error('the world is not there yet');
      return world;
    },
    async open(path = '/', { token, ...tabOptions } = {}) {
      if (!world || !browser) throw new Error('the world is not there yet');
      const tab = await Tab.open(browser, world.url, tabOptions);
      tabs.push(tab);
      const who = token === undefined ? world.token : token;
      await tab.goto(who ? `${path}#token=${who}` : path);
      return tab;
    },
  };
}
