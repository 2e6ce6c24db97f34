import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { good, setTheStage, type Tab } from './harness';
import { Holder } from './harness/holder';
import { settled, visit } from './harness/walk';
import { Worker } from './harness/worker';
import { sent } from './harness/world';
import { ESCAPES, PAYLOADS } from './hostile';

// Everything that an outsider writes is shown as the text that it is. Every test of this project fails when a script
// runs, a dialog opens, a policy is broken or another host is asked for anything; these see to it that there is a reason.

const stage = setTheStage({ flags: { lease_ms: 600_000 } });

/// How many of them can be read as they were written.
async function readable(page: Page, texts: readonly string[]): Promise<string[]> {
  const seen = flat((await page.locator('body').textContent()) ?? '');
  return texts.filter((text) => seen.includes(flat(text)));
}

const flat = (text: string) => text.replaceAll(/\s+/g, ' ');

/// Whatever could be clicked by mistake.
async function poke(page: Page): Promise<void> {
  for (const link of await page.locator('main a').all()) {
    const href = (await link.getAttribute('href')) ?? '';
    expect(href, 'a link leads into the page or to the web').toMatch(/^(\/|https?:\/\/|mailto:|#|\?)/);
  }
  expect(
    await page.locator('main :is(script, iframe, object, embed, base, meta, form[action])').count(),
  ).toBe(0);
}

test('names: in the table, in the header, in the title of the window, in questions and in the fleet', async () => {
  const { world } = stage;
  const jobs = PAYLOADS.filter((name) => name.length <= 120).map((name) => ({
    manifest: sent({ name, product: 'demo', capabilities: ['moon'] }),
    bodyMd: 'x',
  }));
  const made = await good(world.api().POST('/api/fleet/jobs/batch', { body: { jobs } }));
  const tab = await stage.open('/jobs', { height: 2_200 });
  await tab.page.getByText('__pwned=1<').first().waitFor();
  expect((await readable(tab.page, jobs.map(nameOf))).length).toBe(jobs.length);
  await poke(tab.page);
  await visit(tab.page, '/');
  for (const { job } of made.jobs.slice(0, 12)) {
    await visit(tab.page, `/jobs/${job.id}`);
    await tab.page.getByRole('heading', { level: 1, name: job.name, exact: true }).waitFor();
    await tab.page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await tab.page.getByRole('dialog').getByText(`Cancel ${job.name}?`).waitFor();
    await tab.page.keyboard.press('Escape');
    await tab.page.getByRole('dialog').waitFor({ state: 'detached' });
  }
});

const nameOf = (item: { manifest: Record<string, unknown> }) => String(item.manifest.name);

test('bodies, personas and review comments are Markdown, and stay harmless', async () => {
  const { world } = stage;
  const everything = PAYLOADS.join('\n\n');
  const params = { path: { name: 'hostile' }, header: { 'x-product-id': 'demo' } };
  await good(
    world.api().POST('/api/fleet/profiles/{name}', { params, body: { personaMd: everything, defaults: {} } }),
  );
  const holder = await Holder.enrol(world, 'press-1');
  const job = await world.submit(
    { name: 'hostile body', persona: 'hostile', review: { quorum: 1, reviewers: [] } },
    `The body begins.\n\n${everything}\n\nThe body ends.`,
  );
  await holder.report(await holder.take(job.id), { summary: PAYLOADS.join(' ') });
  await world.waitFor(job.id, 'review');
  await good(
    world.api().POST('/api/fleet/jobs/{id}/review', {
      params: { path: { id: job.id } },
      body: { verdict: 'request_changes', comment: everything, reviewer: '<b onclick=__pwned=60>ana</b>' },
    }),
  );
  const { page } = await stage.open(`/jobs/${job.id}`);
  await page.getByText('The body begins.').waitFor();
  await page.getByText('<b onclick=__pwned=60>ana</b>').first().waitFor();
  await poke(page);
  expect(await page.locator('main img').count()).toBe(0);
  await visit(page, '/new');
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).fill(everything);
  await page.getByText('Preview', { exact: true }).click();
  await page.getByText('click').first().waitFor();
  await poke(page);
});

test('logs with escapes, file names, reports and failures', async () => {
  const { world } = stage;
  const holder = await Holder.enrol(world, 'press-2');
  const job = await world.submit({ name: 'hostile run', retry: { max: 3, backoff: '1h' } });
  const held = await holder.take(job.id);
  await holder.log(held, `the log begins\n${PAYLOADS.join('\n')}\n${ESCAPES.join('\n')}\nthe log ends\n`);
  const files = PAYLOADS.filter((name) => !name.includes('/')).slice(0, 12);
  for (const name of files) await holder.leave(held, name, name, 'text/html');
  await holder.leave(held, 'picture.svg', '<svg onload="__pwned=70"/>', 'image/svg+xml');
  await holder.fail(held, PAYLOADS.join('\n'), { reason: 'crash', retryable: false });
  await world.waitFor(job.id, 'failed', 'dead_letter');

  const tab = await stage.open(`/jobs/${job.id}?tab=log`, { height: 2_200 });
  const { page } = tab;
  await page.getByText('the log ends').waitFor();
  expect((await readable(page, PAYLOADS)).length).toBe(PAYLOADS.length);
  const log = (await page.locator('main').textContent()) ?? '';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none of these may be left
  expect(log).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u009b\u202e]/);
  await poke(page);
  await visit(page, `/jobs/${job.id}?tab=files`);
  for (const name of files) await page.getByText(name, { exact: true }).first().waitFor();
  await poke(page);
  for (const address of ['', '?tab=runs', '?tab=explain', '?tab=diff']) {
    await visit(page, `/jobs/${job.id}${address}`);
    await poke(page);
  }
  await visit(page, `/jobs/${job.id}`);
  await page.getByText('__pwned=1<').first().waitFor();
});

test('a pull request that is no web address is no link', async () => {
  const { world } = stage;
  const holder = await Holder.enrol(world, 'press-3');
  const job = await world.submit({ name: 'hostile report' });
  const held = await holder.take(job.id);
  const reported = holder.report(held, {
    summary: 'done',
    branch: '<img src=x onerror=__pwned=80>',
    pullRequest: 'javascript:__pwned=81',
    checks: [{ command: PAYLOADS[0] ?? '', passed: false, wallMs: 1, output: PAYLOADS.join('\n') }],
  });
  // Where the coordinator refuses it, there is nothing to show; where it does not, it is not followed.
  const taken = await reported.then(
    () => true,
    () => false,
  );
  if (!taken) await holder.report(held, { summary: 'done', checks: [] });
  const { page } = await stage.open(`/jobs/${job.id}?tab=runs`);
  await page.getByText('press-3').first().waitFor();
  await poke(page);
});

test('payloads and errors of topics', async () => {
  const { world } = stage;
  const params = { path: { name: 'mail' }, header: { 'x-product-id': 'demo' } };
  const jobs = PAYLOADS.map((payload) => ({ payload, retry: { max: 0 } }));
  await good(world.api().POST('/api/fleet/topics/{name}/jobs', { params, body: { jobs } as never }));
  const worker = await Worker.serve(world, 'demo', ['mail'], 'press-4', (job) => ({
    error: `cannot read ${job.payload}`,
    permanent: true,
  }));
  await world.eventually('all of them are dead', async () => {
    const { topics } = await good(world.api().GET('/api/fleet/topics', {}));
    return topics[0]?.byState.dead === PAYLOADS.length;
  });
  const { page } = await stage.open('/topics');
  await page.getByText('mail').first().waitFor();
  worker.leave();
  await visit(page, '/topics/demo/mail?state=dead');
  await page.getByText('cannot read').first().waitFor();
  const closed = await page.locator('main').getByRole('button', { expanded: false }).all();
  for (const button of closed.slice(0, 5)) await button.click();
  await poke(page);
});

test('addresses: what stands in them is text, and what leads astray is not found', async () => {
  const tab = await stage.open('/jobs');
  await tab.page.getByLabel('Connection: live').waitFor();
  // A product of such a name is refused by the coordinator, and the page says so.
  tab.tolerate(/Failed to load resource.* 400 /);
  for (const payload of PAYLOADS) {
    const word = encodeURIComponent(payload);
    await goThere(tab, `/jobs?name=${word}&stage=${word}&product=${word}&repo=${word}`);
    await goThere(tab, `/${word}#${word}`);
  }
  await goThere(tab, `/jobs?name=${encodeURIComponent(PAYLOADS[0] ?? '')}`);
  expect(
    await tab.page.getByLabel('Name contains').or(tab.page.locator('[data-filter]')).first().inputValue(),
  ).toBe(PAYLOADS[0]);
  await tab.page.goto(`${tab.origin}/?__proto__[x]=1&constructor=1#token=<script>__pwned=99</script>`);
  await settled(tab.page);
});

async function goThere(tab: Tab, address: string): Promise<void> {
  await visit(tab.page, address);
  await poke(tab.page);
}
