// Signing out ends the token where signing in made it. One that somebody was given is only forgotten: it may be in use
// elsewhere.

import { session } from './session';

const MADE_BY_SIGNING_IN = /^giga_login_/;

export function signOut(): void {
  const token = session.token();
  if (token !== null && MADE_BY_SIGNING_IN.test(token)) {
    const headers = { Authorization: `Bearer ${token}` };
    // It ends by itself, should the coordinator not hear of it. The page may be left at once.
    void fetch('/api/fleet/sign-out', { method: 'POST', headers, keepalive: true }).catch(() => undefined);
  }
  session.end('out');
}
