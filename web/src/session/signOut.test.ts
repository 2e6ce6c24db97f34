import { afterEach, expect, test, vi } from 'vitest';
import { session } from './session';
import { signOut } from './signOut';

const sent = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response(null, { status: 204 }));
afterEach(() => sent.mockClear());

test('a token that signing in made is ended', async () => {
  session.begin('giga_login_abcDEF123456');
  signOut();
  expect([session.token(), session.ending()]).toEqual([null, 'out']);
  await vi.waitFor(() => expect(sent).toHaveBeenCalledOnce());
  const request = sent.mock.calls[0]?.[0] as Request;
  expect([request.method, new URL(request.url).pathname]).toEqual(['POST', '/api/fleet/sign-out']);
  expect(request.headers.get('Authorization')).toBe('Bearer giga_login_abcDEF123456');
});

test('a token that somebody was given is only forgotten', async () => {
  session.begin('giga_user_abcDEF123456');
  signOut();
  expect(session.token()).toBeNull();
  await Promise.resolve();
  expect(sent).not.toHaveBeenCalled();
});
