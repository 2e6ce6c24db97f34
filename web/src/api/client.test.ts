import { expect, it, test, vi } from 'vitest';
import { answer, api, newKey } from './client';

function nobodyThere(): void {
  vi.stubGlobal('fetch', async () => {
    throw new TypeError('Failed to fetch');
  });
}

const path = { id: '01J0000000000000000000000A', action: 'ship' as const };

test('an action that nobody answered may have been done, and says so', async () => {
  nobodyThere();
  const call = answer(
    api.POST('/api/fleet/jobs/{id}/actions/{action}', { params: { path, header: {} }, body: {} }),
  );
  await expect(call).rejects.toMatchObject({
    code: 'unreachable',
    message:
      'the coordinator cannot be reached (Failed to fetch); the outcome is unknown; check before you try again',
  });
});

test.each([
  ['a read', () => api.GET('/api/fleet/metrics', {})],
  ['a dry run', () => api.POST('/api/fleet/plan', { body: { manifest: {}, bodyMd: '' } })],
  ['text to be drawn', () => api.POST('/api/fleet/markdown', { body: { texts: ['a'] } })],
] as const)('%s that nobody answered has done nothing', async (_what, call) => {
  nobodyThere();
  const asked: Promise<unknown> = answer<unknown>(call());
  await expect(asked).rejects.toMatchObject({
    code: 'unreachable',
    message: 'the coordinator cannot be reached (Failed to fetch)',
  });
});

it('is a key of its own, which a coordinator takes', () => {
  const keys = new Set(Array.from({ length: 100 }, newKey));
  expect(keys.size).toBe(100);
  for (const key of keys) expect(key).toMatch(/^web-[0-9a-f]{32}$/);
});
