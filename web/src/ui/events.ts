// Events on screens: the coordinator's text and a tone. A failure is named by how the process ended.

import type { FeedEvent } from '../api/types';
import { type EventType, FAIL_REASON, labelOf, type Tone, wordIn } from '../api/vocabulary';

type Data = Record<string, unknown>;

const TONE: Record<EventType, Tone> = {
  'job.submitted': 'quiet',
  'job.unblocked': 'quiet',
  'job.targeted': 'quiet',
  'job.assigned': 'busy',
  'job.diverged': 'quiet',
  'job.engine_passed_over': 'warn',
  'job.started': 'busy',
  'job.checkpointed': 'quiet',
  'job.artifact_added': 'quiet',
  'job.artifact_removed': 'quiet',
  'job.reported': 'ok',
  'job.failed': 'bad',
  'job.retried': 'warn',
  'job.account_closed': 'warn',
  'job.released': 'quiet',
  'job.parked': 'warn',
  'job.question_asked': 'warn',
  'job.question_answered': 'ok',
  'job.question_expired': 'bad',
  'job.message_sent': 'quiet',
  'job.message_delivered': 'quiet',
  'job.lease_expired': 'warn',
  'job.eviction_asked': 'warn',
  'job.preempted': 'warn',
  'job.dead_lettered': 'bad',
  'job.review_requested': 'warn',
  'job.approved': 'ok',
  'job.changes_requested': 'warn',
  'job.rejected': 'bad',
  'job.requeued': 'quiet',
  'job.children_done': 'ok',
  'job.shipping': 'busy',
  'job.children_retried': 'quiet',
  'job.shipped': 'ok',
  'job.merge_started': 'busy',
  'job.merge_checked': 'ok',
  'job.merged': 'ok',
  'job.merge_sent_back': 'warn',
  'job.merge_conflict': 'bad',
  'job.merge_failed': 'bad',
  'job.merge_proposed': 'busy',
  'job.request_opened': 'warn',
  'job.request_comment': 'quiet',
  'job.request_checks': 'quiet',
  'job.request_closed': 'bad',
  'job.cancelled': 'quiet',
  'job.settled_up': 'quiet',
  'factory.enrolled': 'quiet',
  'factory.changed': 'quiet',
  'factory.draining': 'quiet',
  'factory.resumed': 'quiet',
  'factory.deregistered': 'quiet',
  'pool.changed': 'quiet',
  'pool.removed': 'quiet',
  'pool.starting': 'busy',
  'pool.joined': 'ok',
  'pool.start_failed': 'bad',
  'pool.stopping': 'quiet',
  'pool.left': 'quiet',
  'token.issued': 'quiet',
  'token.renewed': 'quiet',
  'token.revoked': 'quiet',
  'token.signed_in': 'quiet',
  'topic.paused': 'quiet',
  'topic.resumed': 'quiet',
  'topic.retried': 'quiet',
  'dispatch.leader_changed': 'quiet',
  'budget.changed': 'quiet',
  'budget.paused': 'quiet',
  'budget.resumed': 'quiet',
  'budget.exhausted': 'bad',
  'product.changed': 'quiet',
  'profile.added': 'quiet',
  'secret.set': 'quiet',
  'secret.removed': 'quiet',
  'secret.rekeyed': 'quiet',
  'webhook.added': 'quiet',
  'webhook.removed': 'quiet',
  'effect.given_up': 'bad',
  'effect.revived': 'quiet',
  'flag.changed': 'quiet',
  'key.rotated': 'quiet',
  'event.unknown': 'quiet',
};

export function eventSentence({ type, data, cause }: FeedEvent): string {
  if (type === 'job.failed') return failed(data, cause);
  if (type === 'job.retried') {
    // Without a time for the next attempt there is none: the job is given up.
    return word(data, 'readyAt') ? `${failed(data, cause)}; will be retried` : failed(data, cause);
  }
  return capitalized(cause || type);
}

/// Quiet where the coordinator is newer than this page and knows more events.
export function eventTone({ type }: { type: string }): Tone {
  const known = wordIn(TONE, type);
  return known ? TONE[known] : 'quiet';
}

/// Why a run failed, in a few words: "Verification failed", "Exited with code 3".
export function failureTitle(reason: string, detail?: string | null): string {
  const known = wordIn(FAIL_REASON, reason);
  if (known === 'crash') {
    const [ended] = /^(exited with code|was ended by signal) -?\d+/.exec(detail ?? '') ?? [];
    if (ended) return capitalized(ended);
    // What factories of before wrote.
    const [, kind, number] = /^(?:[^\n]*\b)?(exit status|exit code|signal):? (\d+)/.exec(detail ?? '') ?? [];
    if (number) return kind === 'signal' ? `Was ended by signal ${number}` : `Exited with code ${number}`;
  }
  return capitalized(labelOf(FAIL_REASON, reason));
}

function failed(data: Data, cause: string): string {
  const [reason, detail] = [word(data, 'reason'), word(data, 'detail')];
  if (!reason) return capitalized(cause || 'failed for an unknown reason');
  const title = failureTitle(reason, detail);
  if (!detail || detail === reason) return title;
  return capitalized(detail).startsWith(title) ? capitalized(detail) : `${title}: ${detail}`;
}

/// A word from an event's data. Anyone may have put it there: only plain words are taken.
function word(data: Data, key: string): string | undefined {
  const value = data[key];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
