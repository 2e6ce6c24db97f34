// What a pool has, as the bar and the table show it, and its `giga` lines. No markup.

import type { Pool, PoolMember, PoolSettings } from '../../api/types';
import { labelOf, MEMBER_STATE, POOL_DRIVER, type Tone, wordIn } from '../../api/vocabulary';
import { coarse, plural, shellWord, usd } from '../../ui/format';
import { wholeSettings } from './fields';

/// The state of a factory of a pool, as the command line tells it.
export type MemberWord = 'starting' | 'running' | 'draining' | 'offline' | 'stopping';

export const MEMBER_WORD: Record<MemberWord, { label: string; tone: Tone }> = {
  starting: MEMBER_STATE.starting,
  running: MEMBER_STATE.running,
  draining: { label: 'draining', tone: 'warn' },
  offline: { label: 'offline', tone: 'bad' },
  stopping: MEMBER_STATE.stopping,
};

/// A word that this page does not know yet counts as running: the bar must not lose a factory.
export function memberWord({ state, draining, live }: PoolMember): MemberWord {
  const word = wordIn(MEMBER_STATE, state) ?? 'running';
  if (word !== 'running') return word;
  if (draining) return 'draining';
  return live ? 'running' : 'offline';
}

export interface Part {
  word: MemberWord;
  count: number;
  /// Of the bar, from 0 to 1.
  share: number;
}

/// The parts of the bar, in the order of a factory's life. More than `max` still fit: they are being given up.
export function partsOf({ members, settings }: Pick<Pool, 'members' | 'settings'>): Part[] {
  const counts = new Map<MemberWord, number>();
  for (const member of members) {
    const word = memberWord(member);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const whole = Math.max(settings.max, members.length);
  return (Object.keys(MEMBER_WORD) as MemberWord[]).flatMap((word) => {
    const count = counts.get(word) ?? 0;
    return count === 0 ? [] : [{ word, count, share: count / whole }];
  });
}

/// `1 starting, 2 running; 8 at most`.
export function partsInWords(pool: Pick<Pool, 'members' | 'settings'>): string {
  const parts = partsOf(pool).map(({ word, count }) => `${count} ${MEMBER_WORD[word].label}`);
  return `${parts.length === 0 ? 'none' : parts.join(', ')}; ${pool.settings.max} at most`;
}

/// `giga pool show gpu`, and so on.
export function poolCommand(verb: string, name: string): string {
  return `giga pool ${verb} ${shellWord(name)}`;
}

/// What an operator set, in words: pairs for a list. What was left out is not there.
export function settingsInWords(told: PoolSettings): [string, string][] {
  const settings = wholeSettings(told);
  const { min, max, warm, seats, costUsdPerHour: cost, chargeTo } = settings;
  const driver = wordIn(POOL_DRIVER, settings.driver);
  const words: [string, string | false | null | undefined][] = [
    ['Driver', `${labelOf(POOL_DRIVER, settings.driver)}${driver ? `: ${POOL_DRIVER[driver].about}` : ''}`],
    ['Command', settings.command.map(shellWord).join(' ')],
    ['Image', settings.image],
    ['Namespace', settings.namespace],
    ['Factories', `${min} to ${max}${warm > 0 ? `, ${warm} more than work` : ''}`],
    ['Seats', `${plural(seats, 'job')} at a time on each`],
    ['Idle', `one without work for ${coarse(settings.idleMs)} leaves`],
    ['Start', `has failed where it takes longer than ${coarse(settings.startTimeoutMs)}`],
    ['Capabilities', settings.capabilities.join(', ')],
    ['Products', settings.products.length === 0 ? 'all' : settings.products.join(', ')],
    ['Cost', cost != null && `${usd(cost)} an hour each${chargeTo ? `, paid by ${chargeTo}` : ''}`],
    ['Coordinator', settings.url],
    ['Arguments', settings.args.map(shellWord).join(' ')],
  ];
  return words.flatMap(([name, text]) => (text ? [[name, text] satisfies [string, string]] : []));
}

/// The pool that each factory belongs to.
export function poolByFactory(pools: readonly Pool[]): Map<string, string> {
  return new Map(
    pools.flatMap((pool) => pool.members.map((member) => [member.factoryId, pool.name] as const)),
  );
}
