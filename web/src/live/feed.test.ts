import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FeedEvent } from '../api/types';
import {
  DATA_TIMEOUT,
  Feed,
  FIRST_BACKOFF,
  HIDDEN_TIMEOUT,
  LONGEST_BACKOFF,
  RECHECK_INTERVAL,
  RESUME_WINDOW,
} from './feed';

/// A connection as the coordinator sees it.
class Connection {
  readonly headers: Record<string, string>;
  readonly signal: AbortSignal;
  private stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  private settle!: (response: unknown) => void;
  private refuse!: (why: unknown) => void;
  readonly response = new Promise<unknown>((settle, refuse) => {
    this.settle = settle;
    this.refuse = refuse;
  });

  constructor(init: RequestInit) {
    this.headers = init.headers as Record<string, string>;
    this.signal = init.signal as AbortSignal;
    this.signal.addEventListener('abort', () => {
      this.refuse(this.signal.reason);
      try {
        this.stream?.error(this.signal.reason);
      } catch {
        // Closed already.
      }
    });
  }

  async answer(status = 200): Promise<void> {
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => {
        this.stream = stream;
      },
    });
    this.settle({ status, ok: status < 400, body });
    await settled();
  }

  async say(text: string): Promise<void> {
    this.stream?.enqueue(new TextEncoder().encode(text));
    await settled();
  }

  event(pos: number, type = 'job.started'): Promise<void> {
    return this.say(`id: ${pos}\nevent: ${type}\ndata: ${JSON.stringify({ pos, type, data: {} })}\n\n`);
  }

  async hangUp(): Promise<void> {
    this.stream?.close();
    await settled();
  }

  async breakOff(why: string): Promise<void> {
    this.refuse(new TypeError(why));
    this.stream?.error(new TypeError(why));
    await settled();
  }
}

const settled = () => vi.advanceTimersByTimeAsync(0);
const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);

let connections: Connection[];
let feed: Feed;
let refused: string[];
let events: FeedEvent[];
let visibility: DocumentVisibilityState;

const newest = (): Connection => {
  const last = connections.at(-1);
  if (!last) throw new Error('nobody has connected');
  return last;
};
const connected = async () => {
  feed.start();
  await newest().answer();
};
const show = async (state: DocumentVisibilityState) => {
  visibility = state;
  document.dispatchEvent(new Event('visibilitychange'));
  await settled();
};

beforeEach(() => {
  vi.useFakeTimers();
  connections = [];
  refused = [];
  events = [];
  visibility = 'visible';
  vi.spyOn(document, 'visibilityState', 'get').mockImplementation(() => visibility);
  vi.stubGlobal('fetch', (_: string, init: RequestInit) => {
    const connection = new Connection(init);
    connections.push(connection);
    return connection.response;
  });
  feed = new Feed({ token: 'giga_secret123', refused: (why) => refused.push(why) });
  feed.onEvent((event) => events.push(event));
});

afterEach(() => feed.stop());

describe('a connection', () => {
  test('sends the token as a header, is told of, and passes events on', async () => {
    const told = vi.fn();
    feed.onConnect(told);
    feed.start();
    expect(feed.state()).toEqual({ kind: 'connecting' });
    expect(newest().headers).toMatchObject({ Authorization: 'Bearer giga_secret123' });
    expect(newest().headers).not.toHaveProperty('Last-Event-ID');
    await newest().answer();
    expect(feed.state()).toEqual({ kind: 'live' });
    expect(told).toHaveBeenCalledOnce();
    expect(told).toHaveBeenCalledWith(false);
    await newest().event(41);
    await newest().event(42);
    expect(events.map((event) => event.pos)).toEqual([41, 42]);
  });

  test('is missed at once when it breaks, and resumed after the last event', async () => {
    const told = vi.fn();
    feed.onConnect(told);
    await connected();
    await newest().event(41);
    await newest().breakOff('network error');
    expect(feed.state()).toEqual({ kind: 'lost', since: Date.now(), why: 'network error' });
    expect(connections).toHaveLength(1);
    await later(FIRST_BACKOFF);
    expect(connections).toHaveLength(2);
    expect(newest().headers['Last-Event-ID']).toBe('41');
    expect(feed.state().kind).toBe('lost');
    await newest().answer();
    expect(feed.state().kind).toBe('live');
    expect(told.mock.calls).toEqual([[false], [true]]);
  });

  test('is missed as well when the coordinator closes it', async () => {
    await connected();
    await newest().hangUp();
    expect(feed.state()).toMatchObject({ kind: 'lost', why: 'the coordinator closed the connection' });
  });

  test('that is silent is dead within 12 s; a comment is a sign of life', async () => {
    await connected();
    await later(DATA_TIMEOUT - 1);
    expect(feed.state().kind).toBe('live');
    await newest().say(': still here\n\n');
    await later(DATA_TIMEOUT - 1);
    expect(feed.state().kind).toBe('live');
    await later(1);
    expect(feed.state()).toMatchObject({ kind: 'lost', why: 'no data for 12 s' });
    expect(newest().signal.aborted).toBe(true);
  });

  test('that is never answered is given up in the same time', async () => {
    feed.start();
    await later(DATA_TIMEOUT);
    expect(feed.state()).toMatchObject({ kind: 'lost', why: 'no data for 12 s' });
  });

  test('that cannot be had is tried less and less often, and remembers since when', async () => {
    feed.start();
    const since = Date.now();
    const waits: number[] = [];
    for (let tries = 0; tries < 6; tries += 1) {
      await newest().answer(503);
      const from = Date.now();
      const before = connections.length;
      while (connections.length === before) await later(100);
      waits.push(Date.now() - from);
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, LONGEST_BACKOFF, LONGEST_BACKOFF]);
    expect(feed.state()).toEqual({ kind: 'lost', since, why: 'the coordinator returned status 503' });
  });

  test('that answers and hangs up without a word does not shorten the wait', async () => {
    await connected();
    await newest().hangUp();
    await later(FIRST_BACKOFF);
    await newest().answer();
    await newest().hangUp();
    await later(FIRST_BACKOFF);
    expect(connections).toHaveLength(2);
    await later(FIRST_BACKOFF);
    expect(connections).toHaveLength(3);
    // One that speaks does.
    await newest().answer();
    await newest().say(': still here\n\n');
    await newest().hangUp();
    await later(FIRST_BACKOFF);
    expect(connections).toHaveLength(4);
  });

  test('that another call casts doubt on is opened anew, and missed if that fails', async () => {
    await connected();
    await newest().event(41);
    await later(RECHECK_INTERVAL);
    feed.recheck();
    expect(connections).toHaveLength(1);
    await later(1);
    feed.recheck();
    expect(connections).toHaveLength(2);
    expect(connections[0]?.signal.aborted).toBe(true);
    expect(newest().headers['Last-Event-ID']).toBe('41');
    expect(feed.state().kind).toBe('live');
    await newest().breakOff('refused');
    expect(feed.state().kind).toBe('lost');
    // Now it waits for its turn like any other.
    feed.recheck();
    expect(connections).toHaveLength(2);
  });

  test('is tried at once when somebody asks for it', async () => {
    feed.start();
    await newest().breakOff('refused');
    feed.reconnect();
    expect(connections).toHaveLength(2);
    await newest().answer();
    expect(feed.state().kind).toBe('live');
    // The attempt that was due is off, and a live connection is left alone.
    feed.reconnect();
    await later(LONGEST_BACKOFF);
    expect(connections).toHaveLength(2);
  });
});

describe('the token', () => {
  test.each([
    [401, 'ended'],
    [403, 'forbidden'],
  ])('with status %i is over: %s, and nothing is tried again', async (status, why) => {
    feed.start();
    await newest().answer(status);
    expect(refused).toEqual([why]);
    await later(60_000);
    expect(connections).toHaveLength(1);
  });

  test('that is refused after the feed was stopped is nobody’s business', async () => {
    feed.start();
    const connection = newest();
    const answered = connection.answer(401);
    feed.stop();
    await answered;
    expect(refused).toEqual([]);
  });
});

describe('an event', () => {
  test('that cannot be read is passed over and not asked for again', async () => {
    await connected();
    await newest().say('id: 41\ndata: {"half\n\nid: 42\ndata: null\n\n');
    await newest().event(43);
    expect(events.map((event) => event.pos)).toEqual([43]);
    expect(feed.state().kind).toBe('live');
    await newest().say('id: 44\ndata: {"half\n\n');
    await newest().hangUp();
    await later(FIRST_BACKOFF);
    expect(newest().headers['Last-Event-ID']).toBe('44');
  });

  test('that one listener chokes on is told to the others all the same', async () => {
    const reported = vi.fn();
    vi.stubGlobal('reportError', reported);
    const other = vi.fn();
    feed.onEvent(() => {
      throw new Error('a bug in a page');
    });
    feed.onEvent(other);
    await connected();
    await newest().event(41);
    expect(other).toHaveBeenCalledOnce();
    expect(reported).toHaveBeenCalledOnce();
    expect(feed.state().kind).toBe('live');
  });

  test('is cut anywhere by the network, also within a letter', async () => {
    await connected();
    const bytes = new TextEncoder().encode('id: 1\ndata: {"type":"job.shipped","cause":"schön"}\n\n');
    for (const byte of bytes) {
      // biome-ignore lint/complexity/useLiteralKeys: the stream is the test's own
      newest()['stream']?.enqueue(Uint8Array.of(byte));
      await settled();
    }
    expect(events).toEqual([{ type: 'job.shipped', cause: 'schön' }]);
  });
});

describe('a tab that nobody looks at', () => {
  test('gives its connection back and goes on where it was', async () => {
    await connected();
    await newest().event(41);
    await show('hidden');
    // The coordinator goes on saying that it is there.
    for (let past = 0; past < HIDDEN_TIMEOUT - 5_000; past += 5_000) {
      await later(5_000);
      await newest().say(': still here\n\n');
    }
    expect(feed.state().kind).toBe('live');
    await later(5_000);
    expect(feed.state().kind).toBe('asleep');
    expect(newest().signal.aborted).toBe(true);
    await later(LONGEST_BACKOFF * 2);
    expect(connections).toHaveLength(1);
    await show('visible');
    expect(feed.state().kind).toBe('connecting');
    expect(newest().headers['Last-Event-ID']).toBe('41');
    await newest().answer();
    expect(feed.state().kind).toBe('live');
  });

  test('that is looked at again in time keeps its connection', async () => {
    await connected();
    await show('hidden');
    await later(5_000);
    await show('visible');
    await newest().say(': still here\n\n');
    await later(5_000);
    expect(connections).toHaveLength(1);
    expect(feed.state().kind).toBe('live');
  });

  test('begins anew after a night: everything is read again then anyway', async () => {
    await connected();
    await newest().event(41);
    await show('hidden');
    await later(RESUME_WINDOW + HIDDEN_TIMEOUT);
    await show('visible');
    expect(newest().headers).not.toHaveProperty('Last-Event-ID');
  });

  test('that was opened in the background falls asleep too', async () => {
    visibility = 'hidden';
    await connected();
    await later(HIDDEN_TIMEOUT);
    expect(feed.state().kind).toBe('asleep');
  });

  test('that waits for its turn does not wait any longer when it is looked at', async () => {
    feed.start();
    await newest().breakOff('refused');
    await show('visible');
    expect(connections).toHaveLength(2);
  });
});

describe('stop', () => {
  test('while connecting leaves nothing behind', async () => {
    const heard = vi.fn();
    feed.onState(heard);
    feed.start();
    const connection = newest();
    feed.stop();
    expect(connection.signal.aborted).toBe(true);
    await connection.answer();
    await later(60_000);
    expect(connections).toHaveLength(1);
    expect(heard).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('and start again, as React does in development, leaves one connection', async () => {
    feed.start();
    feed.stop();
    feed.start();
    expect(connections).toHaveLength(2);
    await newest().answer();
    await newest().event(41);
    expect(events).toHaveLength(1);
    expect(feed.state().kind).toBe('live');
    expect(connections.filter((connection) => !connection.signal.aborted)).toHaveLength(1);
  });
});
