// The closed sets of words of the API, and what the page makes of each word: its label, its colour, its place in lists. The
// types come from the OpenAPI document and every table names all of its words, so a new word is a type error here first.
// Lists, badges, filters, colours and orders are made from these tables.

import type { components } from './schema';

type Schemas = components['schemas'];

export type AccountState = Schemas['AccountState'];
export type BlockerCode = Schemas['BlockerCode'];
export type Delivery = Schemas['Delivery'];
export type DepsMode = Schemas['DepsMode'];
export type EventType = Schemas['EventType'];
export type FailReason = Schemas['FailReason'];
export type JobKind = Schemas['JobKind'];
export type MemberState = Schemas['MemberState'];
export type OperatorAction = Schemas['OperatorAction'];
export type Period = Schemas['Period'];
export type PoolDriver = Schemas['PoolDriver'];
export type PoolStatus = Schemas['PoolStatus'];
export type Priority = Schemas['Priority'];
export type ProblemCode = Schemas['ProblemCode'];
export type QuestionState = Schemas['QuestionState'];
export type ReviewVerdict = Schemas['ReviewVerdict'];
export type Role = Schemas['Role'];
export type RunOutcome = Schemas['RunOutcome'];
export type ScoreTerm = Schemas['ScoreTerm'];
export type Severity = Schemas['Severity'];
export type Stage = Schemas['Stage'];
export type TopicJobState = Schemas['TopicJobState'];

/// How something looks: `data-tone` sets `--tone` (app/global.css). A word always stands beside the colour.
export type Tone = 'ok' | 'bad' | 'warn' | 'busy' | 'quiet';

interface Labeled {
  label: string;
}

/// The words of a table, in its order.
export function wordsOf<W extends string>(table: Record<W, unknown>): W[] {
  return Object.keys(table) as W[];
}

/// The word itself where the table has it, for words that come from an address or a form.
export function wordIn<W extends string>(table: Record<W, unknown>, word: unknown): W | undefined {
  return wordsOf(table).find((known) => known === word);
}

/// What people read for a word. A page that is older than its coordinator shows unknown words as they are.
export function labelOf<W extends string>(table: Record<W, Labeled>, word: string): string {
  const known = wordIn(table, word);
  return known === undefined ? word.replaceAll('_', ' ') : table[known].label;
}

export function toneOf<W extends string>(table: Record<W, { tone: Tone }>, word: string): Tone {
  const known = wordIn(table, word);
  return known === undefined ? 'quiet' : table[known].tone;
}

interface StageFacts extends Labeled {
  tone: Tone;
  /// What the job is doing, in fewer words than there are stages.
  phase: 'queued' | 'blocked' | 'running' | 'shipping' | 'decision' | 'failed' | 'dead' | 'done';
  /// What an operator can do then. The coordinator refuses what does not fit; this only hides what would be refused.
  actions: readonly OperatorAction[];
}

export const STAGE: Record<Stage, StageFacts> = {
  queued: { label: 'queued', tone: 'quiet', phase: 'queued', actions: ['cancel'] },
  blocked: { label: 'blocked', tone: 'quiet', phase: 'blocked', actions: ['cancel'] },
  assigned: { label: 'starting', tone: 'busy', phase: 'running', actions: ['cancel'] },
  building: { label: 'running', tone: 'busy', phase: 'running', actions: ['cancel'] },
  review: { label: 'review', tone: 'warn', phase: 'decision', actions: ['requeue', 'reject', 'cancel'] },
  testing: { label: 'ready to ship', tone: 'warn', phase: 'decision', actions: ['ship', 'cancel'] },
  shipping: { label: 'shipping', tone: 'busy', phase: 'shipping', actions: ['cancel'] },
  failed: { label: 'failed', tone: 'bad', phase: 'failed', actions: ['requeue', 'cancel'] },
  dead_letter: { label: 'dead letter', tone: 'bad', phase: 'dead', actions: [] },
  shipped: { label: 'shipped', tone: 'ok', phase: 'done', actions: [] },
  cancelled: { label: 'cancelled', tone: 'quiet', phase: 'done', actions: [] },
};
export const STAGES = wordsOf(STAGE);

export function stagesIn(phase: StageFacts['phase']): Stage[] {
  return STAGES.filter((stage) => STAGE[stage].phase === phase);
}

/// A factory has the job.
export function isHeld(stage: Stage | undefined): boolean {
  return stage !== undefined && STAGE[stage]?.phase === 'running';
}

/// Nothing happens to the job any more.
export function isFinal(stage: Stage): boolean {
  return STAGE[stage]?.phase === 'done' || STAGE[stage]?.phase === 'dead';
}

/// Most urgent first.
export const PRIORITY: Record<Priority, Labeled & { tone?: Tone }> = {
  critical: { label: 'critical', tone: 'bad' },
  high: { label: 'high', tone: 'warn' },
  normal: { label: 'normal' },
  low: { label: 'low', tone: 'quiet' },
};

export const JOB_KIND: Record<JobKind, Labeled> = {
  agent: { label: 'Task' },
  composite: { label: 'Group' },
};

export const DEPS_MODE: Record<DepsMode, Labeled> = {
  all: { label: 'all' },
  any: { label: 'any' },
};

/// Whether the account of an engine takes work.
export const ACCOUNT_STATE: Record<AccountState, Labeled & { tone: Tone }> = {
  open: { label: 'open', tone: 'ok' },
  out_of_quota: { label: 'out of quota', tone: 'warn' },
  signed_out: { label: 'signed out', tone: 'bad' },
};

export const RUN_OUTCOME: Record<RunOutcome, Labeled & { tone: Tone }> = {
  running: { label: 'running', tone: 'busy' },
  succeeded: { label: 'succeeded', tone: 'ok' },
  failed: { label: 'failed', tone: 'bad' },
  expired: { label: 'lease expired', tone: 'warn' },
  released: { label: 'released', tone: 'quiet' },
  preempted: { label: 'preempted', tone: 'warn' },
  cancelled: { label: 'cancelled', tone: 'quiet' },
};

export const QUESTION_STATE: Record<QuestionState, Labeled> = {
  open: { label: 'open' },
  answered: { label: 'answered' },
  defaulted: { label: 'not answered in time, default taken' },
  expired: { label: 'not answered in time' },
  withdrawn: { label: 'withdrawn' },
};

export const FAIL_REASON: Record<FailReason, Labeled> = {
  verify_failed: { label: 'verification failed' },
  budget_exceeded: { label: 'budget exceeded' },
  timeout: { label: 'timed out' },
  crash: { label: 'crashed' },
  capability_mismatch: { label: 'capability mismatch' },
  no_engine: { label: 'no engine' },
  signed_out: { label: 'engine signed out' },
  out_of_quota: { label: 'out of quota' },
  refused: { label: 'refused by the model' },
  context_too_long: { label: 'context too long' },
  secret: { label: 'secret problem' },
  infrastructure: { label: 'infrastructure problem' },
  lease_expired: { label: 'lease expired' },
  unanswered: { label: 'question not answered' },
  rejected: { label: 'rejected' },
  dependency_failed: { label: 'dependency failed' },
  child_failed: { label: 'child failed' },
  merge_conflict: { label: 'merge conflict' },
  merge_checks_failed: { label: 'checks failed on the merged tree' },
  merge_refused: { label: 'merge refused' },
  request_closed: { label: 'pull request closed' },
};

interface VerdictFacts extends Labeled {
  /// What it means for the job.
  about: string;
  /// What was done to the job: "fix-greeting is …".
  done: string;
  /// What the reviewer did: "ana …".
  did: string;
}

export const REVIEW_VERDICT: Record<ReviewVerdict, VerdictFacts> = {
  approve: {
    label: 'Approve',
    about: 'The job moves on.',
    done: 'approved',
    did: 'approved',
  },
  request_changes: {
    label: 'Request changes',
    about: 'The job runs again on the same branch, with your comment.',
    done: 'sent back with your comment',
    did: 'requested changes',
  },
  reject: {
    label: 'Reject',
    about: 'Reject the change: the job fails with the reason "rejected".',
    done: 'rejected',
    did: 'rejected it',
  },
};

export const SEVERITY: Record<Severity, Labeled & { tone: Tone }> = {
  critical: { label: 'critical', tone: 'bad' },
  warning: { label: 'warning', tone: 'warn' },
  info: { label: 'info', tone: 'quiet' },
};

export const DELIVERY: Record<Delivery, { about: string }> = {
  stream: { about: 'The factory keeps a stream open; the coordinator claims jobs for it and sends them.' },
  poll: { about: 'The factory asks for work, gated by one cheap read. Every other mode falls back to this.' },
  broker: { about: 'The factory reads its offers from NATS and accepts them. Without a broker it polls.' },
  self_select: { about: 'No scheduler: the factory picks jobs from the queue that match its capabilities.' },
  shadow: {
    about:
      'Polling decides. The dispatcher plans in parallel, and the divergence below shows how often it would have chosen differently.',
  },
};

/// From the least to the most that a token may do.
export const ROLE: Record<Role, { rank: number }> = {
  worker: { rank: 0 },
  viewer: { rank: 1 },
  submitter: { rank: 2 },
  operator: { rank: 3 },
  admin: { rank: 4 },
};

export const PERIOD: Record<Period, Labeled> = {
  day: { label: 'daily' },
  week: { label: 'weekly' },
  month: { label: 'monthly' },
  total: { label: 'total' },
};

export const TOPIC_JOB_STATE: Record<TopicJobState, Labeled & { tone?: Tone; none: string }> = {
  ready: { label: 'ready', none: 'No jobs are waiting' },
  scheduled: { label: 'scheduled', none: 'No jobs are scheduled' },
  running: { label: 'running', none: 'No jobs are running' },
  dead: { label: 'dead', tone: 'bad', none: 'No dead jobs' },
  done: { label: 'done', none: 'No finished jobs, or they have been deleted' },
};

/// What a pool is doing, or why it starts nothing.
export const POOL_STATUS: Record<PoolStatus, Labeled & { tone: Tone }> = {
  quiet: { label: 'quiet', tone: 'quiet' },
  working: { label: 'working', tone: 'ok' },
  starting: { label: 'starting', tone: 'busy' },
  full: { label: 'full', tone: 'warn' },
  paused: { label: 'paused', tone: 'warn' },
  backing_off: { label: 'backing off', tone: 'bad' },
  out_of_budget: { label: 'out of budget', tone: 'bad' },
};

/// Who starts and stops the factories of a pool.
export const POOL_DRIVER: Record<PoolDriver, Labeled & { about: string }> = {
  process: { label: 'process', about: 'Processes beside the coordinator' },
  command: { label: 'command', about: 'A program of yours starts and stops them' },
  kubernetes: { label: 'kubernetes', about: 'Jobs of Kubernetes' },
  keda: { label: 'keda', about: 'KEDA starts and stops them, and asks how many are wanted' },
};

export const MEMBER_STATE: Record<MemberState, Labeled & { tone: Tone }> = {
  starting: { label: 'starting', tone: 'busy' },
  running: { label: 'running', tone: 'ok' },
  stopping: { label: 'stopping', tone: 'quiet' },
};

/// Why a factory was ruled out, and what else keeps a job from running.
export const BLOCKER: Record<BlockerCode, Labeled> = {
  draining: { label: 'draining' },
  stale: { label: 'offline' },
  down: { label: 'down' },
  product: { label: 'product' },
  capabilities: { label: 'capabilities' },
  repo: { label: 'repository' },
  quota: { label: 'out of quota' },
  seats: { label: 'seats' },
  in_use: { label: 'in use' },
  not_ready: { label: 'not ready yet' },
  paused: { label: 'paused' },
  budget: { label: 'budget' },
  concurrency: { label: 'concurrency' },
  offered: { label: 'offered' },
  excluded: { label: 'excluded' },
  unfit: { label: 'cannot run it' },
  no_factories: { label: 'no factories' },
  order: { label: 'queue order' },
  pool: { label: 'pool' },
  preemption: { label: 'preemption' },
  dependency: { label: 'dependency' },
  child: { label: 'child' },
  question: { label: 'question' },
  review: { label: 'review' },
  ship: { label: 'ship' },
  merge: { label: 'merge' },
  failed: { label: 'failed' },
};

/// What a score is made of, in the order of the bars. The label completes "mostly because it …".
export const SCORE_TERM: Record<ScoreTerm, Labeled & { about: string }> = {
  capabilityFit: {
    label: 'fits closely',
    about:
      'Higher when few of the factory’s capabilities would go unused: rare machines are kept for jobs that need them.',
  },
  affinity: {
    label: 'knows the repository',
    about: 'The factory has the repository, used it within the last day, or ran this job before.',
  },
  load: { label: 'has room', about: 'Higher when fewer seats are taken and the machine reports a low load.' },
  costFit: { label: 'is cheap', about: 'Higher when the factory costs less than the most expensive one.' },
  health: {
    label: 'is healthy',
    about: 'Full when the factory reports that it is healthy, half when degraded.',
  },
  engineFit: {
    label: 'has the preferred engine',
    about: 'Full when the first engine that the job names is open there, less for each one that is not.',
  },
  starvation: {
    label: 'has not waited long',
    about: 'Subtracted from a new job, and less the longer it waits. The same for every factory.',
  },
};
