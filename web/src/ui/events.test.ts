import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { FeedEvent } from '../api/types';
import { eventSentence, failureTitle } from './events';

// The coordinator writes this page from its own list of events.
const documented = [...readFileSync('../docs/events.md', 'utf8').matchAll(/^\| `([a-z_.]+)` \|/gm)].map(
  (row) => row[1] ?? '',
);

function event(type: string, part: Partial<FeedEvent> = {}): FeedEvent {
  return {
    pos: 1,
    at: '2026-01-01T00:00:00Z',
    type,
    cause: '',
    actor: 'reaper',
    data: {},
    ...part,
  } as FeedEvent;
}

it('the page lists the events that this test goes by', () => {
  expect(documented.length).toBeGreaterThan(40);
  expect(documented).toContain('job.lease_expired');
});

describe.each(documented)('%s', (type) => {
  it('has a sentence, also when its data is missing or nonsense', () => {
    for (const data of [{}, { reason: {}, detail: Number.NaN, factoryId: [] }]) {
      const sentence = eventSentence(event(type, { data: data as FeedEvent['data'] }));
      expect(sentence).not.toMatch(/undefined|NaN|null|\[object/);
      expect(sentence.length).toBeGreaterThan(5);
    }
  });
});

describe('sentences', () => {
  it.each([
    [event('job.assigned', { cause: 'claimed by mac-1 as run 3' }), 'Claimed by mac-1 as run 3'],
    [
      event('job.failed', { data: { reason: 'verify_failed', detail: 'sh test.sh' } as never }),
      'Verification failed: sh test.sh',
    ],
    [
      event('job.retried', { data: { reason: 'crash', detail: 'exit status: 3', readyAt: 'soon' } as never }),
      'Exited with code 3: exit status: 3; will be retried',
    ],
    [
      event('job.failed', { data: { reason: 'crash', detail: 'exited with code 3: boom' } as never }),
      'Exited with code 3: boom',
    ],
    [event('job.retried', { data: { reason: 'timeout' } as never }), 'Timed out'],
    [event('job.failed', { cause: 'something broke' }), 'Something broke'],
    [event('job.unheard_of', { cause: 'something new' }), 'Something new'],
    [event('constructor', { cause: 'not ours' }), 'Not ours'],
  ])('%#', (given, text) => {
    expect(eventSentence(given)).toBe(text);
  });
});

it('names a crash by how the process ended', () => {
  expect(failureTitle('crash', 'exit status: 3\nboom')).toBe('Exited with code 3');
  expect(failureTitle('crash', 'signal: 9 (SIGKILL)')).toBe('Was ended by signal 9');
  expect(failureTitle('crash', 'exited with code 3: boom')).toBe('Exited with code 3');
  expect(failureTitle('crash', 'was ended by signal 9')).toBe('Was ended by signal 9');
  expect(failureTitle('crash')).toBe('Crashed');
  expect(failureTitle('verify_failed', 'exit status: 3')).toBe('Verification failed');
});
