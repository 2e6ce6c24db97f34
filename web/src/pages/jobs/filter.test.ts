import { describe, expect, test } from 'vitest';
import type { FleetMetrics } from '../../api/types';
import { type JobsSearch, jobsSearch } from '../../app/search';
import { job } from '../../test/things';
import {
  byStage,
  chips,
  isFiltered,
  listCommand,
  matches,
  toggled,
  toParams,
  total,
  withoutChip,
} from './filter';

describe('the address', () => {
  test('gives only what is expected, as text', () => {
    expect(
      jobsSearch({
        stage: 'queued,failed',
        name: 123,
        repo: '',
        factory: ['a'],
        parent: { a: 1 },
        evil: 'x',
      }),
    ).toEqual({ stage: 'queued,failed', name: '123' });
  });

  test('goes to the API with the product as a header', () => {
    expect(toParams({ product: 'demo', stage: 'queued', name: 'fix' })).toEqual({
      header: { 'x-product-id': 'demo' },
      query: { stage: ['queued'], name: 'fix' },
    });
  });
});

test('a word of a list goes in and out; an empty list is none', () => {
  expect(toggled(undefined, 'queued')).toBe('queued');
  expect(toggled('queued', 'failed')).toBe('queued,failed');
  expect(toggled('queued, failed,', 'queued')).toBe('failed');
  expect(toggled('failed', 'failed')).toBeUndefined();
});

describe('chips', () => {
  const search: JobsSearch = { stage: 'queued,failed', product: 'demo', name: 'a,b' };

  test('are one for each word, and one for a name with a comma', () => {
    expect(chips(search).map(({ filter, word }) => `${filter} ${word}`)).toEqual([
      'stage queued',
      'stage failed',
      'product demo',
      'name a,b',
    ]);
    expect(isFiltered(search)).toBe(true);
    expect(isFiltered(jobsSearch({}))).toBe(false);
  });

  test('can be taken away one by one until nothing is left', () => {
    let rest = search;
    for (const chip of chips(search)) rest = withoutChip(rest, chip);
    expect(isFiltered(rest)).toBe(false);
    expect(withoutChip(search, { filter: 'stage', word: 'queued' })).toEqual({ ...search, stage: 'failed' });
  });
});

describe('a row', () => {
  const held = job(1, {
    stage: 'building',
    priority: 'high',
    repo: 'shop',
    parentId: 'p',
    name: 'Fix Ärger',
    lease: { factoryId: 'mac-1', grantedAt: '', expiresAt: '' },
  });
  test.each<[JobsSearch, boolean]>([
    [{}, true],
    [{ stage: 'queued,building' }, true],
    [{ stage: 'queued' }, false],
    [{ priority: 'high' }, true],
    [{ priority: 'low' }, false],
    [{ product: 'demo' }, true],
    [{ product: 'other' }, false],
    [{ repo: 'shop' }, true],
    [{ repo: 'sho' }, false],
    [{ factory: 'mac-1' }, true],
    [{ factory: 'mac-2' }, false],
    [{ parent: 'p' }, true],
    [{ parent: 'q' }, false],
    [{ name: 'fIX' }, true],
    [{ name: 'Är' }, true],
    // The store folds the case of A to Z only.
    [{ name: 'är' }, false],
    [{ stage: 'building', name: 'nothing' }, false],
  ])('with %j: %s', (search, yes) => {
    expect(matches(held, search)).toBe(yes);
  });
});

test.each<[JobsSearch, string]>([
  [{}, 'giga job list'],
  [{ stage: 'queued,failed', product: 'demo' }, 'giga job list --product demo --stage queued,failed'],
  [{ name: 'two words' }, "giga job list --name 'two words'"],
  [{ name: '-x' }, 'giga job list --name=-x'],
  [{ parent: '01J', factory: 'mac-1' }, 'giga job list --factory mac-1 --parent 01J'],
])('%j is the command %s', (search, command) => {
  expect(listCommand(search)).toBe(command);
});

describe('figures', () => {
  const metrics = {
    products: [
      { productId: 'demo', byStage: { queued: 3, failed: 1 } },
      { productId: 'shop', byStage: { queued: 4, shipped: 9 } },
    ],
  } as unknown as FleetMetrics;

  test('per stage are of all products, or of the one', () => {
    expect(Object.fromEntries(byStage(metrics, undefined))).toEqual({ queued: 7, failed: 1, shipped: 9 });
    expect(Object.fromEntries(byStage(metrics, 'demo'))).toEqual({ queued: 3, failed: 1 });
    expect(byStage(undefined, undefined).size).toBe(0);
  });

  test.each<[JobsSearch, number | undefined]>([
    [{}, 17],
    [{ stage: 'queued' }, 7],
    [{ stage: 'queued,failed', product: 'demo' }, 4],
    [{ product: 'gone' }, 0],
    [{ stage: 'queued', name: 'x' }, undefined],
    [{ priority: 'high' }, undefined],
  ])('tell how many jobs %j finds, or nothing: %s', (search, all) => {
    expect(total(jobsSearch({ ...search }), metrics)).toBe(all);
  });
});
