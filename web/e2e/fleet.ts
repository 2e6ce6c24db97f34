// A fleet as one would find it on an ordinary afternoon: real factories at work on real repositories, with jobs in every
// stage, budgets that are spent from, topics with depth, and a few things that somebody should look at.

import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import type { Job } from '../src/api/types';
import { PLAYS, REPOS } from './fleet-code';
import { engineThatPlays, type Play } from './harness/engine';
import { openBrowser } from './harness/tabs';
import { Worker } from './harness/worker';
import { good, sent, World } from './harness/world';

/// Started before the tests of a file and stopped after them, with a browser.
export function demoFleet(): { fleet: DemoFleet; browser: Browser } {
  const stage = {} as { fleet: DemoFleet; browser: Browser };
  beforeAll(async () => {
    stage.fleet = await startDemoFleet();
    stage.browser = await openBrowser();
  }, 180_000);
  afterAll(async () => {
    await stage.browser?.close();
    await stage.fleet?.stop();
  });
  return stage;
}

interface DemoFleet {
  world: World;
  /// Jobs by name.
  jobs: Map<string, Job>;
  stop(): Promise<void>;
}

/// What the engine is still at when the pictures are taken.
const AT_WORK: [when: string, says: string, usd: number][] = [
  ['new payment API', 'I follow the calls to the old payment API: 11 places in 4 files.', 2.2],
  ['order mail', 'I collect the sentences that customers are sent.', 0.6],
  ['tiles of the map', 'I measure how long tiles take: 410 ms for the slowest.', 1.4],
  ['migration guide', 'I list what changed for callers since 2.3.', 0.4],
];

async function startDemoFleet(): Promise<DemoFleet> {
  const world = await World.start({ repos: REPOS, flags: { strict: false } });
  const jobs = new Map<string, Job>();
  try {
    const worker = await build(world, jobs);
    return {
      world,
      jobs,
      async stop() {
        worker.leave();
        await world.stop();
      },
    };
  } catch (error) {
    await world.stop();
    throw error;
  }
}

async function build(world: World, jobs: Map<string, Job>): Promise<Worker> {
  const never = join(world.folder.path, 'never');
  const plays: Play[] = [
    ...PLAYS,
    ...AT_WORK.map(([when, says, usd]) => ({ when, says: [says, 'Done.'], usd, waitsFor: never })),
  ];
  const programs = { claude: engineThatPlays(plays, world.playing) };
  await budgets(world);
  await Promise.all([
    world.factory('forge-1', { seats: 3, programs }),
    world.factory('forge-2', { seats: 3, programs }),
    world.factory('forge-3', { seats: 2, products: ['atlas'], programs }),
    world.factory('mac-mini', { seats: 1, programs: { xcodebuild: '#!/bin/sh\n' } }),
    world.factory('annex-1', { seats: 2 }),
  ]);
  const submit = async (name: string, text: string, manifest: Record<string, unknown>) => {
    const job = await world.submit({ name, engine: 'claude', priority: 'normal', ...manifest }, text);
    jobs.set(name, job);
    return job;
  };
  await whatIsOver(world, submit);
  await Promise.all([reviews(world, submit), release(world, jobs), topicJobs(world)]);
  const drain = { params: { path: { id: 'mac-mini' } }, body: { undo: false } };
  await good(world.api().POST('/api/fleet/factories/{id}/drain', drain));
  await world.killFactory('annex-1');
  await whatIsAtWork(world, submit);
  await whatWaits(world, submit);
  const worker = await topicWorker(world);
  await world.eventually('annex-1 is missed', async () => {
    const { factories } = await good(world.api().GET('/api/fleet/factories', {}));
    return factories.some((factory) => factory.id === 'annex-1' && !factory.live);
  });
  return worker;
}

type Submit = (name: string, text: string, manifest: Record<string, unknown>) => Promise<Job>;
const SHOP = { product: 'shop', repo: 'storefront' };
const ATLAS = { product: 'atlas', repo: 'atlas' };
const LEDGER = { product: 'billing', repo: 'ledger' };

async function budgets(world: World): Promise<void> {
  const set = (product: string, ceilings: Record<string, number>, jobUsd: number | null) =>
    good(
      world
        .api()
        .PUT('/api/fleet/budgets/{product}', { params: { path: { product } }, body: { ceilings, jobUsd } }),
    );
  await set('shop', { day: 20, month: 300 }, 4);
  await set('atlas', {}, null);
  await set('billing', { week: 50 }, 5);
}

async function whatIsOver(world: World, submit: Submit): Promise<void> {
  const verify = ['sh test.sh'];
  const shipped = [
    await submit('Cache the price list', 'Checkout reads the price list for every line.', {
      ...SHOP,
      ship: 'auto',
      verify,
    }),
    await submit('Say how to start it', 'The README says nothing about how to start it.', {
      ...SHOP,
      ship: 'auto',
    }),
    await submit('Add the northern routes', 'Add the northern routes.', { ...ATLAS, ship: 'auto', verify }),
  ];
  const failed = await submit('Upgrade the linter', 'Move to the linter of this year. All rules stay.', {
    ...SHOP,
    verify: ['echo "src/cart.ts:12 prefer-const"; echo "3 problems"; exit 1'],
    retry: { max: 0, backoff: '1s' },
  });
  const cancelled = await submit('Rewrite the map in one night', 'No.', {
    ...ATLAS,
    capabilities: ['night-shift'],
    priority: 'low',
  });
  const path = { id: cancelled.id, action: 'cancel' as const };
  const body = { reason: 'it would have taken two' };
  await good(world.api().POST('/api/fleet/jobs/{id}/actions/{action}', { params: { path }, body }));
  await Promise.all(shipped.map(({ id }) => world.waitFor(id, 'shipped')));
  await world.waitFor(failed.id, 'failed', 'dead_letter');
}

async function reviews(world: World, submit: Submit): Promise<void> {
  const review = { quorum: 1, reviewers: [] };
  const verify = ['sh test.sh'];
  const once = await submit(
    'Fix rounding in the cart total',
    'The total in the cart is a cent lower than the one that **is printed on the invoice**.\n\n- round each line\n- keep `total()` as it is for callers\n',
    { ...SHOP, priority: 'high', review, verify },
  );
  const twice = await submit(
    'Retry webhooks that fail',
    'A message is lost when a receiver is down for a moment. Try again, with the same id, and give up for good on 410.',
    { ...SHOP, review, verify },
  );
  const first = await world.waitFor(twice.id, 'review');
  await good(
    world.api().POST('/api/fleet/jobs/{id}/review', {
      params: { path: { id: twice.id } },
      body: {
        verdict: 'request_changes',
        comment: 'Good. Please say in the comment what **410** means, and why it ends the tries.',
        leaseEpoch: first.result?.leaseEpoch,
      },
    }),
  );
  await world.until(twice.id, (job) => job.stage === 'review' && job.leaseEpoch > first.leaseEpoch);
  await world.waitFor(once.id, 'review');
}

/// A composite: some children have shipped, one is at work, others wait for it.
async function release(world: World, jobs: Map<string, Job>): Promise<void> {
  const parent = await world.submit(
    { name: 'Release 2.4', kind: 'composite', product: 'atlas' },
    'Everything that goes out with 2.4.',
  );
  jobs.set(parent.name, parent);
  const child = (name: string, bodyMd: string, deps: string[], more: Record<string, unknown> = {}) => ({
    manifest: sent({ name, ...ATLAS, engine: 'claude', ship: 'auto', deps, ...more }),
    bodyMd,
  });
  const children = [
    child('release notes', 'Write the release notes.', []),
    child('migration guide', 'Write the migration guide.', []),
    child('map tiles', 'Make the tiles of the map faster.', ['release notes'], { priority: 'high' }),
    child('load test', 'Drive a thousand routes a second.', ['map tiles']),
    child('staging', 'Put it on staging.', ['load test', 'migration guide']),
    child('announce', 'Tell everybody.', ['staging']),
  ];
  const [notes] = await world.addChildren(parent.id, children);
  if (notes) await world.waitFor(notes.id, 'shipped');
}

async function whatIsAtWork(world: World, submit: Submit): Promise<void> {
  const started = [
    await submit('Move checkout to the new payment API', 'Move checkout to the new payment API.', {
      ...SHOP,
      priority: 'critical',
      budget: { usd: 6 },
    }),
    await submit('Translate the order mail', 'Translate the order mail into Portuguese.', {
      ...SHOP,
      budget: { usd: 2 },
    }),
  ];
  await Promise.all(started.map(({ id }) => world.waitFor(id, 'building')));
}

async function whatWaits(world: World, submit: Submit): Promise<void> {
  const params = { path: { product: 'billing' } };
  const body = { reason: 'until the books of the quarter are closed', stopRunning: false };
  await good(world.api().POST('/api/fleet/budgets/{product}/pause', { params, body }));
  await submit('Book refunds twice', 'Book refunds on both sides.', { ...LEDGER, priority: 'high' });
  await submit('Tidy the rules', 'One rule, one line.', { ...LEDGER, priority: 'low' });
  await submit('Build the iOS app', 'Build it and keep the archive.', {
    ...SHOP,
    engine: 'shell',
    script: 'xcodebuild',
    capabilities: ['has:xcodebuild'],
  });
  await submit('Train the ranking model', 'Train it on the orders of last month.', {
    ...SHOP,
    capabilities: ['gpu:a100'],
  });
}

async function topicJobs(world: World): Promise<void> {
  const jobs: [product: string, topic: string, count: number, payload: (index: number) => unknown][] = [
    ['shop', 'mail', 64, (i) => ({ to: `customer-${i}`, letter: 'order confirmed' })],
    ['shop', 'thumbnails', 212, (i) => ({ picture: `tea-${i}.png`, width: 320 })],
    ['billing', 'invoices', 5, (i) => ({ invoice: 4_000 + i })],
    ['atlas', 'tiles', 38, (i) => ({ zoom: 7, column: i })],
  ];
  for (const [product, name, length, make] of jobs) {
    const retry = { max: name === 'invoices' ? 0 : 3, backoff: '1s' };
    const params = { path: { name }, header: { 'x-product-id': product } };
    const body = { jobs: Array.from({ length }, (_, i) => ({ payload: make(i), retry })) } as never;
    await good(world.api().POST('/api/fleet/topics/{name}/jobs', { params, body }));
  }
  const gate = { params: { path: { name: 'thumbnails' }, header: { 'x-product-id': 'shop' } } };
  await good(world.api().POST('/api/fleet/topics/{name}/pause', gate as never));
}

/// Takes letters and holds a few; a second one cannot read any invoice.
async function topicWorker(world: World): Promise<Worker> {
  const broken = await Worker.serve(world, 'billing', ['invoices'], 'printer-2', () => ({
    error: 'the printer is out of paper (tray 2)',
    permanent: true,
  }));
  let seen = 0;
  const mail = await Worker.serve(world, 'shop', ['mail'], 'mailer-1', () => {
    seen += 1;
    return seen > 40 ? undefined : null;
  });
  await world.eventually('the invoices are dead', async () => {
    const { topics } = await good(world.api().GET('/api/fleet/topics', {}));
    return topics.find((topic) => topic.name === 'invoices')?.byState.dead === 5;
  });
  broken.leave();
  return mail;
}
