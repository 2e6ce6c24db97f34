// The other tabs of this browser on the same coordinator. Each keeps its own token, but who signs out of one means all
// that have the same: one who leaves a machine does not look for tabs.

import { looksLikeToken, type Session } from './session';

/// Tells the others of a sign-out, and listens to them. The way back ends it.
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
