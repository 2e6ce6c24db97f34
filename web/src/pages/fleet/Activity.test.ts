import { expect, it } from 'vitest';
import type { FeedEvent } from '../../api/types';
import { withEvent } from './Activity';

const event = (pos: number): FeedEvent =>
  ({ pos, at: '2026-11-15T00:00:00Z', type: 'job.started', cause: '', actor: '', data: {} }) as never;

it('keeps the newest, each once, newest first', () => {
  let list: FeedEvent[] = [];
  for (const pos of [3, 5, 4, 5, 1, 6]) list = withEvent(list, event(pos), 4);
  expect(list.map(({ pos }) => pos)).toEqual([6, 5, 4, 3]);
});
