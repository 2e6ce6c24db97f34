// The one connection of this tab: the fleet-wide feed, by fetch, because EventSource cannot send a token in a header.
//
// After a loss it goes on from the last event it saw. Whoever listens is told of every loss at once, and of every
// connection, also the first: between the first look at the data and the connection something may have happened.

import type { FeedEvent } from '../api/types';
import { SseParser } from './sse';

/// The coordinator says something every 5 s; silence for so long is a dead connection.
const SILENCE = 12_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 5_000;
/// A tab that nobody looks at gives its connection back: browsers allow six to one host, over all tabs.
const HIDDEN = 60_000;

export type FeedState =
  | { kind: 'connecting' }
  | { kind: 'live' }
  | { kind: 'asleep' }
  | { kind: 'lost'; since: number; why: string };

export interface FeedOptions {
  token: string;
  /// The token is no longer good.
  refused(): void;
  now?(): number;
}

export class Feed {
  private current: FeedState = { kind: 'connecting' };
  private lastId: string | undefined;
  private abort: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private hiddenTimer: ReturnType<typeof setTimeout> | undefined;
  private wait = FIRST_WAIT;
  private readonly states = new Set<() => void>();
  private readonly events = new Set<(event: FeedEvent) => void>();
  private readonly connections = new Set<() => void>();

  constructor(private readonly options: FeedOptions) {}

  start(): void {
    document.addEventListener('visibilitychange', this.seen);
    window.addEventListener('online', this.hurry);
    void this.connect();
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.seen);
    window.removeEventListener('online', this.hurry);
    clearTimeout(this.timer);
    clearTimeout(this.hiddenTimer);
    this.abort?.abort();
    this.abort = undefined;
  }

  state = (): FeedState => this.current;

  onState = (listener: () => void): (() => void) => keep(this.states, listener);
  onEvent = (listener: (event: FeedEvent) => void): (() => void) => keep(this.events, listener);
  onConnect = (listener: () => void): (() => void) => keep(this.connections, listener);

  /// Tries at once instead of when its turn comes.
  hurry = (): void => {
    if (this.current.kind !== 'lost') return;
    clearTimeout(this.timer);
    void this.connect();
  };

  private readonly seen = (): void => {
    clearTimeout(this.hiddenTimer);
    if (document.visibilityState === 'hidden') {
      this.hiddenTimer = setTimeout(() => this.sleep(), HIDDEN);
    } else if (this.current.kind === 'asleep') {
      void this.connect();
    }
  };

  private sleep(): void {
    clearTimeout(this.timer);
    this.set({ kind: 'asleep' });
    this.abort?.abort();
  }

  private async connect(): Promise<void> {
    const abort = new AbortController();
    this.abort?.abort();
    this.abort = abort;
    if (this.current.kind === 'asleep') this.set({ kind: 'connecting' });
    try {
      await this.read(abort);
      this.lost(abort, 'the coordinator closed the connection');
    } catch (error) {
      this.lost(abort, error instanceof Error ? error.message : String(error));
    }
  }

  private async read(abort: AbortController): Promise<void> {
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.options.token}`,
      Accept: 'text/event-stream',
    };
    if (this.lastId !== undefined) headers['Last-Event-ID'] = this.lastId;
    const watchdog = new Watchdog(() => abort.abort(new Error(`silent for ${SILENCE / 1000} s`)));
    try {
      const response = await fetch('/api/fleet/events/stream', {
        headers,
        signal: abort.signal,
        cache: 'no-store',
      });
      if (response.status === 401) {
        this.options.refused();
        return;
      }
      if (!response.ok || !response.body) throw new Error(`it answered with status ${response.status}`);
      this.wait = FIRST_WAIT;
      this.set({ kind: 'live' });
      for (const told of this.connections) told();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new SseParser();
      for (;;) {
        watchdog.pat();
        const { done, value } = await reader.read();
        if (done) return;
        for (const message of parser.feed(value)) this.tell(message.id, message.data);
      }
    } finally {
      watchdog.rest();
    }
  }

  private tell(id: string | undefined, data: string): void {
    const event = JSON.parse(data) as FeedEvent;
    this.lastId = id ?? this.lastId;
    for (const told of this.events) told(event);
  }

  private lost(abort: AbortController, why: string): void {
    // Another connection took its place, or nobody wants one any more.
    if (this.abort !== abort || this.current.kind === 'asleep') return;
    const reason = abort.signal.reason instanceof Error ? abort.signal.reason.message : why;
    const since = this.current.kind === 'lost' ? this.current.since : (this.options.now ?? Date.now)();
    this.set({ kind: 'lost', since, why: reason });
    this.timer = setTimeout(() => void this.connect(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }

  private set(state: FeedState): void {
    this.current = state;
    for (const told of this.states) told();
  }
}

class Watchdog {
  private timer: ReturnType<typeof setTimeout>;
  constructor(private readonly bark: () => void) {
    this.timer = setTimeout(bark, SILENCE);
  }
  pat(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.bark, SILENCE);
  }
  rest(): void {
    clearTimeout(this.timer);
  }
}

function keep<T>(set: Set<T>, listener: T): () => void {
  set.add(listener);
  return () => set.delete(listener);
}
