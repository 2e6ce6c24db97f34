import { expect, it } from 'vitest';
import type { FeedEvent } from '../../../api/types';
import { event } from '../../../test/things';
import { lastSeq, NO_HISTORY, withEvents } from './useHistory';

const at = (seq: number) => event('job.started', { pos: seq * 10, seq });
const seqs = (history: { events: readonly FeedEvent[] }) => history.events.map((event) => event.seq);

it('keeps the order of seq, whatever the order they come in, and each once', () => {
  const history = withEvents(withEvents(NO_HISTORY, [at(2), at(1)]), [at(2), at(3), at(1)]);
  expect(seqs(history)).toEqual([1, 2, 3]);
  expect(history.missingAfter).toBeUndefined();
});

it('sees a gap, leaves out what is behind it, and is whole again when it is filled', () => {
  const gap = withEvents(withEvents(NO_HISTORY, [at(1)]), [at(4)]);
  expect(seqs(gap)).toEqual([1]);
  expect([gap.missingAfter, lastSeq(gap)]).toEqual([1, 1]);
  const whole = withEvents(gap, [at(2), at(3), at(4)]);
  expect(seqs(whole)).toEqual([1, 2, 3, 4]);
  expect(whole.missingAfter).toBeUndefined();
});

it('an event that comes before the first look waits for it', () => {
  const early = withEvents(NO_HISTORY, [at(7)]);
  expect([seqs(early), early.missingAfter]).toEqual([[], 0]);
});

it('is the same object when nothing is new, so that nothing is drawn again', () => {
  const history = withEvents(NO_HISTORY, [at(1)]);
  expect(withEvents(history, [at(1)])).toBe(history);
});
