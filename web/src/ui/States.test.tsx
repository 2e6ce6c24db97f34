import { useQuery } from '@tanstack/react-query';
import { screen } from '@testing-library/react';
import { beforeEach, expect, test, vi } from 'vitest';
import { Problem } from '../api/problem';
import { live, show } from '../test/show';
import { Loaded } from './States';

beforeEach(() => {
  // The feed: on its way, for as long as the test lasts.
  vi.stubGlobal('fetch', () => new Promise(() => {}));
});

let read: () => Promise<string>;

function Shown() {
  const query = useQuery({ queryKey: ['factories'], queryFn: () => read(), retry: false });
  return (
    <Loaded query={query} what="factories">
      {(text) => <p>{text}</p>}
    </Loaded>
  );
}

test('data that could not be read again stays in sight and is said to be old', async () => {
  read = async () => 'three factories';
  const { client } = show(live(<Shown />));
  await screen.findByText('three factories');
  expect(screen.queryByRole('status')).toBeNull();
  read = async () => {
    throw Problem.of(503, { code: 'unavailable', detail: 'the store is away' });
  };
  await client.invalidateQueries();
  expect((await screen.findByRole('status')).textContent).toMatch(
    /^Not updated since .+: the store is away$/,
  );
  expect(screen.getByText('three factories')).toBeTruthy();
  read = async () => 'four factories';
  await client.invalidateQueries();
  await screen.findByText('four factories');
  expect(screen.queryByRole('status')).toBeNull();
});
