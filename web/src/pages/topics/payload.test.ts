import { describe, expect, it } from 'vitest';
import type { TopicJob } from '../../api/types';
import {
  enqueueBody,
  enqueueCommand,
  listed,
  type NewJob,
  parseExact,
  payloadError,
  runAtOf,
  shown,
} from './payload';

const job: NewJob = { payload: '{"to": "ana"}', priority: 'normal', runAt: '', key: '' };

describe('a payload', () => {
  it('is any JSON', () => {
    for (const text of ['{}', '[1]', '"x"', 'null', ' 3 ']) expect(payloadError(text), text).toBeUndefined();
    for (const text of ['', '  ', '{', "{'a': 1}", 'undefined'])
      expect(payloadError(text), text).toBeDefined();
  });

  it('is counted in bytes', () => {
    expect(payloadError(`"${'a'.repeat(256 * 1024 - 2)}"`)).toBeUndefined();
    expect(payloadError(`"${'ä'.repeat(128 * 1024)}"`)).toMatch(/256 KiB/);
  });

  it('goes out with its own digits', () => {
    const body = enqueueBody({ ...job, payload: '{"id": 12345678901234567890}' }, 'web-1');
    expect(body).toContain('"payload":{"id": 12345678901234567890}');
    expect(JSON.parse(body).idempotencyKey).toBe('web-1');
  });

  it('cannot smuggle fields in', () => {
    expect(payloadError('1,"priority":"critical"')).toBeDefined();
    const body = JSON.parse(enqueueBody({ ...job, key: '","priority":"x' }, 'web-1'));
    expect(body).toEqual({ payload: { to: 'ana' }, priority: 'normal', idempotencyKey: '","priority":"x' });
  });
});

it('turns local time into that of the coordinator', () => {
  expect(runAtOf('')).toEqual({});
  expect(runAtOf('2026-12-01T09:00')).toEqual({
    at: new Date('2026-12-01T09:00').toISOString().replace('.000Z', 'Z'),
  });
  expect(runAtOf('tomorrow').error).toBeDefined();
});

it('is the same as a command', () => {
  expect(enqueueCommand('demo', 'mail', job)).toBe(`giga topic enqueue mail '{"to": "ana"}' --product demo`);
  expect(enqueueCommand('demo', 'mail', { ...job, payload: '{', priority: 'high', key: 'a b' })).toBe(
    "giga topic enqueue mail JSON --priority high --key 'a b' --product demo",
  );
});

it('shows JSON as JSON, null as null, and other bytes as base64', () => {
  expect(shown({ payload: { a: 1 } })).toEqual({ kind: 'json', text: '{\n  "a": 1\n}' });
  expect(shown({ payload: null })).toEqual({ kind: 'json', text: 'null' });
  expect(shown({ payloadBase64: '/w==' })).toEqual({ kind: 'base64', text: '/w==' });
  expect(shown({})).toEqual({ kind: 'none', text: '' });
});

it('lists a job with the beginning of its payload', () => {
  const job = { id: '1', payload: 'x'.repeat(200) } as TopicJob;
  expect(listed(job).glimpse).toBe(`"${'x'.repeat(79)}…`);
  expect(listed({ ...job, payload: [1] }).glimpse).toBe('[1]');
  expect(listed({ ...job, payload: undefined, payloadBase64: '/w==' })).toEqual({
    id: '1',
    shown: { kind: 'base64', text: '/w==' },
    glimpse: '/w==',
  });
});

it('reads JSON as it is, in browsers old and new', () => {
  const text = '{"a":[1,"x",null,true,1.50],"b":{"c":-2}}';
  expect(JSON.parse(JSON.stringify(parseExact(text)))).toEqual(JSON.parse(text));
  expect(() => parseExact('{')).toThrow();
});
