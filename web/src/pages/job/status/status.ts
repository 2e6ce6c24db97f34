// What is happening to a job now, in one sentence, and its tone. No clock and no fetching in here.

import type { Explanation, FeedEvent, Job, Run } from '../../../api/types';
import { labelOf, STAGE, type Tone } from '../../../api/vocabulary';
import { failureTitle } from '../../../ui/events';
import { duration, millis, plural, sentence, usd } from '../../../ui/format';

export interface JobStatus {
  tone: Tone;
  title: string;
  detail?: string;
  /// Since when it is so, RFC 3339.
  since?: string;
}

export interface Known {
  job: Job;
  now: number;
  explanation?: Explanation;
  /// The newest first.
  runs?: readonly Run[];
  events?: readonly FeedEvent[];
  /// Names the actor of an event.
  actorName?: (actor: string) => string;
}

export function jobStatus(known: Known): JobStatus {
  const { job } = known;
  const since = job.updatedAt;
  switch (job.stage) {
    case 'queued':
      return queued(known);
    case 'blocked':
      return {
        tone: 'quiet',
        title: sentence(known.explanation?.summary ?? blockedBy(job)),
        detail: blockers(known.explanation),
        since,
      };
    case 'assigned':
    case 'building':
      return held(known);
    case 'review':
      return inReview(job);
    case 'testing':
      return { tone: 'warn', title: 'Ready to ship', since };
    case 'shipping':
      return shipping(known);
    case 'shipped':
      return shipped(known);
    case 'failed':
      return { tone: 'bad', title: failure(job), detail: job.failure?.detail ?? undefined, since };
    case 'dead_letter': {
      const attempts = plural(Math.max(job.attempts, 1), 'attempt');
      const title = `Gave up after ${attempts}: ${lower(failure(job))}`;
      return { tone: 'bad', title, detail: job.failure?.detail ?? undefined, since };
    }
    case 'cancelled':
      return cancelled(known);
    default: {
      // A page that is older than its coordinator.
      const unknown: never = job.stage;
      return { tone: 'quiet', title: sentence(labelOf(STAGE, unknown)), since };
    }
  }
}

function queued({ job, now, explanation }: Known): JobStatus {
  const [asked] = job.openQuestions ?? [];
  if (asked) {
    return { tone: 'warn', title: 'Waiting for an answer', detail: asked.text, since: asked.askedAt };
  }
  const ready = millis(job.readyAt);
  if (ready !== undefined && ready > now) {
    const at = clock(ready, now);
    return {
      tone: 'quiet',
      title: job.failure ? `Retrying at ${at} (${nextAttempt(job)})` : `Scheduled for ${at}`,
      detail: job.failure ? [failure(job), job.failure.detail].filter(Boolean).join(': ') : undefined,
      since: job.enqueuedAt,
    };
  }
  if (job.targetFactoryId) {
    return {
      tone: 'busy',
      title: `Offered to ${job.targetFactoryId}, not claimed yet`,
      since: job.enqueuedAt,
    };
  }
  const stuck =
    (explanation?.factories.length ?? 0) > 0 && explanation?.factories.every((one) => !one.feasible);
  return {
    tone: stuck ? 'warn' : 'quiet',
    title: explanation ? sentence(explanation.summary) : 'Waiting for a factory',
    detail: blockers(explanation),
    since: job.enqueuedAt,
  };
}

/// `attempt 2 of 6`: the first one and as many retries as the manifest allows.
function nextAttempt(job: Job): string {
  const { retry } = (job.manifest ?? {}) as { retry?: { max?: unknown } };
  const most = typeof retry?.max === 'number' ? ` of ${retry.max + 1}` : '';
  return `attempt ${job.attempts + 1}${most}`;
}

/// `23:34`, with the date where that is not today.
function clock(at: number, now: number): string {
  const [then, today] = [new Date(at), new Date(now)];
  const time = then.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  const isToday = then.toDateString() === today.toDateString();
  return isToday
    ? time
    : `${time} on ${then.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })}`;
}

function blockedBy(job: Job): string {
  if (job.kind === 'composite') return 'waiting for its children';
  const others = plural(job.deps.length, 'other job');
  return job.depsMode === 'any' && job.deps.length > 1
    ? `waiting for one of ${others}`
    : `waiting for ${others}`;
}

function held({ job, now, runs }: Known): JobStatus {
  const lease = job.lease;
  if (!lease) return { tone: 'busy', title: 'Held by a factory', since: job.updatedAt };
  const run = runs?.find((one) => one.leaseEpoch === job.leaseEpoch);
  const end = millis(lease.expiresAt);
  if (end !== undefined && end <= now) {
    return {
      tone: 'bad',
      title: `${lease.factoryId} is offline: its lease ended ${duration(now - end)} ago`,
      detail: 'The job is queued again automatically, with its last checkpoint.',
      since: lease.grantedAt,
    };
  }
  const [asked] = job.openQuestions ?? [];
  if (asked) {
    const title = `Running on ${lease.factoryId}, waiting for an answer`;
    return { tone: 'warn', title, detail: asked.text, since: asked.askedAt };
  }
  const starting = job.stage === 'assigned';
  return {
    tone: 'busy',
    title: `${starting ? 'Starting' : 'Running'} on ${lease.factoryId}`,
    since: (starting ? undefined : run?.startedAt) ?? lease.grantedAt,
  };
}

function inReview(job: Job): JobStatus {
  const { quorum, given, who } = quorumOf(job);
  const left = Math.max(quorum - given, 0);
  return {
    tone: 'warn',
    title: `Waiting for ${plural(left, given > 0 ? 'more approval' : 'approval')} from ${who}`,
    detail: given > 0 ? `Approved so far by ${job.approvals?.join(', ')}` : undefined,
    since: job.updatedAt,
  };
}

export function quorumOf(job: Job): { quorum: number; given: number; who: string } {
  const reviewers = job.gate?.reviewers ?? [];
  return {
    quorum: Math.max(job.gate?.quorum ?? 1, 1),
    given: job.approvals?.length ?? 0,
    who: reviewers.length === 0 ? 'anyone' : reviewers.join(' or '),
  };
}

function shipping({ job, now }: Known): JobStatus {
  const { merge, updatedAt: since } = job;
  const merged = merge?.merged?.map(({ repo }) => repo).join(', ');
  const status = (tone: Tone, title: string): JobStatus => ({
    tone,
    title,
    detail: merge?.detail ?? (merged ? `Already merged: ${merged}` : undefined),
    since,
  });
  const on = merge?.factoryId ? ` on ${merge.factoryId}` : '';
  switch (merge?.state) {
    case 'merging':
      return status('busy', `Merging and checking the merged tree${on}`);
    case 'pushing':
      return status('busy', `Pushing it to ${merge.into ?? 'its branch'}`);
    case 'proposed':
      return merge.request
        ? status('warn', `Waiting for its pull request ${merge.request.url} to be merged`)
        : status('busy', 'Opening its pull request');
    default: {
      const failures = merge?.failures ?? 0;
      if (failures === 0) return status('busy', 'Waiting for its turn to be merged');
      const retry = millis(merge?.retryAt);
      const at = retry === undefined ? '' : ` at ${clock(retry, now)}`;
      return status('warn', `Merge failed ${failures === 1 ? 'once' : `${failures} times`}, retrying${at}`);
    }
  }
}

function shipped({ job }: Known): JobStatus {
  const several = job.merge?.merged ?? [];
  if (several.length > 0) {
    const each = several.map(({ repo, commit, into }) => `${into} of ${repo} as ${commit.slice(0, 12)}`);
    return { tone: 'ok', title: `Shipped: merged into ${each.join(', ')}`, since: job.updatedAt };
  }
  const commit = job.merge?.commit?.slice(0, 12);
  const into = job.merge?.into ? ` into ${job.merge.into}` : '';
  const title = commit ? `Shipped: merged${into} as ${commit}` : 'Shipped';
  return { tone: 'ok', title, since: job.updatedAt };
}

function cancelled({ job, events, actorName = (actor) => actor }: Known): JobStatus {
  const event = events?.findLast((one) => one.type === 'job.cancelled');
  const why = event?.cause.replace(/^cancelled( by an operator)?(: )?/, '');
  return {
    tone: 'quiet',
    title: event ? `Cancelled by ${actorName(event.actor)}` : 'Cancelled',
    detail: (why || job.failure?.detail) ?? undefined,
    since: event?.at ?? job.updatedAt,
  };
}

function failure(job: Job): string {
  return job.failure ? failureTitle(job.failure.reason, job.failure.detail) : 'Failed for an unknown reason';
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function blockers(explanation: Explanation | undefined): string | undefined {
  if (!explanation || explanation.blockers.length === 0) return undefined;
  const shown = explanation.blockers.slice(0, 3).map((blocker) => blocker.message);
  const more = explanation.blockers.length - shown.length;
  return more > 0 ? `${shown.join('; ')}; and ${more} more` : shown.join('; ');
}

/// The share of the lease that is left, 1 to 0, and in words.
export function leaseLeft(job: Job, now: number): { share: number; text: string } | undefined {
  const [from, to] = [millis(job.lease?.grantedAt), millis(job.lease?.expiresAt)];
  if (from === undefined || to === undefined) return undefined;
  const left = to - now;
  if (left <= 0) return { share: 0, text: `ended ${duration(-left)} ago` };
  return { share: Math.min(1, left / FULL_LEASE), text: `${duration(left - (left % 1_000))} left` };
}

/// The usual lease: renewals move its end, so its length is unknown. A longer one shows as full for longer.
const FULL_LEASE = 60_000;

export function spending(job: Job): string | undefined {
  const { spentUsd, reservedUsd } = job.lease ?? {};
  if (!spentUsd && !reservedUsd) return undefined;
  return reservedUsd
    ? `${usd(spentUsd ?? 0)} spent of ${usd(reservedUsd)} reserved`
    : `${usd(spentUsd ?? 0)} spent`;
}
