import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { render } from '@testing-library/react';
import type { ReactNode } from 'react';
import { LiveProvider } from '../live/LiveProvider';
import { ConfirmProvider } from '../ui/Confirm';

export const newClient = () => new QueryClient({ defaultOptions: { queries: { retry: false } } });

/// A component with all that stands around it in the page, but for the router.
export function show(what: ReactNode, client = newClient()) {
  const page = (shown: ReactNode) => (
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <ConfirmProvider>{shown}</ConfirmProvider>
      </QueryClientProvider>
    </MantineProvider>
  );
  const { rerender, unmount } = render(page(what));
  return { client, unmount, rerender: (next: ReactNode) => rerender(page(next)) };
}

/// With a feed that connects by the test's own `fetch`.
export const live = (shown: ReactNode) => <LiveProvider token="giga_abcDEF123456">{shown}</LiveProvider>;
