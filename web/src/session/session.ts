// Who is signed in: a bearer token, kept for this tab only and sent as a header. There is no cookie, so no other site
// can speak in its name, and it is never part of an address: a link with `#token=` is taken in and cleaned at once.

const KEY = 'giga.token';
/// What a coordinator could have issued; anything else need not be sent to find out.
const SHAPE = /^giga_[A-Za-z0-9_-]{8,200}$/;

/// Why nobody is signed in: never was, signed out, or the token was revoked or expired.
export type Ending = 'none' | 'out' | 'ended';

type Listener = () => void;

class Session {
  private current: string | null = sessionStorage.getItem(KEY);
  private why: Ending = 'none';
  private readonly listeners = new Set<Listener>();

  token(): string | null {
    return this.current;
  }

  ending(): Ending {
    return this.why;
  }

  begin(token: string): void {
    sessionStorage.setItem(KEY, token);
    this.current = token;
    this.why = 'none';
    this.tell();
  }

  end(why: Ending): void {
    if (this.current === null) return;
    sessionStorage.removeItem(KEY);
    this.current = null;
    this.why = why;
    this.tell();
  }

  subscribe = (listener: Listener): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): string | null => this.current;

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

export const session = new Session();

export function looksLikeToken(text: string): boolean {
  return SHAPE.test(text);
}

/// Takes the token out of a link made by `giga web`, and out of the address and the history with it.
export function takeTokenFromAddress(): void {
  const found = /^#token=(.*)$/.exec(window.location.hash);
  if (!found) return;
  const { pathname, search } = window.location;
  window.history.replaceState(null, '', pathname + search);
  const token = decodeURIComponent(found[1] ?? '');
  if (looksLikeToken(token)) session.begin(token);
}
