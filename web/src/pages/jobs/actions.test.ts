import { expect, test, vi } from 'vitest';
import { STAGES } from '../../api/vocabulary';
import { job } from '../../test/things';
import { act, actionCommand, jobActions } from './actions';

test('each stage offers what the coordinator allows there', () => {
  const offered = Object.fromEntries(
    STAGES.map((stage) => [stage, jobActions({ stage }).map(({ name }) => name)]),
  );
  expect(offered).toEqual({
    queued: ['cancel'],
    blocked: ['cancel'],
    assigned: ['cancel'],
    building: ['cancel'],
    review: ['requeue', 'reject', 'cancel'],
    testing: ['ship', 'cancel'],
    shipping: ['cancel'],
    shipped: [],
    failed: ['requeue', 'cancel'],
    dead_letter: [],
    cancelled: [],
  });
  const failed = (reason: 'merge_refused' | 'crash') =>
    jobActions({ stage: 'failed', failure: { reason } }).map(({ name }) => name);
  expect(failed('merge_refused')).toEqual(['ship', 'requeue', 'cancel']);
  expect(failed('crash')).toEqual(['requeue', 'cancel']);
  expect(jobActions({ stage: 'of the future' as never })).toEqual([]);
});

test('the command is one that a shell understands', () => {
  expect(actionCommand('ship', ['a'])).toBe('giga job ship a');
  expect(actionCommand('reject', ["it's"])).toBe("giga job reject 'it'\\''s'");
  expect(actionCommand('cancel', ['a', 'b'])).toBe("printf '%s\\n' a b | xargs -n1 giga job cancel");
  expect(actionCommand('cancel', [])).toBe('');
});

test('a single action holds only for the job as it was seen', async () => {
  const sent: Request[] = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    sent.push(request);
    return Response.json(job(1, { stage: 'cancelled' }));
  });
  const seen = job(1, { rev: 7 });
  await expect(act('cancel', seen)).resolves.toMatchObject({ stage: 'cancelled' });
  await act('cancel', seen, { onlyIfUnchanged: false });
  expect(sent.map((request) => request.headers.get('if-match'))).toEqual(['"rev-7"', null]);
  expect(sent[0]?.url).toMatch(new RegExp(`/api/fleet/jobs/${seen.id}/actions/cancel$`));
  expect(await sent[0]?.json()).toEqual({});
});
