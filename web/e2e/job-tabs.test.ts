// The tabs of a job where they do not all fit: the chosen one is in sight, and one sees that there are more.

import { expect, it } from 'vitest';
import { setTheStage } from './harness';

const stage = setTheStage();

it('shows the chosen tab on a phone, and where there are more', async () => {
  const { id } = await stage.world.submit({ name: 'many tabs', runAt: '2040-01-01T00:00:00.000Z' });
  const { page } = await stage.open(`/jobs/${id}?tab=explain`, { width: 375, height: 700 });
  const strip = page.getByRole('tablist').first();
  const chosen = strip.getByRole('tab', { selected: true });
  const inSight = async () => {
    const [around, own] = [await strip.boundingBox(), await chosen.boundingBox()];
    if (!around || !own) return false;
    return own.x >= around.x && own.x + own.width <= around.x + around.width;
  };
  const more = () =>
    strip.evaluate((list) => [list.hasAttribute('data-more-before'), list.hasAttribute('data-more-after')]);
  await chosen.filter({ hasText: 'Explain' }).waitFor();
  await expect.poll(inSight).toBe(true);
  await expect.poll(more).toEqual([true, false]);
  expect(await page.evaluate(() => window.scrollY)).toBe(0);

  await strip.getByRole('tab', { name: 'Overview' }).click();
  await expect.poll(inSight).toBe(true);
  await expect.poll(more).toEqual([false, true]);
});
