// A job's events in the order of their `seq`, which has no gaps: so one sees when something is missing.

import type { FeedEvent } from '../../../api/types';

export interface History {
  /// By `seq`, from 1 up.
  readonly events: readonly FeedEvent[];
  /// Something after this `seq` has to be fetched.
  readonly missingAfter?: number;
}

export const NO_HISTORY: History = { events: [] };

export function lastSeq(history: History): number {
  return history.events.at(-1)?.seq ?? 0;
}

/// Takes what came in, in whatever order and as often as it comes. What does not follow on is left out and asked for.
export function withEvents(history: History, incoming: readonly FeedEvent[]): History {
  const events = [...history.events];
  let missingAfter: number | undefined;
  const sorted = incoming.filter((event) => typeof event.seq === 'number');
  sorted.sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0));
  for (const event of sorted) {
    const last = events.at(-1)?.seq ?? 0;
    const seq = event.seq ?? 0;
    if (seq <= last) continue;
    if (seq > last + 1) {
      missingAfter = last;
      break;
    }
    events.push(event);
  }
  if (events.length === history.events.length && missingAfter === history.missingAfter) return history;
  return { events, missingAfter };
}
