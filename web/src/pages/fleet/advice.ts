// Alerts for people: how bad, what to call it, what to do about it. The codes are the coordinator's.

import type { Alert } from '../../api/types';
import { count, shellWord } from '../../ui/format';
import { startCommand } from './standing';

export type Severity = 'bad' | 'warn' | 'note';

const SEVERITY: Record<string, Severity> = {
  budget_exhausted: 'bad',
  dead_letters: 'bad',
  factory_down: 'bad',
  merge_conflict: 'bad',
  effects_given_up: 'bad',
  no_eligible_factory: 'warn',
  starvation: 'warn',
  stale_factory: 'warn',
};
const ORDER: Severity[] = ['bad', 'warn', 'note'];

const TITLES: Record<string, string> = {
  no_eligible_factory: 'No factory can run it',
  starvation: 'Waits too long',
  stale_factory: 'Factory not heard of',
  factory_down: 'Factory down',
  merge_conflict: 'Cannot be merged',
  dead_letters: 'Dead letters',
  budget_exhausted: 'Budget used up',
  budget_paused: 'Paused',
  budget_near: 'Budget nearly used up',
  effects_given_up: 'Messages given up',
  effects_waiting: 'Messages wait',
};

export function severity(alert: Pick<Alert, 'code'>): Severity {
  return SEVERITY[alert.code] ?? 'note';
}

export function title(alert: Pick<Alert, 'code'>): string {
  return TITLES[alert.code] ?? alert.code.replaceAll('_', ' ');
}

/// Worst first, then oldest; the same order every time.
export function worstFirst(alerts: readonly Alert[]): Alert[] {
  const rank = (alert: Alert) => ORDER.indexOf(severity(alert));
  const about = (alert: Alert) => `${alert.code} ${alert.productId} ${alert.factoryId} ${alert.jobId}`;
  return [...alerts].sort(
    (a, b) =>
      rank(a) - rank(b) || (a.since ?? '9').localeCompare(b.since ?? '9') || about(a).localeCompare(about(b)),
  );
}

/// Alerts that say the same of several factories are one, with all of them in it.
export interface AlertGroup {
  key: string;
  first: Alert;
  alerts: Alert[];
}

export function grouped(alerts: readonly Alert[]): AlertGroup[] {
  const groups = new Map<string, AlertGroup>();
  for (const alert of worstFirst(alerts)) {
    const own = `${alert.code} ${alert.productId ?? ''} ${alert.factoryId ?? ''} ${alert.jobId ?? ''}`;
    // Never heard of and no longer heard of have different remedies.
    const together = alert.factoryId !== null && alert.factoryId !== undefined;
    const key = together ? `${alert.code} ${alert.since ? 'once' : 'never'}` : own;
    const group = groups.get(key);
    if (group) group.alerts.push(alert);
    else groups.set(key, { key, first: alert, alerts: [alert] });
  }
  return [...groups.values()];
}

/// The message of one, or what all of them have in common.
export function message({ first, alerts }: AlertGroup): string {
  if (alerts.length === 1) return first.message;
  const factories = `${count(alerts.length)} factories`;
  if (first.code === 'factory_down') return `${factories} say that they are down`;
  if (first.code !== 'stale_factory') return `${factories}: ${title(first).toLowerCase()}`;
  return first.since
    ? `${factories} have not been heard of for too long`
    : `${factories} are enrolled but have never been heard of`;
}

/// The message with the name of its job in place of the id.
export function withName(text: string, id: string | null | undefined, name: string | undefined): string {
  return id && name ? text.replaceAll(id, () => `“${name}”`) : text;
}

export interface Advice {
  text: string;
  command?: string;
}

export function advice(alert: Alert): Advice {
  const job = shellWord(alert.jobId ?? 'JOB');
  const product = shellWord(alert.productId ?? 'PRODUCT');
  const factory = shellWord(alert.factoryId ?? 'FACTORY');
  switch (alert.code) {
    case 'no_eligible_factory':
      return {
        text: 'Start a factory that has what it needs, or submit it without.',
        command: `giga job explain ${job}`,
      };
    case 'starvation':
      return {
        text: 'See what holds it up; more seats or a higher share help.',
        command: `giga job explain ${job}`,
      };
    case 'stale_factory':
      return {
        text: 'See whether the machine is up; forget it when it will not come back.',
        command: alert.since ? `giga factory show ${factory}` : startCommand(alert.factoryId ?? 'FACTORY'),
      };
    case 'factory_down':
      return {
        text: 'Look at its log; it takes jobs again when it is well.',
        command: `giga factory show ${factory}`,
      };
    case 'merge_conflict':
      return { text: 'Merge its branch by hand, or submit the job again.', command: `giga job show ${job}` };
    case 'dead_letters':
      return {
        text: 'Find what they have in common before you submit them again.',
        command: 'giga job list --stage dead_letter',
      };
    case 'budget_exhausted':
    case 'budget_near':
      return {
        text: 'Raise the ceiling, or wait for the next period.',
        command: `giga budget show ${product}`,
      };
    case 'budget_paused':
      return { text: 'Resume it when its reason is gone.', command: `giga budget resume ${product}` };
    case 'effects_given_up':
      return {
        text: 'Repair the receiver, then send them once more.',
        command: 'giga effects list',
      };
    case 'effects_waiting':
      return {
        text: 'The receiver does not answer; it is tried again by itself.',
        command: 'giga effects list',
      };
    default:
      return { text: 'See what the coordinator says of it.', command: 'giga alerts' };
  }
}
