// Events as people tell them. What an event does not say is left out; the coordinator's own words (`cause`) fill in.

import type { FeedEvent } from '../../../api/types';
import { bytes, plural, usd } from '../../../ui/format';

type Data = Record<string, unknown>;
type Teller = (data: Data, event: FeedEvent) => string;

/// A word from an event's data. Anyone may have put it there: only plain words and figures are taken.
function word(data: Data, key: string): string | undefined {
  const value = data[key];
  if (typeof value === 'string') return value === '' ? undefined : value;
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : undefined;
}

function figure(data: Data, key: string): number | undefined {
  const value = data[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

const micros = (data: Data, key: string): string => {
  const value = figure(data, key);
  return value === undefined ? 'an unknown sum' : usd(value / 1_000_000);
};

const factory = (data: Data): string => word(data, 'factoryId') ?? 'a factory';
const because = (data: Data): string => {
  const reason = word(data, 'reason')?.replaceAll('_', ' ');
  const detail = word(data, 'detail');
  if (reason && detail && detail !== reason) return `${reason}: ${detail}`;
  return reason ?? detail ?? 'for a reason that was not told';
};
/// What somebody said, where it is more than that it happened.
const remark = (event: FeedEvent, usual: RegExp): string =>
  event.cause === '' || usual.test(event.cause) ? '' : `: ${event.cause}`;

const TELLERS: Record<string, Teller> = {
  'job.submitted': (_, event) =>
    event.to === 'blocked' ? 'Submitted; waits for others' : 'Submitted and queued',
  'job.unblocked': () => 'All that it waited for has shipped; queued',
  'job.targeted': (data) => `Offered to ${factory(data)}`,
  'job.assigned': (data) => {
    const epoch = word(data, 'leaseEpoch');
    return `Taken by ${factory(data)}${epoch ? ` as run ${epoch}` : ''}`;
  },
  'job.diverged': (data) =>
    `The dispatcher would have sent it to ${word(data, 'routedTo') ?? 'another factory'}; ${word(data, 'claimedBy') ?? 'a factory'} took it`,
  'job.started': (_, event) => `Work began${remark(event, /started$/)}`,
  'job.checkpointed': () => 'Work so far was saved',
  'job.artifact_added': (data) => {
    const size = figure(data, 'size');
    return `Left the file ${word(data, 'name') ?? 'without a name'}${size === undefined ? '' : ` (${bytes(size)})`}`;
  },
  'job.artifact_removed': (data) => `The file ${word(data, 'name') ?? 'without a name'} was removed`,
  'job.reported': (_, event) => `Work is done${reported(event)}`,
  'job.failed': (data) => `Failed, ${because(data)}`,
  'job.retried': (data) => `This attempt failed, ${because(data)}; it is tried again`,
  'job.released': (_, event) => `Given back by its holder${remark(event, /^(released|given back)/)}`,
  'job.lease_expired': (data) => `${factory(data)} went silent; the job came back to the queue`,
  'job.eviction_asked': (data) => {
    const other = word(data, 'forJob');
    return other
      ? `Asked to save its work and make room for job ${other}`
      : 'Asked to save its work and stop: its budget is paused';
  },
  'job.preempted': (data) => {
    const other = word(data, 'forJob');
    return other
      ? `Gave its seat up for job ${other}; queued again`
      : 'Stopped, its budget is paused; queued again';
  },
  'job.dead_lettered': (_, event) => `Given up${remark(event, /^$/)}`,
  'job.review_requested': (data) => {
    const named = Array.isArray(data.reviewers)
      ? data.reviewers.filter((name) => typeof name === 'string')
      : [];
    const quorum = figure(data, 'quorum') ?? 1;
    return `A review was asked for: ${plural(quorum, 'approval')}${named.length > 0 ? ` from ${named.join(' or ')}` : ''}`;
  },
  'job.approved': (data, event) =>
    `Approved by ${reviewer(data, event)}${event.to && event.to !== event.from ? '; the review is complete' : ''}${comment(data, event)}`,
  'job.changes_requested': (data, event) =>
    `${reviewer(data, event)} asked for changes; queued for another run${comment(data, event)}`,
  'job.rejected': (data, event) =>
    word(data, 'reviewer')
      ? `Rejected by ${reviewer(data, event)}${comment(data, event)}`
      : `Rejected${remark(event, /^rejected by an operator$/)}`,
  'job.requeued': (_, event) => `Queued again${remark(event, /^requeued by an operator$/)}`,
  'job.children_done': () => 'All of its children have shipped',
  'job.shipped': (_, event) => `Shipped${remark(event, /^shipped/)}`,
  'job.merge_started': (data) => {
    const attempt = figure(data, 'attempt') ?? 1;
    return `${factory(data)} merges the result${attempt > 1 ? ` (attempt ${attempt})` : ''}`;
  },
  'job.merged': (data) => `Merged${word(data, 'commit') ? ` as ${word(data, 'commit')?.slice(0, 12)}` : ''}`,
  'job.merge_conflict': (_, event) => `The result does not merge by itself${remark(event, /^$/)}`,
  'job.merge_failed': (_, event) => `Merging failed${remark(event, /^$/)}`,
  'job.cancelled': (_, event) => `Cancelled${remark(event, /^cancelled by an operator$/)}`,
  'job.settled_up': (data) => `The cancelled run really cost ${micros(data, 'usdMicros')}`,
  'factory.enrolled': (data) => `${factory(data)} may join`,
  'factory.changed': (data, event) => `${factory(data)} has changed${remark(event, /^$/)}`,
  'factory.draining': (data) => `${factory(data)} drains: it finishes what it holds and takes nothing new`,
  'factory.resumed': (data) => `${factory(data)} takes jobs again`,
  'factory.deregistered': (data) => `${factory(data)} was deregistered`,
  'token.issued': (data) => `The token ${word(data, 'label') ?? word(data, 'tokenId') ?? ''} was made`,
  'token.revoked': (data) => `The token ${word(data, 'label') ?? word(data, 'tokenId') ?? ''} was revoked`,
  'topic.paused': (data) => `${topic(data)} paused`,
  'topic.resumed': (data) => `${topic(data)} resumed`,
  'topic.retried': (data) =>
    `${plural(figure(data, 'count') ?? 0, 'dead job')} of ${word(data, 'topic') ?? 'a topic'} got another chance`,
  'dispatch.leader_changed': (data) =>
    `${word(data, 'nodeId') ?? 'Another coordinator'} dispatches from here on`,
  'budget.changed': (data) => `The budget of ${product(data)} was set`,
  'budget.paused': (data) => `The budget of ${product(data)} was closed; nothing of it is started`,
  'budget.resumed': (data) => `The budget of ${product(data)} is open again`,
  'budget.exhausted': (data) =>
    `The budget of ${product(data)} is used up: ${micros(data, 'spentUsdMicros')} of ${micros(data, 'ceilingUsdMicros')}`,
  'product.changed': (data) => `The settings of ${product(data)} changed`,
  'profile.added': (data) =>
    `The profile ${word(data, 'name') ?? ''} has a new version${word(data, 'version') ? `, ${word(data, 'version')}` : ''}`,
  'webhook.added': (data) => `A webhook to ${word(data, 'url') ?? 'somewhere'} was added`,
  'webhook.removed': (data) => `The webhook to ${word(data, 'url') ?? 'somewhere'} was removed`,
  'effect.given_up': (data) =>
    `${word(data, 'target') ?? 'The world outside'} could not be told, ${because(data)}`,
  'effect.revived': () => 'A message that was given up got another chance',
  'flag.changed': (data) =>
    `The flag ${word(data, 'name') ?? ''} changed${word(data, 'to') ? ` to ${word(data, 'to')}` : ''}`,
};

function reviewer(data: Data, event: FeedEvent): string {
  return word(data, 'reviewer') ?? event.actor;
}

/// What the reviewer wrote: the cause begins with who did what.
function comment(data: Data, event: FeedEvent): string {
  const who = reviewer(data, event);
  const did = ['approved', 'asked for changes', 'rejected it'].find((words) =>
    event.cause.startsWith(`${who} ${words}: `),
  );
  return did ? event.cause.slice(who.length + 1 + did.length) : '';
}

function topic(data: Data): string {
  const name = word(data, 'topic');
  return name ? `The topic ${name} is` : 'All topics are';
}

function product(data: Data): string {
  return word(data, 'productId') ?? 'a product';
}

function reported(event: FeedEvent): string {
  const next: Record<string, string> = {
    review: '; waits for review',
    testing: '; waits to be shipped',
    shipped: '; shipped',
  };
  return next[event.to ?? ''] ?? '';
}

export function sentence(event: FeedEvent): string {
  const tell = isKnown(event.type) ? TELLERS[event.type] : undefined;
  return tell ? tell(event.data as Data, event) : `${event.type}: ${event.cause}`;
}

export function isKnown(type: string): boolean {
  return Object.hasOwn(TELLERS, type);
}

/// Good, bad or neither, for the mark beside it.
export function tone(event: FeedEvent): 'ok' | 'bad' | 'warn' | 'busy' | 'quiet' {
  switch (event.type) {
    case 'job.shipped':
    case 'job.merged':
    case 'job.approved':
    case 'job.reported':
    case 'job.children_done':
      return 'ok';
    case 'job.failed':
    case 'job.dead_lettered':
    case 'job.rejected':
    case 'job.merge_conflict':
    case 'job.merge_failed':
      return 'bad';
    case 'job.retried':
    case 'job.lease_expired':
    case 'job.preempted':
    case 'job.eviction_asked':
    case 'job.changes_requested':
    case 'job.review_requested':
      return 'warn';
    case 'job.assigned':
    case 'job.started':
    case 'job.merge_started':
      return 'busy';
    default:
      return 'quiet';
  }
}
