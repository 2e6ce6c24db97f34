// The status of a factory, how its seats are taken, what is offered to it, and the order of factories. No markup.

import type { Factory, FeedEvent, Job } from '../../api/types';
import type { Tone } from '../../api/vocabulary';
import { matchesWords } from '../../ui/filter';
import { shellWord } from '../../ui/format';

/// What to call the state of a factory; the worst that holds.
export type FactoryStatus = 'online' | 'degraded' | 'draining' | 'down' | 'offline' | 'new';

export const FACTORY_STATUS: Record<FactoryStatus, { label: string; tone: Tone; about: string }> = {
  online: { label: 'online', tone: 'ok', about: 'connected and taking jobs' },
  degraded: { label: 'degraded', tone: 'warn', about: 'reports that it is degraded: it is given jobs last' },
  draining: { label: 'draining', tone: 'warn', about: 'finishes its jobs and takes no new ones' },
  down: { label: 'down', tone: 'bad', about: 'reports that it is down: it is given no jobs' },
  offline: {
    label: 'offline',
    tone: 'bad',
    about: 'not responding: its jobs are queued again when their leases end',
  },
  new: { label: 'never connected', tone: 'quiet', about: 'enrolled but never started' },
};

export function statusOf(factory: Pick<Factory, 'live' | 'health' | 'state' | 'lastSeenAt'>): FactoryStatus {
  if (!factory.live) return factory.lastSeenAt ? 'offline' : 'new';
  if (factory.health === 'down') return 'down';
  if (factory.state === 'draining') return 'draining';
  return factory.health === 'degraded' ? 'degraded' : 'online';
}

export interface Seats {
  used: number;
  /// Offered to it and not taken yet.
  reserved: number;
  free: number;
  /// More jobs than seats: it was made smaller while it was full.
  over: number;
}

/// How the seats are taken. What is offered never counts more than what is free.
export function seats(limit: number, used: number, offered = 0): Seats {
  const whole = (n: number) => (Number.isFinite(n) ? Math.max(0, Math.floor(n)) : 0);
  const all = whole(limit);
  const taken = whole(used);
  const reserved = Math.min(whole(offered), Math.max(0, all - taken));
  return {
    used: Math.min(taken, all),
    reserved,
    free: Math.max(0, all - taken - reserved),
    over: Math.max(0, taken - all),
  };
}

const names = new Intl.Collator('en', { numeric: true });

/// By name and by nothing that changes, so that no card moves away under the pointer. `mac-10` comes after `mac-9`.
export function inOrder(factories: readonly Factory[]): Factory[] {
  return [...factories].sort((a, b) => names.compare(a.id, b.id) || (a.id < b.id ? -1 : 1));
}

export interface FactoryFilter {
  text: string;
  status: FactoryStatus | 'any' | 'busy' | 'free';
}

/// Every word of the text has to be found in the name, a capability, a repository, or a job that it runs.
export function matches(factory: Factory, filter: FactoryFilter, running: readonly Job[] = []): boolean {
  const status = statusOf(factory);
  const { used, free } = seats(factory.seatLimit, factory.seatsUsed);
  if (filter.status === 'busy' && used === 0) return false;
  if (filter.status === 'free' && !(free > 0 && (status === 'online' || status === 'degraded'))) return false;
  if (!['any', 'busy', 'free', status].includes(filter.status)) return false;
  if (filter.text.trim() === '') return true;
  return matchesWords(filter.text, [
    factory.id,
    ...factory.capabilities,
    ...factory.repos.map((repo) => repo.name),
    ...running.map((job) => job.name),
  ]);
}

/// Engines first: they decide what it can be given.
export function capabilitiesInOrder(capabilities: readonly string[]): string[] {
  const isEngine = (text: string) => text.startsWith('engine:');
  return [...capabilities.filter(isEngine), ...capabilities.filter((text) => !isEngine(text))];
}

/// How far its jobs are shut in, in a line; nothing for a factory that does not say.
export function isolation(advertised: readonly string[]): string | undefined {
  if (advertised.includes('sandbox:none')) return 'not sandboxed: jobs have the rights of the agent';
  if (!advertised.includes('sandbox:bwrap')) return undefined;
  if (advertised.includes('network:none')) return 'sandboxed, no network';
  return advertised.includes('network:list') ? 'sandboxed, listed hosts only' : 'sandboxed, open network';
}

/// The jobs that each factory holds, the longest running first.
export function byHolder(jobs: readonly Job[]): Map<string, Job[]> {
  const held = new Map<string, Job[]>();
  for (const job of jobs) {
    if (!job.lease) continue;
    const list = held.get(job.lease.factoryId) ?? [];
    list.push(job);
    held.set(job.lease.factoryId, list);
  }
  for (const list of held.values()) {
    list.sort(
      (a, b) => (a.lease?.grantedAt ?? '').localeCompare(b.lease?.grantedAt ?? '') || (a.id < b.id ? -1 : 1),
    );
  }
  return held;
}

// Offers: which jobs are offered to a factory and not claimed yet. The list of queued jobs is the start, the feed brings what
// came after; an offer ends with the next thing that happens to its job.

/// The factory by the job.
export type Offers = ReadonlyMap<string, string>;

export function offersOf(queued: readonly Job[]): Offers {
  const offers = new Map<string, string>();
  for (const job of queued) {
    if (job.stage === 'queued' && job.targetFactoryId) offers.set(job.id, job.targetFactoryId);
  }
  return offers;
}

export function afterEvent(offers: Offers, event: FeedEvent): Offers {
  const { jobId, type } = event;
  if (!jobId || !type.startsWith('job.')) return offers;
  const factory = type === 'job.targeted' ? factoryOf(event) : undefined;
  if (factory === offers.get(jobId)) return offers;
  const next = new Map(offers);
  if (factory) next.set(jobId, factory);
  else next.delete(jobId);
  return next;
}

function factoryOf(event: FeedEvent): string | undefined {
  const id = (event.data as Record<string, unknown>).factoryId;
  return typeof id === 'string' && id !== '' ? id : undefined;
}

export function offeredTo(offers: Offers): Map<string, number> {
  const counts = new Map<string, number>();
  for (const factory of offers.values()) counts.set(factory, (counts.get(factory) ?? 0) + 1);
  return counts;
}

/// How an enrolled factory is started on its own machine, which knows neither this coordinator's address nor its token.
export function startCommand(id: string, origin = window.location.origin): string {
  return `giga factory run --id ${shellWord(id)} --url ${shellWord(origin)} --token-file ${shellWord(`${id}.token`)}`;
}
