import { useQuery } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { tokensQuery, whoamiQuery } from '../api/queries';
import { ROLE, type Role } from '../api/vocabulary';
import { session } from './session';

export function useToken(): string | null {
  return useSyncExternalStore(session.subscribe, session.token);
}

/// Whether the token's role is at least this one. False until that is known: nothing is offered that may be refused.
export function useMay(least: Role): boolean {
  const { data } = useQuery(whoamiQuery());
  return ROLE[data?.role ?? 'worker'].rank >= ROLE[least].rank;
}

/// Names the actor of an event or a pause: a token by its label, where this token may know it.
export function useActorName(): (actor: string) => string {
  const me = useQuery(whoamiQuery()).data;
  const tokens = useQuery({ ...tokensQuery(), enabled: useMay('admin') }).data?.tokens;
  return (actor) => {
    const id = /^token (.+)$/.exec(actor)?.[1];
    const label = id === me?.tokenId ? me?.label : tokens?.find((token) => token.id === id)?.label;
    return label || actor.replace(/^factory /, '');
  };
}
