// The one connection of this tab: the fleet-wide feed, by fetch, because EventSource cannot send a token in a header.
//
// After a loss it resumes from the last event it saw. Listeners are notified of every loss at once, and of every
// connection, also the first: between the first fetch and the connection something may have happened.

import type { FeedEvent } from '../api/types';
import { SseParser } from './sse';

/// The coordinator sends something every 5 s; a connection without data for this long is dead.
export const DATA_TIMEOUT = 12_000;
export const FIRST_BACKOFF = 500;
export const LONGEST_BACKOFF = 5_000;
/// A hidden tab closes its connection: browsers allow six to one host, over all tabs.
export const HIDDEN_TIMEOUT = 60_000;
/// After a longer gap the events in between are not fetched: everything is refreshed on a connection anyway, and a night of
/// a busy fleet is more than a page should go through.
export const RESUME_WINDOW = 10 * 60_000;

/// A connection is not checked again so soon after it was made: a call that always fails must not cause a loop.
export const RECHECK_INTERVAL = 10_000;

export type FeedState =
  | { kind: 'connecting' }
  | { kind: 'live' }
  | { kind: 'asleep' }
  | { kind: 'lost'; since: number; why: string };

export interface FeedOptions {
  token: string;
  /// The token was revoked, or it never had the permission.
  refused(why: 'ended' | 'forbidden'): void;
}

export class Feed {
  private current: FeedState = { kind: 'connecting' };
  private lastId: string | undefined;
  private lastDataAt = 0;
  private connectedAt = 0;
  /// The current connection, or the attempt at one. Anything from an earlier one is ignored.
  private abort: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private hiddenTimer: ReturnType<typeof setTimeout> | undefined;
  private wait = FIRST_BACKOFF;
  private readonly states = new Set<() => void>();
  private readonly events = new Set<(event: FeedEvent) => void>();
  private readonly connections = new Set<(resumed: boolean) => void>();

  constructor(private readonly options: FeedOptions) {}

  start(): void {
    document.addEventListener('visibilitychange', this.seen);
    window.addEventListener('online', this.reconnect);
    // A tab may be opened in the background.
    this.seen();
    void this.connect();
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.seen);
    window.removeEventListener('online', this.reconnect);
    clearTimeout(this.hiddenTimer);
    this.close();
  }

  state = (): FeedState => this.current;

  onState = (listener: () => void): (() => void) => subscribe(this.states, listener);
  onEvent = (listener: (event: FeedEvent) => void): (() => void) => subscribe(this.events, listener);
  /// `resumed`: the events since the loss are sent again.
  onConnect = (listener: (resumed: boolean) => void): (() => void) => subscribe(this.connections, listener);

  /// Tries at once instead of waiting for the next attempt.
  reconnect = (): void => {
    if (this.current.kind === 'lost') void this.connect();
  };

  /// Another call got no answer. The stream may not have noticed yet, so it is opened again: either it resumes, or the
  /// loss is known.
  recheck = (): void => {
    if (this.current.kind === 'live' && Date.now() - this.connectedAt > RECHECK_INTERVAL) void this.connect();
  };

  private readonly seen = (): void => {
    clearTimeout(this.hiddenTimer);
    if (document.visibilityState === 'hidden') {
      this.hiddenTimer = setTimeout(() => this.sleep(), HIDDEN_TIMEOUT);
    } else if (this.current.kind === 'asleep') {
      this.set({ kind: 'connecting' });
      void this.connect();
    } else {
      this.reconnect();
    }
  };

  private sleep(): void {
    this.close();
    this.set({ kind: 'asleep' });
  }

  private close(): void {
    clearTimeout(this.timer);
    const abort = this.abort;
    this.abort = undefined;
    abort?.abort();
  }

  private async connect(): Promise<void> {
    this.close();
    const abort = new AbortController();
    this.abort = abort;
    let why = 'the coordinator closed the connection';
    try {
      const refused = await this.read(abort);
      if (refused) {
        if (this.abort === abort) this.options.refused(refused);
        return;
      }
    } catch (error) {
      const cause: unknown = abort.signal.aborted ? abort.signal.reason : error;
      why = cause instanceof Error ? cause.message : String(cause);
    }
    if (this.abort === abort) this.lost(why);
  }

  private async read(abort: AbortController): Promise<'ended' | 'forbidden' | undefined> {
    const watchdog = new Watchdog(() => abort.abort(new Error(`no data for ${DATA_TIMEOUT / 1000} s`)));
    try {
      const headers = this.headers();
      const response = await fetch('/api/fleet/events/stream', {
        headers,
        signal: abort.signal,
        cache: 'no-store',
      });
      if (response.status === 401) return 'ended';
      if (response.status === 403) return 'forbidden';
      if (!response.ok || !response.body)
        throw new Error(`the coordinator returned status ${response.status}`);
      if (this.abort !== abort) return undefined;
      this.lastDataAt = Date.now();
      this.connectedAt = this.lastDataAt;
      this.set({ kind: 'live' });
      notify(this.connections, 'Last-Event-ID' in headers);
      await this.follow(response.body, abort, watchdog);
      return undefined;
    } finally {
      watchdog.stop();
    }
  }

  private headers(): Record<string, string> {
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.options.token}`,
      Accept: 'text/event-stream',
    };
    if (Date.now() - this.lastDataAt > RESUME_WINDOW) this.lastId = undefined;
    if (this.lastId !== undefined) headers['Last-Event-ID'] = this.lastId;
    return headers;
  }

  private async follow(body: ReadableStream<Uint8Array>, abort: AbortController, watchdog: Watchdog) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const parser = new SseParser();
    for (;;) {
      watchdog.reset();
      const { done, value } = await reader.read();
      if (done || this.abort !== abort) return;
      // Only a connection with data resets the backoff: one that is closed at once is not retried twice a second.
      this.wait = FIRST_BACKOFF;
      this.lastDataAt = Date.now();
      for (const { id, data } of parser.feed(decoder.decode(value, { stream: true }))) {
        this.lastId = id ?? this.lastId;
        const event = readEvent(data);
        if (event) notify(this.events, event);
      }
    }
  }

  private lost(why: string): void {
    this.abort = undefined;
    const since = this.current.kind === 'lost' ? this.current.since : Date.now();
    this.timer = setTimeout(() => void this.connect(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_BACKOFF);
    this.set({ kind: 'lost', since, why });
  }

  private set(state: FeedState): void {
    this.current = state;
    notify(this.states, undefined);
  }
}

/// What cannot be parsed is skipped: fetching it again would not help.
function readEvent(data: string): FeedEvent | undefined {
  try {
    const read: unknown = JSON.parse(data);
    const isEvent =
      typeof read === 'object' && read !== null && 'type' in read && typeof read.type === 'string';
    return isEvent ? (read as FeedEvent) : undefined;
  } catch {
    return undefined;
  }
}

class Watchdog {
  private timer: ReturnType<typeof setTimeout>;
  constructor(private readonly expired: () => void) {
    this.timer = setTimeout(expired, DATA_TIMEOUT);
  }
  reset(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.expired, DATA_TIMEOUT);
  }
  stop(): void {
    clearTimeout(this.timer);
  }
}

function subscribe<T>(set: Set<T>, listener: T): () => void {
  set.add(listener);
  return () => set.delete(listener);
}

/// One listener's bug is reported and costs neither the connection nor the other listeners anything.
function notify<T>(listeners: Set<(value: T) => void>, value: T): void {
  for (const listener of listeners) {
    try {
      listener(value);
    } catch (error) {
      reportError(error);
    }
  }
}
