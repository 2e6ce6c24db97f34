import { describe, expect, test } from 'vitest';
import { eventOf, idOf, job } from '../../test/things';
import {
  afterEvent,
  changed,
  firstPage,
  newer,
  type Pages,
  rowsOf,
  since,
  withArrivals,
  withPage,
} from './rows';

/// Two pages; with a cursor at the end there is more below.
const pages = (end?: string): Pages => ({
  pages: [
    { jobs: [job(90), job(80)], nextCursor: 'after-80' },
    { jobs: [job(70), job(60)], nextCursor: end },
  ],
  pageParams: [undefined, 'after-80'],
});
const numbers = (all: Pages) => rowsOf(all).map((row) => Number(row.id.slice(3)));

describe('arrivals', () => {
  test('go where their id belongs, also into the middle, and only once', () => {
    const next = withArrivals(pages('more'), [job(75), job(95), job(90), job(85)]);
    expect(numbers(next)).toEqual([95, 90, 85, 80, 75, 70, 60]);
    expect(next.pages.map((page) => page.jobs.length)).toEqual([4, 3]);
    expect(withArrivals(next, [job(75)])).toBe(next);
  });

  test('past the end come with their page; where there is none, now', () => {
    expect(numbers(withArrivals(pages('more'), [job(50)]))).toEqual([90, 80, 70, 60]);
    expect(numbers(withArrivals(pages(), [job(50)]))).toEqual([90, 80, 70, 60, 50]);
  });

  test('come into an empty list', () => {
    const empty: Pages = { pages: [{ jobs: [] }], pageParams: [undefined] };
    expect(numbers(withArrivals(empty, [job(1), job(2)]))).toEqual([2, 1]);
  });
});

describe('the next page', () => {
  const page = { jobs: [job(50), job(40)], nextCursor: 'after-40' };

  test('goes below what is there by now', () => {
    const now = changed(
      withArrivals(pages('after-60'), [job(95)]),
      new Map([[idOf(80), (row) => ({ ...row, stage: 'shipped' })]]),
    );
    const next = withPage(now, 'after-60', page);
    expect(numbers(next)).toEqual([95, 90, 80, 70, 60, 50, 40]);
    expect(rowsOf(next)[2]?.stage).toBe('shipped');
    expect(next.pageParams).toEqual([undefined, 'after-80', 'after-60']);
    expect(withPage(next, 'after-60', page)).toBe(next);
  });

  test('brings no row twice', () => {
    const next = withPage(pages('after-60'), 'after-60', { ...page, jobs: [job(60), job(50)] });
    expect(numbers(next)).toEqual([90, 80, 70, 60, 50]);
  });
});

test('a change touches its row and its page only', () => {
  const before = pages();
  const after = changed(before, new Map([[idOf(70), (row) => ({ ...row, stage: 'failed' })]]));
  expect(rowsOf(after).map((row) => row.stage)).toEqual(['queued', 'queued', 'failed', 'queued']);
  expect(after.pages[0]).toBe(before.pages[0]);
  expect(rowsOf(after)[3]).toBe(rowsOf(before)[3]);
  expect(changed(before, new Map([[idOf(1), (row) => row]]))).toBe(before);
});

describe('what was read', () => {
  const row = job(1, { rev: 5, updatedAt: '2026-01-01T00:01:00Z' });
  test.each([
    ['a later one counts', { rev: 6, updatedAt: '2026-01-01T00:00:30Z' }, true],
    ['an earlier one does not', { rev: 4, updatedAt: '2026-01-01T00:02:00Z' }, false],
    ['the same does', { rev: 5, updatedAt: '2026-01-01T00:01:00Z' }, true],
    ['one that an event overtook does not', { rev: 5, updatedAt: '2026-01-01T00:00:59Z' }, false],
  ])('%s', (_, more, counts) => {
    const read = job(1, more);
    expect(newer(read)(row)).toBe(counts ? read : row);
  });
});

describe('an event', () => {
  test('moves the row to its stage, with its holder', () => {
    const assigned = afterEvent(
      eventOf(1, 'job.assigned', { from: 'queued', to: 'assigned', data: { factoryId: 'mac-1' } }),
    )(job(1, { targetFactoryId: 'mac-1' }));
    expect(assigned).toMatchObject({
      stage: 'assigned',
      lease: { factoryId: 'mac-1' },
      targetFactoryId: null,
      updatedAt: '2026-01-01T00:01:00Z',
    });
    const building = afterEvent(eventOf(1, 'job.started', { to: 'building' }))(assigned);
    expect(building.lease?.factoryId).toBe('mac-1');
    const review = afterEvent(eventOf(1, 'job.reported', { to: 'review' }))(building);
    expect([review.stage, review.lease]).toEqual(['review', null]);
    const again = afterEvent(eventOf(1, 'job.requeued', { to: 'queued', at: '2026-01-02T00:00:00Z' }))(
      review,
    );
    expect(since(again)).toBe('2026-01-02T00:00:00Z');
  });

  test('that changes no stage leaves the row alone, but for where it is offered', () => {
    const row = job(1);
    expect(afterEvent(eventOf(1, 'job.checkpointed'))(row)).toBe(row);
    const offered = afterEvent(eventOf(1, 'job.targeted', { data: { factoryId: 'mac-2' } }))(row);
    expect(offered).toMatchObject({ stage: 'queued', targetFactoryId: 'mac-2' });
    expect(
      afterEvent(eventOf(1, 'job.targeted', { data: { factoryId: 7 } }))(row).targetFactoryId,
    ).toBeUndefined();
  });
});

test('a job is in its stage since it was granted, queued or changed', () => {
  const times = { updatedAt: 'changed', enqueuedAt: 'queued' };
  const lease = { factoryId: 'a', grantedAt: 'granted', expiresAt: '' };
  expect(since(job(1, { ...times, stage: 'building', lease }))).toBe('granted');
  expect(since(job(1, { ...times, stage: 'queued' }))).toBe('queued');
  expect(since(job(1, { ...times, stage: 'failed' }))).toBe('changed');
});

test('only the first page is read again', () => {
  expect(firstPage(pages())).toEqual({ pages: [pages().pages[0]], pageParams: [undefined] });
  expect(firstPage(undefined)).toBeUndefined();
});
