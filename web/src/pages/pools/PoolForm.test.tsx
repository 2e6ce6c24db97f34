import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, expect, test, vi } from 'vitest';
import { keys } from '../../api/queries';
import type { Pool } from '../../api/types';
import { newClient, show } from '../../test/show';
import { pool } from '../../test/things';
import { DEFAULTS } from './fields';
import { PoolSwitch } from './PoolActions';
import { PoolForm } from './PoolForm';

let sent: Request[] = [];
beforeEach(() => {
  sent = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    sent.push(request.clone());
    return Response.json(pool({ rev: 8 }));
  });
});

function shown(what: Parameters<typeof show>[0], me: object = { role: 'admin', everyProduct: true }) {
  const client = newClient();
  client.setQueryData(keys.whoami, me);
  return show(what, client);
}

const known = () => pool({ rev: 7, settings: { ...DEFAULTS, max: 4, paused: true } });
const form = (of: Pool | undefined, onDone = vi.fn()) => (
  <PoolForm pool={of} taken={['gpu']} onDone={onDone} onCancel={() => {}} />
);

test('a change sends all settings, for the pool as it was shown', async () => {
  const onDone = vi.fn();
  shown(form(known(), onDone));
  const user = userEvent.setup();
  const save = screen.getByRole('button', { name: 'Save' });
  expect(save.hasAttribute('disabled')).toBe(true);
  const seats = screen.getByLabelText('Seats');
  await user.clear(seats);
  await user.type(seats, '2');
  expect(screen.getByText('giga pool set gpu --seats 2')).toBeTruthy();
  await user.click(save);
  await vi.waitFor(() => expect(onDone).toHaveBeenCalledOnce());
  const put = sent.find(({ method }) => method === 'PUT');
  expect(new URL(put?.url ?? '').pathname).toBe('/api/fleet/pools/gpu');
  expect(put?.headers.get('if-match')).toBe('"rev-7"');
  expect(await put?.json()).toEqual({ ...DEFAULTS, max: 4, seats: 2, paused: true });
});

test('a pause meanwhile is kept, and another change is not undone', async () => {
  const { rerender } = shown(form(pool({ rev: 7 })));
  const user = userEvent.setup();
  await user.type(screen.getByLabelText('Warm'), '1');
  rerender(form(pool({ rev: 8, settings: { ...DEFAULTS, max: 4, paused: true } })));
  expect(screen.queryByText('Somebody else changed this pool')).toBeNull();
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await vi.waitFor(() => expect(sent.some(({ method }) => method === 'PUT')).toBe(true));
  const put = sent.find(({ method }) => method === 'PUT');
  expect(put?.headers.get('if-match')).toBe('"rev-8"');
  expect(await put?.json()).toMatchObject({ paused: true, warm: 1 });
  rerender(form(pool({ rev: 9, settings: { ...DEFAULTS, max: 2 } })));
  expect(screen.getByText('Somebody else changed this pool')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Save' }).hasAttribute('disabled')).toBe(true);
});

test('a new pool needs a name that no other has', async () => {
  shown(form(undefined));
  const user = userEvent.setup();
  const make = screen.getByRole('button', { name: 'Make the pool' });
  await user.type(screen.getByLabelText('Name'), 'gpu');
  expect(screen.getByText(/There is a pool of this name/)).toBeTruthy();
  expect(make.hasAttribute('disabled')).toBe(true);
  await user.type(screen.getByLabelText('Name'), '-2');
  expect(screen.getByText('giga pool set gpu-2')).toBeTruthy();
  await user.click(make);
  await vi.waitFor(() => expect(sent.some(({ method }) => method === 'PUT')).toBe(true));
  expect(sent.find(({ method }) => method === 'PUT')?.headers.get('if-match')).toBeNull();
});

test('an operator pauses and does not change; a token for one product does neither', async () => {
  const both = (
    <>
      {form(known())}
      <PoolSwitch pool={known()} />
    </>
  );
  const { unmount } = shown(both, { role: 'operator', everyProduct: true });
  expect((screen.getByLabelText('Seats') as HTMLInputElement).readOnly).toBe(true);
  const resume = screen.getByRole('button', { name: 'Resume gpu' });
  expect(resume.hasAttribute('disabled')).toBe(false);
  await userEvent.click(resume);
  await userEvent.click(await screen.findByRole('button', { name: 'Resume' }));
  await vi.waitFor(() =>
    expect(sent.map(({ url }) => new URL(url).pathname)).toContain('/api/fleet/pools/gpu/resume'),
  );
  unmount();
  shown(both, { role: 'admin', everyProduct: false });
  expect((screen.getByLabelText('Seats') as HTMLInputElement).readOnly).toBe(true);
  expect(screen.getByRole('button', { name: 'Resume gpu' }).hasAttribute('disabled')).toBe(true);
});
