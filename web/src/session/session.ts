// Who is signed in: a bearer token, kept for this tab only and sent as a header. There is no cookie, so no other site
// can act in its name, and it is never part of an address: a link with `#token=` is read and cleaned at once.

const KEY = 'giga.token';
/// The prefix of everything that this page stores for its tab.
const OURS = 'giga.';
/// The format of a token; anything else need not be sent.
const SHAPE = /^giga_[A-Za-z0-9_-]{8,200}$/;

/// Why nobody is signed in: never was, signed out, the token was revoked or expired, or it has no permission to read.
export type Ending = 'none' | 'out' | 'ended' | 'forbidden';

type Listener = () => void;

export class Session {
  private current: string | null = stored();
  /// Whose drafts the tab keeps: they survive a token that is refused for a while.
  private writer: string | null = this.current;
  private why: Ending = 'none';
  private readonly listeners = new Set<Listener>();

  token = (): string | null => this.current;

  ending(): Ending {
    return this.why;
  }

  begin(token: string): void {
    if (token !== this.writer) forgetDrafts();
    this.writer = token;
    store(token);
    this.current = token;
    this.why = 'none';
    this.tell();
  }

  /// With a `token`, only if it is still that one: a late answer says nothing about the next one.
  end(why: Ending, token?: string): void {
    if (this.current === null || (token !== undefined && token !== this.current)) return;
    store(null);
    if (why === 'out') {
      forgetDrafts();
      this.writer = null;
    }
    this.current = null;
    this.why = why;
    this.tell();
  }

  subscribe = (listener: Listener): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

/// A browser may forbid storage; then a reload needs the token again.
function stored(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function store(token: string | null): void {
  try {
    if (token === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, token);
  } catch {
    // The token then lives as long as the page.
  }
}

/// One person's drafts are not for the next one at the same screen.
function forgetDrafts(): void {
  try {
    const names = Array.from(
      { length: sessionStorage.length },
      (_, index) => sessionStorage.key(index) ?? '',
    );
    for (const name of names) if (name.startsWith(OURS) && name !== KEY) sessionStorage.removeItem(name);
  } catch {
    // Without storage there are no drafts.
  }
}

export const session = new Session();

export function looksLikeToken(text: string): boolean {
  return SHAPE.test(text);
}

/// Takes the token from a link made by `giga web`, and removes it from the address and the history.
export function takeTokenFromAddress(): void {
  const found = /^#token=(.*)$/.exec(window.location.hash);
  if (!found) return;
  const { pathname, search } = window.location;
  window.history.replaceState(null, '', pathname + search);
  const token = (found[1] ?? '').trim();
  if (looksLikeToken(token)) session.begin(token);
}

/// Signing out of one tab signs out all tabs of this browser with the same token. Returns the way to end it.
export function signOutTogether(session: Session): () => void {
  const channel = new BroadcastChannel('giga.signed-out');
  let known = session.token();
  let isTold = false;
  const end = session.subscribe(() => {
    if (known !== null && session.token() === null && session.ending() === 'out' && !isTold) {
      channel.postMessage(known);
    }
    known = session.token();
  });
  channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
    if (typeof data !== 'string' || !looksLikeToken(data)) return;
    isTold = true;
    session.end('out', data);
    isTold = false;
  });
  return () => {
    end();
    channel.close();
  };
}
