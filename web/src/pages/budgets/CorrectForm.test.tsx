import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, it, vi } from 'vitest';
import { keys } from '../../api/queries';
import { newClient, show } from '../../test/show';
import { CorrectForm } from './CorrectForm';

it('sends the same key for the same correction only, also where an answer was lost', async () => {
  const sent: [string, string | null][] = [];
  let lost = true;
  vi.stubGlobal('fetch', async (request: Request) => {
    sent.push([await request.text(), request.headers.get('idempotency-key')]);
    if (lost) throw new TypeError('connection reset');
    return Response.json({});
  });
  const client = newClient();
  client.setQueryData(keys.whoami, { role: 'admin' });
  show(<CorrectForm product="demo" />, client);
  const user = userEvent.setup();
  const dollars = screen.getByLabelText('Dollars');
  const correct = async () => {
    const calls = sent.length;
    await user.click(screen.getByRole('button', { name: 'Correct…' }));
    await user.click(await screen.findByRole('button', { name: 'Correct' }));
    await vi.waitFor(() => expect(sent).toHaveLength(calls + 1));
  };
  await user.type(dollars, '2');
  await user.type(screen.getByLabelText('Reason'), 'billed apart');
  await correct();
  await correct();
  await user.clear(dollars);
  await user.type(dollars, '7');
  lost = false;
  await correct();
  const [first, again, other] = sent;
  expect(first?.[1]).toBeTruthy();
  expect(again).toEqual(first);
  expect(other?.[0]).toBe('{"usd":7,"reason":"billed apart"}');
  expect(other?.[1]).not.toBe(first?.[1]);
  await vi.waitFor(() => expect((dollars as HTMLInputElement).value).toBe(''));
});
