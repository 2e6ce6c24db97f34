import { useQuery } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { whoamiQuery } from '../api/queries';
import { ROLES, type Role } from '../api/types';
import { session } from './session';

export function useToken(): string | null {
  return useSyncExternalStore(session.subscribe, session.snapshot);
}

/// Whether the token's role is at least this one. False until that is known: nothing is offered that may be refused.
export function useMay(least: Role): boolean {
  const { data } = useQuery(whoamiQuery());
  return ROLES.indexOf((data?.role ?? 'worker') as Role) >= ROLES.indexOf(least);
}
