import { expect, test, vi } from 'vitest';
import { session } from './session';
import { signOut } from './signOut';

const watched = () =>
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response(null, { status: 204 }));

test('a token that signing in made is ended', () => {
  const sent = watched();
  session.begin('giga_login_abcDEF123456');
  signOut();
  expect([session.token(), session.ending()]).toEqual([null, 'out']);
  expect(sent).toHaveBeenCalledExactlyOnceWith('/api/fleet/sign-out', {
    method: 'POST',
    headers: { Authorization: 'Bearer giga_login_abcDEF123456' },
    keepalive: true,
  });
});

test('a token that somebody was given is only forgotten', () => {
  const sent = watched();
  session.begin('giga_user_abcDEF123456');
  signOut();
  expect(session.token()).toBeNull();
  expect(sent).not.toHaveBeenCalled();
});
