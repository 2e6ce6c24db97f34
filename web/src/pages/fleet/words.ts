// Events in a few words. What has none here is told by its own cause.

import type { FeedEvent } from '../../api/types';

const WORDS: Record<string, string> = {
  'job.submitted': 'submitted',
  'job.unblocked': 'unblocked',
  'job.targeted': 'offered',
  'job.assigned': 'taken',
  'job.diverged': 'went elsewhere than planned',
  'job.started': 'started',
  'job.checkpointed': 'saved its work',
  'job.artifact_added': 'left a file',
  'job.artifact_removed': 'lost a file',
  'job.reported': 'reported success',
  'job.failed': 'failed',
  'job.retried': 'will be tried again',
  'job.released': 'given back',
  'job.lease_expired': 'lost its holder',
  'job.eviction_asked': 'asked to let go',
  'job.preempted': 'gave its seat up',
  'job.dead_lettered': 'given up',
  'job.review_requested': 'waits for review',
  'job.approved': 'approved',
  'job.changes_requested': 'needs changes',
  'job.rejected': 'rejected',
  'job.requeued': 'queued again',
  'job.children_done': 'all children shipped',
  'job.shipped': 'shipped',
  'job.merge_started': 'is being merged',
  'job.merged': 'merged',
  'job.merge_conflict': 'cannot be merged',
  'job.merge_failed': 'merging failed',
  'job.cancelled': 'cancelled',
  'job.settled_up': 'settled its cost',
  'factory.enrolled': 'may join',
  'factory.changed': 'changed',
  'factory.draining': 'drains',
  'factory.resumed': 'takes jobs again',
  'factory.deregistered': 'forgotten',
  'token.issued': 'token issued',
  'token.revoked': 'token ended',
  'topic.paused': 'topic paused',
  'topic.resumed': 'topic resumed',
  'topic.retried': 'dead jobs tried again',
  'dispatch.leader_changed': 'another coordinator dispatches',
  'budget.changed': 'budget changed',
  'budget.paused': 'paused',
  'budget.resumed': 'resumed',
  'budget.exhausted': 'budget used up',
  'product.changed': 'product changed',
  'profile.added': 'profile added',
  'webhook.added': 'webhook added',
  'webhook.removed': 'webhook removed',
  'effect.given_up': 'message given up',
  'effect.revived': 'message tried again',
  'flag.changed': 'flag changed',
};

const BAD = new Set([
  'job.failed',
  'job.dead_lettered',
  'job.merge_conflict',
  'job.merge_failed',
  'job.lease_expired',
  'job.rejected',
  'budget.exhausted',
  'effect.given_up',
]);
const GOOD = new Set(['job.shipped', 'job.merged', 'job.approved', 'job.reported']);

export function eventWords(event: Pick<FeedEvent, 'type'>): string {
  return WORDS[event.type] ?? (event.type.split('.').at(-1) ?? event.type).replaceAll('_', ' ');
}

export function eventTone(event: Pick<FeedEvent, 'type'>): 'ok' | 'bad' | 'quiet' {
  if (BAD.has(event.type)) return 'bad';
  return GOOD.has(event.type) ? 'ok' : 'quiet';
}

function said(event: FeedEvent, field: string): string | undefined {
  const value = (event.data as Record<string, unknown>)[field];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/// What it is about where that is no job: a factory, topic, flag, product.
export function eventSubject(event: FeedEvent): string | undefined {
  return (
    said(event, 'factoryId') ??
    said(event, 'topic') ??
    said(event, 'name') ??
    event.productId ??
    said(event, 'label')
  );
}

/// Newest first, each once, no more than fit.
export function withEvent(events: readonly FeedEvent[], event: FeedEvent, most: number): FeedEvent[] {
  if (events.some((known) => known.pos === event.pos)) return [...events];
  return [event, ...events].sort((a, b) => b.pos - a.pos).slice(0, most);
}
