// The pages in the navigation, the letter after `g` that goes there, and the least role that has any use for it.

import type { Role } from '../api/vocabulary';
import type { IconName } from '../ui/Icon';

export const PLACES = [
  { to: '/', label: 'Fleet', icon: 'fleet', letter: 'f' },
  { to: '/jobs', label: 'Jobs', icon: 'jobs', letter: 'j' },
  { to: '/new', label: 'New job', icon: 'plus', letter: 'n' },
  { to: '/budgets', label: 'Budgets', icon: 'budget', letter: 'b' },
  { to: '/accounts', label: 'Accounts', icon: 'account', letter: 'c' },
  { to: '/capabilities', label: 'Capabilities', icon: 'capability', letter: 'p' },
  { to: '/pools', label: 'Pools', icon: 'pool', letter: 'o' },
  { to: '/topics', label: 'Topics', icon: 'topics', letter: 't' },
  { to: '/flags', label: 'Flags', icon: 'flag', letter: 'l' },
  { to: '/audit', label: 'Audit', icon: 'audit', letter: 'a', least: 'operator' },
] as const satisfies { to: string; label: string; icon: IconName; letter: string; least?: Role }[];

/// The page that a path belongs to: `/jobs/01J…` belongs to Jobs.
export function placeOf(path: string): (typeof PLACES)[number] | undefined {
  return PLACES.find(({ to }) => path === to || (to !== '/' && path.startsWith(`${to}/`)));
}
