// Making a job on the page: nothing that was typed is lost, and nothing is made twice.

import { describe, expect, it } from 'vitest';
import { emit } from '../src/pages/new-job/emit';
import type { Manifest } from '../src/pages/new-job/form';
import { firstOf, good, NETWORK, setTheStage } from './harness';

const stage = setTheStage({ factories: ['w1'] });

/// Held back for years, so that nothing runs.
const LATER = '2040-01-01T00:00:00.000Z';

async function named(name: string): Promise<number> {
  const query = { name, limit: '100' };
  return (await good(stage.world.api().GET('/api/fleet/jobs', { params: { query } }))).jobs.length;
}

describe('the manifest as text', () => {
  it('says to the coordinator what the form says as JSON', async () => {
    const awkward = [
      'a: b', '- x', '#c', 'a #b', '"q"', "'q'", 'true', 'null', '~', 'yes', '0x10', '1e3', '2026-01-01', '{a}', '[b]',
      '*x', '&y', '!z', '|', '>', '%d', '@at', '`bt`', 'a\nb', 'a\n\nb\n', '  lead', 'trail  ', 'a\tb', 'x\u2028y',
      'x\u0085y', 'é', '日本', '😀', 'a\r\nb', '---', 'x\n---\ny', '...', 'a: |', '? x', ': y', 'a:', 'a,b', 'a]b', '\\n',
      '<script>window.__pwned = 1</script>', 'os:linux', 'a.', '\tx\ny', 'a\n\t\nb', 'a \nb', 'x\n\n\n', '12:30:45',
      '#!/bin/sh\necho "$1" | sed \'s/:/#/\'\n', 'a\n\n  indented\nend', '1h30m', 'a\n b\n  c\n',
    ]; // biome-ignore format: a table
    const bodies = ['', 'x', '---\n', '\n\n', 'a\r\nb', '\ufeffx', '日本\u2028'];
    for (const [at, text] of awkward.entries()) {
      const manifest: Manifest = {
        name: 'same',
        product: 'demo',
        engine: 'shell',
        script: text,
        verify: ['true', text],
        budget: { usd: 2.5, wall: '1h30m' },
        review: { quorum: 1, reviewers: ['ana'] },
        runAt: LATER,
      };
      const body = bodies[at % bodies.length] ?? '';
      const params = { header: { 'idempotency-key': `same-${at}` } };
      const json = { manifest: manifest as unknown as Record<string, never>, bodyMd: body };
      const made = await good(stage.world.api().POST('/api/fleet/jobs', { params, body: json }));
      // With the same key: the same job for the same content, refused for any other.
      const again = await stage.world.api().POST('/api/fleet/jobs', {
        params,
        headers: { 'Content-Type': 'text/markdown' },
        body: emit(manifest, body),
        bodySerializer: (sent) => String(sent),
      });
      expect([again.response.status, again.error], JSON.stringify(text)).toEqual([200, undefined]);
      expect(again.data?.job.id).toBe(made.job.id);
    }
  });
});

describe('a draft', () => {
  it('is there again after a reload, edited by hand too, and errors stand at their lines', async () => {
    const { page, tolerate } = await opened();
    tolerate();
    await page.getByRole('textbox', { name: 'Name' }).fill('half typed');
    await page.getByRole('textbox', { name: 'Cost limit' }).fill('lots');
    await page.getByText('budget.usd must be a number of dollars').waitFor();
    await page.reload();
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('half typed');
    expect(await page.getByRole('textbox', { name: 'Cost limit' }).inputValue()).toBe('lots');

    await page.getByRole('tab', { name: 'Manifest' }).click();
    const manifest = page.getByRole('textbox', { name: 'Manifest' });
    await manifest.fill('---\nname: by hand\nenigne: shell\n---\nDo it.\n');
    await page.getByText('Line 3:').waitFor();
    await page.reload();
    expect(await manifest.inputValue()).toContain('enigne');
    await page.getByRole('button', { name: 'Start over' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Start over' }).click();
    await expect.poll(() => page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('');
  });

  it('becomes one job by two clicks', async () => {
    const { page } = await opened();
    await fill(page, 'one of it');
    await page.getByRole('button', { name: 'Submit', exact: true }).dblclick();
    await page.waitForURL(/\/jobs\/[0-9A-Z]{26}/);
    expect(await named('one of it')).toBe(1);
  });

  it('becomes one job although the first answer was lost', async () => {
    const { page, tolerate } = await opened();
    tolerate();
    await fill(page, 'answer lost');
    let lost = 0;
    await page.route('**/api/fleet/jobs', async (route) => {
      if (route.request().method() !== 'POST' || lost > 0) return route.fallback();
      lost += 1;
      await route.fetch();
      return route.abort('connectionreset');
    });
    await page.getByRole('button', { name: 'Submit', exact: true }).click();
    await page.getByText('No answer from the coordinator').waitFor();
    expect(await named('answer lost')).toBe(1);
    await page.getByRole('button', { name: 'Submit again' }).click();
    await page.waitForURL(/\/jobs\/[0-9A-Z]{26}/);
    expect([lost, await named('answer lost')]).toEqual([1, 1]);
  });

  it('that no factory can run is submitted only by who says so', async () => {
    const { page } = await opened();
    await fill(page, 'never runs');
    await page.getByRole('combobox', { name: 'Engine' }).fill('nobody-has-it');
    await page.getByText('No factory in the fleet can run this job').waitFor();
    await page.getByRole('button', { name: 'Submit anyway…' }).click();
    await page.getByRole('button', { name: 'Keep' }).click();
    expect(await named('never runs')).toBe(0);
    await page.getByRole('button', { name: 'Submit anyway…' }).click();
    await page.getByRole('button', { name: 'Submit anyway', exact: true }).click();
    await page.waitForURL(/\/jobs\/[0-9A-Z]{26}/);
    expect(await named('never runs')).toBe(1);
  });

  it('is not sent before a dry run of what stands there now has judged it', async () => {
    const { page } = await opened();
    await fill(page, 'too fast');
    const asked = page.getByRole('dialog', { name: 'Submit although no factory can run it?' });
    const leave = page.getByRole('button', { name: 'Keep' });
    const engine = page.getByRole('combobox', { name: 'Engine' });
    await engine.fill('nobody');
    await engine.press('Control+Enter');
    await firstOf(asked.getByText(/nobody/)).waitFor();
    await leave.click();
    await engine.fill('shell');
    await page.getByRole('button', { name: 'Submit', exact: true }).waitFor();
    await page.getByText('Up to date').waitFor();
    const capabilities = page.getByRole('combobox', { name: 'Capabilities' });
    await capabilities.fill('gpu:h100');
    // Not closed with Enter: leaving the input counts, and so does the hotkey.
    await page.getByRole('button', { name: 'Submit', exact: true }).click();
    await firstOf(asked.getByText(/gpu:h100/)).waitFor();
    await leave.click();
    await page.getByRole('button', { name: 'Submit anyway…' }).waitFor();
    await capabilities.fill('gpu:h200');
    await capabilities.press('Control+Enter');
    await firstOf(asked.getByText(/gpu:h200/)).waitFor();
    await leave.click();
    expect(await named('too fast')).toBe(0);
  });

  it('is not sent without a dry run by who did not say so, and an older answer is not taken for one', async () => {
    const { page, tolerate } = await opened();
    tolerate();
    await fill(page, 'nobody answers');
    await page.getByText('w1', { exact: true }).first().waitFor();
    await page.route('**/api/fleet/plan', (route) => route.abort('connectionreset'));
    await page.getByRole('textbox', { name: 'Cost limit' }).fill('1');
    await page.getByText('No answer', { exact: true }).waitFor();
    expect(await page.getByText('w1', { exact: true }).count()).toBe(0);
    await page.getByRole('button', { name: 'Submit', exact: true }).click();
    const asked = page.getByRole('dialog', { name: 'Submit without a dry run?' });
    await asked.getByRole('button', { name: 'Keep' }).click();
    expect(await named('nobody answers')).toBe(0);
    await page.getByRole('button', { name: 'Submit', exact: true }).click();
    await asked.getByRole('button', { name: 'Submit without a dry run' }).click();
    await page.waitForURL(/\/jobs\/[0-9A-Z]{26}/);
    expect(await named('nobody answers')).toBe(1);
  });

  it('that the flag `strict` refuses is not offered to be submitted', async () => {
    const { page } = await opened();
    await fill(page, 'strictly not');
    await page.getByRole('combobox', { name: 'Engine' }).fill('nobody-has-it');
    await page.getByRole('button', { name: 'Submit anyway…' }).waitFor();
    await stage.world.flag('strict', true);
    try {
      await page.getByText('The flag strict refuses jobs that no factory can run.').waitFor();
      expect(await page.getByRole('button', { name: 'Submit', exact: true }).isDisabled()).toBe(true);
    } finally {
      await stage.world.flag('strict', false);
    }
    await page.getByRole('button', { name: 'Submit anyway…' }).waitFor();
  });

  it('whose time is half typed does not start now', async () => {
    const { page } = await opened();
    await fill(page, 'half a time');
    const time = page.getByLabel('Not before');
    const submit = page.getByRole('button', { name: 'Submit', exact: true });
    await time.focus();
    await time.press('Delete');
    await page.getByText('Incomplete: enter a date and a time').waitFor();
    expect(await submit.isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Start over' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Start over' }).click();
    await page.getByText('Incomplete: enter a date and a time').waitFor({ state: 'hidden' });

    // From an empty one, too, of which the browser tells nothing.
    await page.getByRole('textbox', { name: 'Name' }).fill('half a time');
    await time.focus();
    await time.press('1');
    await page.getByText('Incomplete: enter a date and a time').waitFor();
    expect(await submit.isDisabled()).toBe(true);
    await time.fill('2040-01-01T00:00');
    await page.getByText('Incomplete: enter a date and a time').waitFor({ state: 'hidden' });
    expect(await submit.isEnabled()).toBe(true);
  });

  it('for one product is not taken for a job of another', async () => {
    const { page } = await opened();
    const product = page.getByRole('combobox', { name: 'Product' });
    await page.getByRole('textbox', { name: 'Name' }).fill('of demo');
    await product.fill('demo');
    const there = new URL('/new?product=atlas', page.url()).href;
    await page.goto(there);
    await page.getByText('“of demo” is for demo').waitFor();
    await page.getByRole('button', { name: 'Continue the draft' }).click();
    await expect.poll(() => product.inputValue()).toBe('demo');
    await page.goto(there);
    await page.getByRole('button', { name: 'Start over for atlas' }).click();
    await expect.poll(() => product.inputValue()).toBe('atlas');
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('');
    await page.getByRole('textbox', { name: 'Name' }).fill('of atlas');
    await page.reload();
    await expect.poll(() => page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('of atlas');
  });

  it('starts from another job with all that it said', async () => {
    const first = await stage.world.submit({
      name: 'the first',
      engine: 'shell',
      script: 'echo <b>1</b>\necho 2\n',
      verify: ['true'],
      runAt: LATER,
    });
    const tab = await stage.open(`/new?from=${first.id}`);
    await tab.page.getByRole('button', { name: 'Submit', exact: true }).click();
    await tab.page.waitForURL(/\/jobs\/[0-9A-Z]{26}/);
    const id = new URL(tab.page.url()).pathname.split('/').at(-1) ?? '';
    const { idempotencyKey, ...second } = (await stage.world.job(id)).manifest as Record<string, unknown>;
    expect(idempotencyKey).toMatch(/^web-/);
    expect(second).toEqual((await stage.world.job(first.id)).manifest);
  });
});

async function opened() {
  const tab = await stage.open('/new');
  // What is refused, and what is cut on purpose, the browser says on its console.
  return { page: tab.page, tolerate: () => tab.tolerate(NETWORK) };
}

async function fill(page: Awaited<ReturnType<typeof opened>>['page'], name: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Name' }).fill(name);
  await page.getByRole('combobox', { name: 'Product' }).fill('demo');
  // The factory has no engine that reads prompts.
  await page.getByRole('combobox', { name: 'Engine' }).fill('shell');
  await page.getByLabel('Script', { exact: true }).fill('true');
  await page.getByRole('button', { name: 'More fields' }).click();
  await page.getByLabel('Not before').fill('2040-01-01T00:00');
  await page.getByText('Up to date').waitFor();
}
