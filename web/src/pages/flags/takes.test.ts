import { describe, expect, it } from 'vitest';
import {
  divergenceRate,
  fieldText,
  flagCommand,
  isDelivery,
  loss,
  pictured,
  readField,
  takes,
} from './takes';

describe('what a flag takes', () => {
  it('is read from the words of the coordinator', () => {
    expect(takes('true or false')).toEqual({ kind: 'bool' });
    expect(takes('one of refuse, route')).toEqual({ kind: 'choice', words: ['refuse', 'route'] });
    expect(takes('a whole number from 250 to 600000')).toEqual({ kind: 'integer', min: 250, max: 600_000 });
    expect(takes('a poem')).toEqual({ kind: 'json' });
  });

  it('is checked as it is typed', () => {
    const number = takes('a whole number from 250 to 600000');
    expect(readField(' 250 ', number)).toEqual({ value: 250 });
    for (const text of ['', '249', '600001', '1.5', '1e3', 'soon']) {
      expect(readField(text, number).error, text).toBe('A whole number from 250 to 600000');
    }
    expect(readField('poll', takes('one of poll, stream'))).toEqual({ value: 'poll' });
    expect(readField('pull', takes('one of poll, stream')).error).toBe('One of poll, stream');
    expect(readField('true', { kind: 'bool' })).toEqual({ value: true });
    expect(readField('{"a":1}', { kind: 'json' })).toEqual({ value: { a: 1 } });
    expect(readField('word', { kind: 'json' })).toEqual({ value: 'word' });
  });
});

it('is the same as a command', () => {
  expect(flagCommand('strict', true)).toBe('giga flags set strict true');
  expect(flagCommand('delivery.mac-1', null)).toBe('giga flags set delivery.mac-1 null');
  expect(fieldText('stream')).toBe('stream');
});

it('knows which ones ask first', () => {
  expect(['delivery', 'delivery.mac-1', 'deliveries', 'strict'].map(isDelivery)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

it('says what is deleted when things are kept for less time', () => {
  const asks = (name: string, before: unknown, after: unknown) => loss(name, before, after) !== undefined;
  expect(loss('retention_hours', 720, 2)?.title).toBe('Keep finished jobs for 2 h only?');
  expect(loss('retention_hours', 720, 2)?.text).toMatch(/history, logs and files.*topic jobs/);
  expect(loss('artifact_retention_hours', 0, 48)?.title).toBe(
    'Keep the files of finished jobs for 2 d only?',
  );
  expect([
    asks('retention_hours', 720, 721),
    asks('retention_hours', 720, 720),
    asks('artifact_retention_hours', 0, 1),
    asks('artifact_retention_hours', 5, 4),
    asks('artifact_retention_hours', 5, 6),
    asks('artifact_retention_hours', 5, 0),
    asks('max_evictions', 5, 1),
    asks('retention_hours', undefined, 1),
  ]).toEqual([false, false, true, true, false, false, false, false]);
});

it('pictures long times', () => {
  expect(pictured({ name: 'lease_ms' }, 60_000)).toBe('1 min');
  expect(pictured({ name: 'pickup_ms' }, 250)).toBe('0.25 s');
  expect(pictured({ name: 'retention_hours' }, 720)).toBe('30 d');
  expect(pictured({ name: 'max_evictions' }, 3)).toBeUndefined();
  expect(pictured({ name: 'artifact_retention_hours' }, 0)).toBeUndefined();
});

it('has no rate where nothing was compared', () => {
  expect(divergenceRate(0, 0)).toBeUndefined();
  expect(divergenceRate(3, 1)).toBe(0.25);
});
