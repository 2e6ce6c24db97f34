// Signing out ends the token where signing in made it. One that somebody was given is only forgotten: it may be in use
// elsewhere.

import { api } from '../api/client';
import { session } from './session';

const MADE_BY_SIGNING_IN = /^giga_login_/;

export function signOut(): void {
  const token = session.token();
  if (token !== null && MADE_BY_SIGNING_IN.test(token)) {
    // It ends by itself, should the coordinator not hear of it.
    const headers = { Authorization: `Bearer ${token}` };
    void api.POST('/api/fleet/sign-out', { headers }).catch(() => undefined);
  }
  session.end('out');
}
