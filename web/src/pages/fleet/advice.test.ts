import { expect, it } from 'vitest';
import type { Alert } from '../../api/types';
import { advice, grouped, message, severity, title, withName, worstFirst } from './advice';
import { startCommand } from './standing';

const alert = (code: string, part: Partial<Alert> = {}): Alert => ({ code, message: code, ...part });

it('puts the worst first, then the oldest, and those without a time last', () => {
  const sorted = worstFirst([
    alert('budget_near', { since: '2026-11-01T00:00:00Z' }),
    alert('starvation'),
    alert('starvation', { since: '2026-11-15T10:00:00Z' }),
    alert('no_eligible_factory', { since: '2026-11-15T09:00:00Z' }),
    alert('dead_letters', { since: '2026-11-15T12:00:00Z' }),
  ]);
  expect(sorted.map(({ code, since }) => [code, since?.slice(11, 13)])).toEqual([
    ['dead_letters', '12'],
    ['no_eligible_factory', '09'],
    ['starvation', '10'],
    ['starvation', undefined],
    ['budget_near', '00'],
  ]);
});

it('makes one of many silent factories, and keeps those apart that were never started', () => {
  const groups = grouped([
    alert('stale_factory', { factoryId: 'a', since: '2026-11-15T10:00:00Z' }),
    alert('stale_factory', { factoryId: 'b', since: '2026-11-15T09:00:00Z' }),
    alert('stale_factory', { factoryId: 'c' }),
    alert('starvation', { jobId: '1' }),
    alert('starvation', { jobId: '2' }),
  ]);
  expect(groups.map(({ alerts }) => alerts.map((one) => one.factoryId ?? one.jobId))).toEqual([
    ['b', 'a'],
    ['c'],
    ['1'],
    ['2'],
  ]);
  expect(groups.map(message).slice(0, 2)).toEqual([
    '2 factories have not been heard of for too long',
    'stale_factory',
  ]);
  expect(new Set(groups.map(({ key }) => key)).size).toBe(groups.length);
});

it('quotes names that a shell would take apart', () => {
  expect(advice(alert('budget_paused', { productId: "a'; rm -rf" })).command).toBe(
    "giga budget resume 'a'\\''; rm -rf'",
  );
});

it('says how to start a factory that never was, from another machine', () => {
  expect(advice(alert('stale_factory', { factoryId: 'mac-1' })).command).toBe(
    `giga factory run --id mac-1 --url ${window.location.origin} --token-file mac-1.token`,
  );
  expect(startCommand("m'1", 'https://giga.example:8443')).toBe(
    "giga factory run --id 'm'\\''1' --url https://giga.example:8443 --token-file 'm'\\''1.token'",
  );
});

it('calls a job by its name, whatever that is', () => {
  expect(withName('job 01J waits', '01J', '$& <b>')).toBe('job “$& <b>” waits');
  expect(withName('job 01J waits', '01J', undefined)).toBe('job 01J waits');
  expect(withName('all is slow', null, 'x')).toBe('all is slow');
});

it('has words for a code that came later', () => {
  expect(title(alert('disk_full'))).toBe('disk full');
  expect(severity(alert('disk_full'))).toBe('note');
  expect(advice(alert('disk_full')).command).toBe('giga alerts');
});
