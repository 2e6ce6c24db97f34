// Which queries an event makes stale. A busy fleet sends many events; each key is fetched again at most so often, and
// only while something on the page shows it.

import type { QueryClient, QueryKey } from '@tanstack/react-query';
import { keys } from '../api/queries';
import type { FeedEvent } from '../api/types';

/// Of one job, which few look at: soon. Of the whole fleet, which every event touches: less often.
const SOON = 250;
const SELDOM = 1_500;

export function touchedBy(event: FeedEvent): { key: QueryKey; within: number }[] {
  const seldom = (...touched: QueryKey[]) => touched.map((key) => ({ key, within: SELDOM }));
  const soon = (...touched: QueryKey[]) => touched.map((key) => ({ key, within: SOON }));
  const [subject] = event.type.split('.');
  switch (subject) {
    case 'job': {
      const fleet = seldom(keys.metrics, keys.alerts, keys.factories, keys.budgets, keys.dag);
      const shadow = event.type === 'job.diverged' ? soon(keys.shadow) : [];
      return [...(event.jobId ? soon(keys.job(event.jobId)) : []), ...fleet, ...shadow];
    }
    case 'factory':
      return [...soon(keys.factories), ...seldom(keys.metrics, keys.alerts)];
    case 'topic':
      return soon(keys.topics);
    case 'budget':
      return [...soon(keys.budgets), ...seldom(keys.metrics, keys.alerts)];
    case 'product':
      return soon(keys.products);
    case 'profile':
      return soon(keys.profiles);
    case 'flag':
      return [...soon(keys.flags), ...seldom(keys.factories)];
    case 'effect':
      return seldom(keys.alerts);
    default:
      return [];
  }
}

export class Freshener {
  private readonly due = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(private readonly client: QueryClient) {}

  touch(event: FeedEvent): void {
    for (const { key, within } of touchedBy(event)) {
      const name = JSON.stringify(key);
      if (this.due.has(name)) continue;
      const timer = setTimeout(() => {
        this.due.delete(name);
        void this.client.invalidateQueries({ queryKey: key });
      }, within);
      this.due.set(name, timer);
    }
  }

  /// After a loss, or before the first connection, anything may have happened.
  all(): void {
    void this.client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'markdown' });
  }

  stop(): void {
    for (const timer of this.due.values()) clearTimeout(timer);
    this.due.clear();
  }
}
