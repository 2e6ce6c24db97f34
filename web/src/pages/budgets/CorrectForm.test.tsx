import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, it, vi } from 'vitest';
import { keys } from '../../api/queries';
import { ConfirmProvider } from '../../ui/Confirm';
import { CorrectForm } from './CorrectForm';

afterEach(() => void vi.unstubAllGlobals());

it('sends the same key for the same correction only, also where an answer was lost', async () => {
  const sent: [string, string | null][] = [];
  let lost = true;
  vi.stubGlobal('fetch', async (request: Request) => {
    sent.push([await request.text(), request.headers.get('idempotency-key')]);
    if (lost) throw new TypeError('connection reset');
    return Response.json({});
  });
  const client = new QueryClient();
  client.setQueryData(keys.whoami, { role: 'admin' });
  render(
    <QueryClientProvider client={client}>
      <MantineProvider env="test">
        <ConfirmProvider>
          <CorrectForm product="demo" />
        </ConfirmProvider>
      </MantineProvider>
    </QueryClientProvider>,
  );
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
