import { expect, it } from 'vitest';
import type { FeedEvent } from '../../api/types';
import { event } from '../../test/things';
import { withEvent } from './Activity';

it('keeps the newest, each once, newest first', () => {
  let list: FeedEvent[] = [];
  for (const pos of [3, 5, 4, 5, 1, 6]) list = withEvent(list, event('job.started', { pos }), 4);
  expect(list.map(({ pos }) => pos)).toEqual([6, 5, 4, 3]);
});
