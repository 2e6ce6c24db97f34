// Events in words: one table with a few words for lists, a sentence for the timeline, and a tone. Data that is missing is
// left out of a sentence; the coordinator's own text (`cause`) fills in.

import type { FeedEvent } from '../api/types';
import { type EventType, FAIL_REASON, labelOf, type Tone, wordIn } from '../api/vocabulary';
import { bytes, plural, usd } from './format';

type Data = Record<string, unknown>;

interface EventFacts {
  /// Follows the name of the job or whatever else it is about: "fix-greeting started".
  short: string;
  tone: Tone;
  sentence(data: Data, event: FeedEvent): string;
}

type Sentence = EventFacts['sentence'];
const toned =
  (tone: Tone) =>
  (short: string, sentence: Sentence): EventFacts => ({ short, tone, sentence });
const [ok, bad, warn, busy, quiet] = [
  toned('ok'),
  toned('bad'),
  toned('warn'),
  toned('busy'),
  toned('quiet'),
];

const EVENT: Record<EventType, EventFacts> = {
  'job.submitted': quiet('submitted', (_, event) =>
    event.to === 'blocked' ? 'Submitted; blocked by its dependencies' : 'Submitted and queued',
  ),
  'job.unblocked': quiet('unblocked', () => 'Dependencies satisfied; queued'),
  'job.targeted': quiet('offered', (data) => `Offered to ${factory(data)}`),
  'job.assigned': busy('claimed', (data) => {
    const epoch = word(data, 'leaseEpoch');
    return `Claimed by ${factory(data)}${epoch ? ` as run ${epoch}` : ''}`;
  }),
  'job.diverged': quiet(
    'diverged from the plan',
    (data) =>
      `The dispatcher would have sent it to ${word(data, 'routedTo') ?? 'another factory'}; ${word(data, 'claimedBy') ?? 'a factory'} claimed it`,
  ),
  'job.started': busy('started', (_, event) => `Started${remark(event, /started$/)}`),
  'job.checkpointed': quiet('saved a checkpoint', () => 'Checkpoint saved'),
  'job.artifact_added': quiet('uploaded a file', (data) => {
    const size = figure(data, 'size');
    return `Uploaded ${word(data, 'name') ?? 'a file'}${size === undefined ? '' : ` (${bytes(size)})`}`;
  }),
  'job.artifact_removed': quiet('lost a file', (data) => `${word(data, 'name') ?? 'A file'} was deleted`),
  'job.reported': ok('succeeded', (_, event) => `Succeeded${next(event)}`),
  'job.failed': bad('failed', failed),
  'job.retried': warn('will be retried', (data) => `${failed(data)}; the job will be retried`),
  'job.released': quiet(
    'released',
    (data, event) =>
      `Released by ${word(data, 'factoryId') ?? (event.actor.replace(/^factory /, '') || 'its factory')}${remark(event, /^(released|given back)/)}`,
  ),
  'job.lease_expired': warn(
    'lease expired',
    (data) => `Lease expired: ${factory(data)} went offline; queued again`,
  ),
  'job.eviction_asked': warn('asked to stop', (data) => {
    const other = word(data, 'forJob');
    return other
      ? `Asked to save a checkpoint and make room for job ${other}`
      : 'Asked to save a checkpoint and stop: the budget is paused';
  }),
  'job.preempted': warn('preempted', (data) => {
    const other = word(data, 'forJob');
    return other
      ? `Preempted by job ${other}; queued again`
      : 'Stopped because the budget is paused; queued again';
  }),
  'job.dead_lettered': bad(
    'moved to dead letters',
    (_, event) => `Moved to dead letters${remark(event, /^$/)}`,
  ),
  'job.review_requested': warn('needs review', (data) => {
    const named = Array.isArray(data.reviewers)
      ? data.reviewers.filter((name) => typeof name === 'string')
      : [];
    const quorum = figure(data, 'quorum') ?? 1;
    return `Review requested: ${plural(quorum, 'approval')}${named.length > 0 ? ` from ${named.join(' or ')}` : ''}`;
  }),
  'job.approved': ok(
    'approved',
    (data, event) =>
      `Approved by ${reviewer(data, event)}${event.to && event.to !== event.from ? '; the review is complete' : ''}${comment(data, event)}`,
  ),
  'job.changes_requested': warn(
    'needs changes',
    (data, event) =>
      `${reviewer(data, event)} requested changes; queued for another run${comment(data, event)}`,
  ),
  'job.rejected': bad('rejected', (data, event) =>
    word(data, 'reviewer')
      ? `Rejected by ${reviewer(data, event)}${comment(data, event)}`
      : `Rejected${remark(event, /^rejected by an operator$/)}`,
  ),
  'job.requeued': quiet('requeued', (_, event) => `Requeued${remark(event, /^requeued by an operator$/)}`),
  'job.children_done': ok('all children shipped', () => 'All of its children have shipped'),
  'job.shipped': ok('shipped', (_, event) => `Shipped${remark(event, /^shipped/)}`),
  'job.merge_started': busy('is being merged', (data) => {
    const attempt = figure(data, 'attempt') ?? 1;
    return `${factory(data)} is merging the result${attempt > 1 ? ` (attempt ${attempt})` : ''}`;
  }),
  'job.merged': ok(
    'merged',
    (data) => `Merged${word(data, 'commit') ? ` as ${word(data, 'commit')?.slice(0, 12)}` : ''}`,
  ),
  'job.merge_conflict': bad('merge conflict', (_, event) => `Merge conflict${remark(event, /^$/)}`),
  'job.merge_failed': bad('merge failed', (_, event) => `Merge failed${remark(event, /^$/)}`),
  'job.cancelled': quiet(
    'cancelled',
    (_, event) => `Cancelled${remark(event, /^cancelled by an operator$/)}`,
  ),
  'job.settled_up': quiet(
    'final cost recorded',
    (data) => `Final cost of the cancelled run: ${micros(data, 'usdMicros')}`,
  ),
  'factory.enrolled': quiet('enrolled', (data) => `${factory(data)} was enrolled`),
  'factory.changed': quiet('changed', (data, event) => `${factory(data)} changed${remark(event, /^$/)}`),
  'factory.draining': quiet(
    'draining',
    (data) => `${factory(data)} is draining: it finishes its jobs and takes no new ones`,
  ),
  'factory.resumed': quiet('accepts jobs again', (data) => `${factory(data)} accepts jobs again`),
  'factory.deregistered': quiet('removed', (data) => `${factory(data)} was removed`),
  'token.issued': quiet(
    'token issued',
    (data) => `Token ${word(data, 'label') ?? word(data, 'tokenId') ?? ''} was issued`,
  ),
  'token.revoked': quiet(
    'token revoked',
    (data) => `Token ${word(data, 'label') ?? word(data, 'tokenId') ?? ''} was revoked`,
  ),
  'topic.paused': quiet('topic paused', (data) => `${topic(data)} paused`),
  'topic.resumed': quiet('topic resumed', (data) => `${topic(data)} resumed`),
  'topic.retried': quiet(
    'dead jobs retried',
    (data) =>
      `${plural(figure(data, 'count') ?? 0, 'dead job')} of ${word(data, 'topic') ?? 'a topic'} will be retried`,
  ),
  'dispatch.leader_changed': quiet(
    'became the leader',
    (data) => `${word(data, 'nodeId') ?? 'Another coordinator'} is now the leader and dispatches`,
  ),
  'budget.changed': quiet('budget changed', (data) => `The budget of ${product(data)} was changed`),
  'budget.paused': quiet('paused', (data) => `The budget of ${product(data)} was paused: no new jobs start`),
  'budget.resumed': quiet('resumed', (data) => `The budget of ${product(data)} was resumed`),
  'budget.exhausted': bad(
    'budget exhausted',
    (data) =>
      `The budget of ${product(data)} is exhausted: ${micros(data, 'spentUsdMicros')} of ${micros(data, 'ceilingUsdMicros')} spent`,
  ),
  'product.changed': quiet('product changed', (data) => `The settings of ${product(data)} changed`),
  'profile.added': quiet(
    'profile added',
    (data) =>
      `Profile ${word(data, 'name') ?? ''} has a new version${word(data, 'version') ? `, ${word(data, 'version')}` : ''}`,
  ),
  'webhook.added': quiet('webhook added', (data) => `A webhook was added${destination(data)}`),
  'webhook.removed': quiet('webhook removed', (data) => `A webhook was removed${destination(data)}`),
  'effect.given_up': bad(
    'delivery failed',
    (data) =>
      `Delivery to ${word(data, 'target') ?? 'a receiver'} failed for good${word(data, 'detail') ? `: ${word(data, 'detail')}` : ''}`,
  ),
  'effect.revived': quiet('delivery retried', () => 'A failed delivery will be retried'),
  'flag.changed': quiet(
    'flag changed',
    (data) => `Flag ${word(data, 'name') ?? ''} changed${word(data, 'to') ? ` to ${word(data, 'to')}` : ''}`,
  ),
};

/// Nothing where the coordinator is newer than this page and knows more events.
function factsOf(type: string): EventFacts | undefined {
  const known = wordIn(EVENT, type);
  return known && EVENT[known];
}

export function isKnown(type: string): boolean {
  return factsOf(type) !== undefined;
}

export function eventSentence(event: FeedEvent): string {
  return factsOf(event.type)?.sentence(event.data, event) ?? `${event.type}: ${event.cause}`;
}

export function eventWords({ type }: { type: string }): string {
  return factsOf(type)?.short ?? (type.split('.').at(-1) ?? type).replaceAll('_', ' ');
}

export function eventTone({ type }: { type: string }): Tone {
  return factsOf(type)?.tone ?? 'quiet';
}

/// What it is about when that is not a job: a factory, topic, flag, product.
export function eventSubject({ data, productId }: FeedEvent): string | undefined {
  const text = (key: string) => (typeof (data as Data)[key] === 'string' ? word(data, key) : undefined);
  return text('factoryId') ?? text('topic') ?? text('name') ?? productId ?? text('label');
}

/// Why a run failed, in a few words: "Verification failed", "Exited with code 3".
export function failureTitle(reason: string, detail?: string | null): string {
  const known = wordIn(FAIL_REASON, reason);
  if (known === 'crash') {
    const [, kind, number] = /^(?:[^\n]*\b)?(exit status|exit code|signal):? (\d+)/.exec(detail ?? '') ?? [];
    if (number) return kind === 'signal' ? `Killed by signal ${number}` : `Exited with code ${number}`;
  }
  const label = labelOf(FAIL_REASON, reason);
  return label.charAt(0).toUpperCase() + label.slice(1);
}

function failed(data: Data): string {
  const [reason, detail] = [word(data, 'reason'), word(data, 'detail')];
  if (!reason) return detail ? `Failed: ${detail}` : 'Failed for an unknown reason';
  const title = failureTitle(reason, detail);
  return detail && detail !== reason ? `${title}: ${detail}` : title;
}

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

function micros(data: Data, key: string): string {
  const value = figure(data, key);
  return value === undefined ? 'an unknown amount' : usd(value / 1_000_000);
}

function factory(data: Data): string {
  return word(data, 'factoryId') ?? 'a factory';
}

/// What somebody wrote, where it says more than that it happened.
function remark(event: FeedEvent, usual: RegExp): string {
  return event.cause === '' || usual.test(event.cause) ? '' : `: ${event.cause}`;
}

function reviewer(data: Data, event: FeedEvent): string {
  return word(data, 'reviewer') ?? event.actor;
}

/// What the reviewer wrote: the cause begins with who did what.
function comment(data: Data, event: FeedEvent): string {
  const who = reviewer(data, event);
  if (!event.cause.startsWith(`${who} `)) return '';
  const [, text] =
    /^(?:approved(?: it)?|(?:asked for|requested) changes|rejected(?: it)?)(: .*)$/s.exec(
      event.cause.slice(who.length + 1),
    ) ?? [];
  return text ?? '';
}

function topic(data: Data): string {
  const name = word(data, 'topic');
  return name ? `Topic ${name} was` : 'All topics were';
}

function product(data: Data): string {
  return word(data, 'productId') ?? 'a product';
}

function destination(data: Data): string {
  const url = word(data, 'url');
  return url ? `: ${url}` : '';
}

function next({ to }: FeedEvent): string {
  switch (to) {
    case 'review':
      return '; waiting for review';
    case 'testing':
      return '; ready to ship';
    case 'shipped':
      return '; shipped';
    default:
      return '';
  }
}
