import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { looksLikeToken, Session, session, signOutTogether, takeTokenFromAddress } from './session';

const TOKEN = 'giga_abcDEF123456';
const OTHER = 'giga_zyxWVU987654';

beforeEach(() => {
  sessionStorage.clear();
  session.end('none');
  window.history.replaceState(null, '', '/');
});

describe('a session', () => {
  test('lasts as long as its tab', () => {
    session.begin(TOKEN);
    expect(new Session().token()).toBe(TOKEN);
    session.end('out');
    expect(new Session().token()).toBeNull();
    expect(session.ending()).toBe('out');
  });

  test('is not ended by what is said of another token', () => {
    session.begin(OTHER);
    session.end('ended', TOKEN);
    expect(session.token()).toBe(OTHER);
    session.end('ended', OTHER);
    expect([session.token(), session.ending()]).toEqual([null, 'ended']);
  });

  test('keeps the first reason for its end', () => {
    session.begin(TOKEN);
    session.end('out');
    session.end('ended');
    expect(session.ending()).toBe('out');
  });

  describe('takes what was half written along', () => {
    const drafts = ['giga.review.J1', 'giga.draft ana '];
    const left = () => drafts.filter((name) => sessionStorage.getItem(name) !== null);
    beforeEach(() => {
      session.begin(TOKEN);
      for (const name of drafts) sessionStorage.setItem(name, 'half written');
      sessionStorage.setItem('of-somebody-else', 'stays');
    });

    test('when it is signed out', () => {
      session.end('out');
      expect(left()).toEqual([]);
      expect(sessionStorage.getItem('of-somebody-else')).toBe('stays');
    });

    test('when another begins, at once or after it has ended', () => {
      session.begin(OTHER);
      expect(left()).toEqual([]);
      expect(new Session().token()).toBe(OTHER);
      sessionStorage.setItem('giga.review.J1', 'half written');
      session.end('ended');
      session.begin(TOKEN);
      expect(left()).toEqual([]);
    });

    test('when another begins after the page was loaded anew', () => {
      session.end('ended');
      new Session().begin(OTHER);
      expect(left()).toEqual([]);
    });

    test('but not when the same one signs in again after it was refused for a while', () => {
      session.end('ended');
      session.begin(TOKEN);
      expect(left()).toEqual(drafts);
    });
  });

  test('works where the browser forbids storage, until the page is left', () => {
    const forbidden = vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
      throw new DOMException('denied', 'SecurityError');
    });
    session.begin(TOKEN);
    expect(session.token()).toBe(TOKEN);
    forbidden.mockRestore();
  });
});

describe('a link with a token', () => {
  const arrive = (address: string) => {
    window.history.replaceState(null, '', address);
    takeTokenFromAddress();
    return window.location.href.replace(window.location.origin, '');
  };

  test('signs in, and nothing of it stays in the address', () => {
    expect(arrive(`/jobs?stage=failed#token=${TOKEN}`)).toBe('/jobs?stage=failed');
    expect(session.token()).toBe(TOKEN);
  });

  test.each(['#token=', '#token=hunter2', '#token=%', '#token=giga_<script>', '#token=giga_a%20b'])(
    '%s signs nobody in and is cleaned all the same',
    (hash) => {
      session.begin(OTHER);
      expect(arrive(`/jobs${hash}`)).toBe('/jobs');
      expect(session.token()).toBe(OTHER);
    },
  );

  test('without one is left alone', () => {
    expect(arrive('/#alerts')).toBe('/#alerts');
  });
});

test.each([
  [TOKEN, true],
  ['giga_', false],
  [` ${TOKEN}`, false],
  [`${TOKEN}\n`, false],
  ['Bearer giga_abcDEF123456', false],
])('%j looks like a token: %s', (text, yes) => {
  expect(looksLikeToken(text)).toBe(yes);
});

describe('tabs', () => {
  let ends: (() => void)[] = [];
  const tab = (token: string): Session => {
    sessionStorage.setItem('giga.token', token);
    const one = new Session();
    ends.push(signOutTogether(one));
    return one;
  };
  afterEach(() => {
    for (const end of ends) end();
    ends = [];
  });

  test('with the same token are signed out together; others and other endings are not', async () => {
    const [here, twin, stranger] = [tab(TOKEN), tab(TOKEN), tab(OTHER)];
    here.end('out');
    await vi.waitFor(() => expect(twin.token()).toBeNull());
    expect(twin.ending()).toBe('out');
    expect(stranger.token()).toBe(OTHER);
  });

  test('find out by themselves that a token has ended', async () => {
    const [here, twin, probe] = [tab(TOKEN), tab(TOKEN), tab(OTHER)];
    const watcher = tab(OTHER);
    here.end('ended');
    // What is told later has arrived, so what was not told never will.
    probe.end('out');
    await vi.waitFor(() => expect(watcher.token()).toBeNull());
    expect(twin.token()).toBe(TOKEN);
  });
});
