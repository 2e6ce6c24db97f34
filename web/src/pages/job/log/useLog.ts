import { useCallback, useEffect, useRef, useState } from 'react';
import { answer, api } from '../../../api/client';
import type { LogPiece } from '../../../api/types';
import { LogBuffer, MOST_ROWS, PIECE } from './logBuffer';

/// How often a growing log is fetched. No connection is held: browsers allow six to one host.
const EVERY = 1_000;
const AFTER_A_PROBLEM = 3_000;
/// Past the end of every log: the answer has only its length.
const BEHIND_THE_END = 2 ** 50;

function readLog(id: string, epoch: number, offset: number, signal?: AbortSignal): Promise<LogPiece> {
  const query = { epoch: String(epoch), offset: String(offset) };
  return answer(api.GET('/api/fleet/jobs/{id}/logs', { params: { path: { id }, query }, signal }));
}

export interface Log {
  buffer: LogBuffer;
  /// Increases with every change of the buffer.
  version: number;
  loaded: boolean;
  error: unknown;
  /// By how many rows the last change moved the others down: older ones were added before them.
  moved: number;
  /// Fetches one older piece, or all of them.
  older: (all: boolean) => Promise<void>;
}

/// The log of one run: its end at once, then live while the tab is visible.
export function useLog(id: string, epoch: number, mostRows = MOST_ROWS): Log {
  const [state, setState] = useState(() => ({ buffer: new LogBuffer(mostRows), version: 0, moved: 0 }));
  const [loaded, setLoaded] = useState(false);
  const [error, setError] = useState<unknown>();
  const buffer = useRef(state.buffer);
  const fetchingOlder = useRef(false);

  const changed = useCallback((moved = 0) => {
    setState(({ version }) => ({ buffer: buffer.current, version: version + 1, moved }));
  }, []);

  useEffect(() => {
    const abort = new AbortController();
    const mine = new LogBuffer(mostRows);
    buffer.current = mine;
    changed();
    setLoaded(false);
    setError(undefined);
    void follow(id, epoch, mine, abort.signal, {
      read: () => setError(undefined),
      changed: () => {
        changed();
        setLoaded(true);
      },
      failed: setError,
    });
    return () => abort.abort();
  }, [id, epoch, mostRows, changed]);

  const older = useCallback(
    async (all: boolean) => {
      const mine = buffer.current;
      if (fetchingOlder.current) return;
      fetchingOlder.current = true;
      let moved = 0;
      try {
        do {
          const before = mine.start;
          if (before === 0 || mine.cut) break;
          const piece = await readLog(id, epoch, Math.max(0, before - PIECE));
          // Another run is shown by now.
          if (buffer.current !== mine) return;
          moved += mine.prepend(piece);
          // No progress: stop instead of looping.
          if (mine.start === before) break;
        } while (all && mine.length < MOST_ROWS);
      } finally {
        fetchingOlder.current = false;
        // Rendered once: a large log has hundreds of pieces.
        if (moved > 0) changed(moved);
      }
    },
    [id, epoch, changed],
  );

  return { ...state, loaded, error, older };
}

interface Listener {
  /// A fetch succeeded, with or without news.
  read: () => void;
  changed: () => void;
  failed: (error: unknown) => void;
}

async function follow(id: string, epoch: number, buffer: LogBuffer, signal: AbortSignal, listener: Listener) {
  let first = true;
  while (!signal.aborted && !buffer.complete) {
    let pause = EVERY;
    try {
      await untilSeen(signal);
      let offset = buffer.end;
      if (first) {
        const { total } = await readLog(id, epoch, BEHIND_THE_END, signal);
        offset = Math.max(0, total - PIECE);
      }
      const piece = await readLog(id, epoch, offset, signal);
      if (signal.aborted) return;
      const news = first || piece.text !== '' || piece.complete;
      buffer.append(piece);
      first = false;
      listener.read();
      if (news) listener.changed();
      // More is available already.
      if (piece.nextOffset < piece.total && piece.text !== '') pause = 0;
    } catch (error) {
      if (signal.aborted) return;
      listener.failed(error);
      pause = AFTER_A_PROBLEM;
    }
    if (pause > 0) await rest(pause, signal);
  }
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      done();
    });
  });
}

/// Waits while the tab is hidden.
function untilSeen(signal: AbortSignal): Promise<void> {
  if (document.visibilityState === 'visible') return Promise.resolve();
  return new Promise((done) => {
    const look = () => {
      if (document.visibilityState === 'visible' || signal.aborted) {
        document.removeEventListener('visibilitychange', look);
        done();
      }
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
  });
}

/// The whole log, fetched piece by piece.
export async function wholeLog(id: string, epoch: number, progress: (share: number) => void): Promise<Blob> {
  const parts: string[] = [];
  for (let offset = 0; ; ) {
    const piece = await readLog(id, epoch, offset);
    parts.push(piece.text);
    progress(piece.total === 0 ? 1 : Math.min(1, piece.nextOffset / piece.total));
    if (piece.text === '' || piece.nextOffset >= piece.total) break;
    offset = piece.nextOffset;
  }
  return new Blob(parts, { type: 'text/plain;charset=utf-8' });
}
