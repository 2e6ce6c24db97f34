import { expect, it } from 'vitest';
import type { Alert } from '../../api/types';
import { grouped, groupMessage, withName } from './Alerts';
import { startCommand } from './factories';

const alert = (code: Alert['code'], part: Partial<Alert> = {}): Alert => ({
  code,
  severity: 'warning',
  title: code,
  message: code,
  ...part,
});

it('keeps the order of the coordinator', () => {
  const sent = [
    alert('dead_letters', { since: '2026-11-15T12:00:00Z' }),
    alert('no_eligible_factory', { since: '2026-11-15T09:00:00Z', jobId: '0' }),
    alert('starvation', { since: '2026-11-15T10:00:00Z', jobId: '1' }),
    alert('starvation', { jobId: '2' }),
    alert('budget_near', { since: '2026-11-01T00:00:00Z', productId: 'demo' }),
  ];
  expect(grouped(sent).map(({ first }) => first)).toEqual(sent);
});

it('makes one of many offline factories, and keeps those apart that never connected', () => {
  const offline = { message: 'check its machine' };
  const groups = grouped([
    alert('stale_factory', { factoryId: 'b', since: '2026-11-15T09:00:00Z', remedy: offline }),
    alert('stale_factory', { factoryId: 'a', since: '2026-11-15T10:00:00Z', remedy: offline }),
    alert('stale_factory', { factoryId: 'c', remedy: { message: 'start it' } }),
    alert('starvation', { jobId: '1' }),
    alert('starvation', { jobId: '2' }),
  ]);
  expect(groups.map(({ alerts }) => alerts.map((one) => one.factoryId ?? one.jobId))).toEqual([
    ['b', 'a'],
    ['c'],
    ['1'],
    ['2'],
  ]);
  expect(groups.map(groupMessage).slice(0, 2)).toEqual(['2 factories', 'stale_factory']);
  expect(new Set(groups.map(({ key }) => key)).size).toBe(groups.length);
});

it('starts a factory from another machine, quoting names that a shell would take apart', () => {
  expect(startCommand('mac-1')).toBe(
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

it('shows each pool that does not start on its own', () => {
  const failing = (name: string) => alert('pool_start_failed', { message: `pool ${name}: 3 failed starts` });
  const groups = grouped([failing('gpu'), failing('local')]);
  expect(groups.map(groupMessage)).toEqual(['pool gpu: 3 failed starts', 'pool local: 3 failed starts']);
});
