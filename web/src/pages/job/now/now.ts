// What is happening to a job now, in one sentence, and how it feels. No clock and no fetching in here.

import type { Explanation, FeedEvent, Job, Run } from '../../../api/types';
import { duration, millis, plural, usd } from '../../../ui/format';

export type Tone = 'ok' | 'bad' | 'warn' | 'busy' | 'quiet';

export interface NowTold {
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
}

export function isHeld(stage: string): boolean {
  return stage === 'assigned' || stage === 'building';
}

export function isOver(stage: string): boolean {
  return stage === 'shipped' || stage === 'dead_letter' || stage === 'cancelled';
}

export function tellNow(known: Known): NowTold {
  const { job } = known;
  switch (job.stage) {
    case 'queued':
      return queued(known);
    case 'blocked':
      return {
        tone: 'quiet',
        title: upper(known.explanation?.summary ?? blockedBy(job)),
        detail: blockers(known.explanation),
        since: job.updatedAt,
      };
    case 'assigned':
    case 'building':
      return held(known);
    case 'review':
      return inReview(job);
    case 'testing':
      return { tone: 'warn', title: 'The work is done; waits to be shipped', since: job.updatedAt };
    case 'shipped':
      return shipped(job);
    case 'failed':
      return {
        tone: 'bad',
        title: `Failed: ${reason(job)}`,
        detail: job.failure?.detail ?? undefined,
        since: job.updatedAt,
      };
    case 'dead_letter':
      return {
        tone: 'bad',
        title: `Given up after ${plural(Math.max(job.attempts, 1), 'attempt')}: ${reason(job)}`,
        detail: job.failure?.detail ?? undefined,
        since: job.updatedAt,
      };
    case 'cancelled':
      return cancelled(known);
    default:
      return { tone: 'quiet', title: `It is ${job.stage.replaceAll('_', ' ')}`, since: job.updatedAt };
  }
}

function queued({ job, now, explanation }: Known): NowTold {
  const ready = millis(job.readyAt);
  if (ready !== undefined && ready > now) {
    const why = job.failure ? ` after a failure (${reason(job)})` : '';
    return {
      tone: 'quiet',
      title: `Waits for its time${why}: starts in ${duration(ready - now)} at the earliest`,
      detail: job.failure?.detail ?? undefined,
      since: job.enqueuedAt,
    };
  }
  if (job.targetFactoryId) {
    return {
      tone: 'busy',
      title: `Offered to ${job.targetFactoryId}, which has not taken it yet`,
      since: job.enqueuedAt,
    };
  }
  const stuck =
    (explanation?.factories.length ?? 0) > 0 && explanation?.factories.every((one) => !one.feasible);
  return {
    tone: stuck ? 'warn' : 'quiet',
    title: explanation ? upper(explanation.summary) : 'Waits for a place',
    detail: blockers(explanation),
    since: job.enqueuedAt,
  };
}

function blockedBy(job: Job): string {
  if (job.kind === 'composite') return 'waits for its children';
  const others = plural(job.deps.length, 'other job');
  return job.depsMode === 'any' && job.deps.length > 1 ? `waits for one of ${others}` : `waits for ${others}`;
}

function held({ job, now, runs }: Known): NowTold {
  const lease = job.lease;
  if (!lease) return { tone: 'busy', title: 'A factory has it', since: job.updatedAt };
  const run = runs?.find((one) => one.leaseEpoch === job.leaseEpoch);
  const end = millis(lease.expiresAt);
  if (end !== undefined && end <= now) {
    return {
      tone: 'bad',
      title: `${lease.factoryId} is silent: its lease ended ${duration(now - end)} ago`,
      detail: 'The job comes back to the queue by itself, with its last checkpoint.',
      since: lease.grantedAt,
    };
  }
  const starts = job.stage === 'assigned';
  return {
    tone: 'busy',
    title: starts ? `${lease.factoryId} has taken it and makes ready` : `${lease.factoryId} works on it`,
    since: (starts ? undefined : run?.startedAt) ?? lease.grantedAt,
  };
}

function inReview(job: Job): NowTold {
  const { quorum, given, who } = quorumOf(job);
  const left = Math.max(quorum - given, 0);
  return {
    tone: 'warn',
    title: `Waits for ${plural(left, given > 0 ? 'more approval' : 'approval')} from ${who}`,
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

function shipped(job: Job): NowTold {
  const { merge, result } = job;
  const commit = (merge?.commit ?? result?.commit)?.slice(0, 12);
  switch (merge?.state) {
    case 'merged':
      return {
        tone: 'ok',
        title: `Shipped and merged${commit ? ` as ${commit}` : ''}`,
        since: job.updatedAt,
      };
    case 'waiting':
    case 'merging':
      return {
        tone: 'busy',
        title: merge.state === 'merging' ? 'Shipped; a factory merges it now' : 'Shipped; waits to be merged',
        detail: merge.detail ?? undefined,
        since: job.updatedAt,
      };
    case 'conflict':
    case 'failed':
      return {
        tone: 'bad',
        title:
          merge.state === 'conflict'
            ? 'Shipped, but the result does not merge by itself: somebody has to look'
            : 'Shipped, but merging was given up',
        detail: merge.detail ?? undefined,
        since: job.updatedAt,
      };
    default:
      return { tone: 'ok', title: commit ? `Shipped: commit ${commit}` : 'Shipped', since: job.updatedAt };
  }
}

function cancelled({ job, events }: Known): NowTold {
  const event = events?.findLast((one) => one.type === 'job.cancelled');
  const why = event && event.cause !== 'cancelled by an operator' ? event.cause : undefined;
  return {
    tone: 'quiet',
    title: event ? `Cancelled by ${event.actor}` : 'Cancelled',
    detail: why ?? job.failure?.detail ?? undefined,
    since: event?.at ?? job.updatedAt,
  };
}

function reason(job: Job): string {
  return job.failure?.reason.replaceAll('_', ' ') ?? 'the reason was not told';
}

function blockers(explanation: Explanation | undefined): string | undefined {
  if (!explanation || explanation.blockers.length === 0) return undefined;
  const told = explanation.blockers.slice(0, 3).map((blocker) => blocker.message);
  const more = explanation.blockers.length - told.length;
  return more > 0 ? `${told.join('; ')}; and ${more} more` : told.join('; ');
}

/// How far the lease has run down, 1 to 0, and what is left of it.
export function leaseLeft(job: Job, now: number): { share: number; text: string } | undefined {
  const [from, to] = [millis(job.lease?.grantedAt), millis(job.lease?.expiresAt)];
  if (from === undefined || to === undefined) return undefined;
  const left = to - now;
  if (left <= 0) return { share: 0, text: `ended ${duration(-left)} ago` };
  return { share: Math.min(1, left / FULL_LEASE), text: `${duration(left - (left % 1_000))} left` };
}

/// The usual lease: renewals move its end on, so how long it was cannot be told. A longer one shows as full for longer.
const FULL_LEASE = 60_000;

export function spending(job: Job): string | undefined {
  const { spentUsd, reservedUsd } = job.lease ?? {};
  if (!spentUsd && !reservedUsd) return undefined;
  return reservedUsd
    ? `${usd(spentUsd ?? 0)} spent of ${usd(reservedUsd)} set aside`
    : `${usd(spentUsd ?? 0)} spent`;
}

function upper(text: string): string {
  return text === '' ? text : text[0]?.toUpperCase() + text.slice(1);
}
