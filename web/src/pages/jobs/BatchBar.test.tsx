import { notifications } from '@mantine/notifications';
import { act, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { beforeEach, expect, type MockInstance, test, vi } from 'vitest';
import { whoamiQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { newClient, show } from '../../test/show';
import { job } from '../../test/things';
import { BatchBar, type Report } from './BatchBar';

let refuse: () => void;
let notified: MockInstance<typeof notifications.show>;
let finished: ReturnType<typeof vi.fn<(report: Report) => void>>;

const bar = (chosen: readonly Job[]) => <BatchBar chosen={chosen} clear={() => {}} finished={finished} />;

/// Two jobs are being cancelled; the coordinator has not answered yet.
async function begun() {
  const user = userEvent.setup();
  const client = newClient();
  client.setQueryData(whoamiQuery().queryKey, { role: 'admin' } as never);
  const page = show(bar([job(1), job(2)]), client);
  await user.click(screen.getByRole('button', { name: 'Cancel 2' }));
  await user.click(await screen.findByRole('button', { name: 'Cancel 2 jobs' }));
  await screen.findByText('Cancel: 0 of 2 done');
  return page;
}

beforeEach(() => {
  const answered = new Promise<void>((settle) => {
    refuse = settle;
  });
  vi.stubGlobal('fetch', async () => {
    await answered;
    return Response.json({ code: 'illegal_transition', detail: 'it is over' }, { status: 409 });
  });
  notified = vi.spyOn(notifications, 'show');
  finished = vi.fn();
});

test('what was refused is told in the corner to who has left the page', async () => {
  const page = await begun();
  page.unmount();
  refuse();
  await vi.waitFor(() => expect(finished).toHaveBeenCalledOnce());
  expect(notified).toHaveBeenCalledOnce();
  expect(notified).toHaveBeenCalledWith(
    expect.objectContaining({
      title: 'Cancel: 2 of 2 jobs not done',
      message: 'job-1: it is over; job-2: it is over',
    }),
  );
});

test('it can be stopped also when what was chosen is out of sight; who is there reads the report', async () => {
  const page = await begun();
  page.rerender(bar([]));
  expect(screen.getByRole('button', { name: 'Stop' })).toBeTruthy();
  await act(async () => refuse());
  await vi.waitFor(() => expect(finished).toHaveBeenCalledOnce());
  expect(finished.mock.calls[0]?.[0].outcome.failed).toHaveLength(2);
  expect(notified).not.toHaveBeenCalled();
  expect(screen.queryByRole('button', { name: 'Stop' })).toBeNull();
});
