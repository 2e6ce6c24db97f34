import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { useState } from 'react';
import { Problem } from '../api/problem';
import { LiveProvider } from '../live/LiveProvider';
import { LoginPage } from '../pages/login/LoginPage';
import { useToken } from '../session/useSession';
import { ConfirmProvider } from '../ui/Confirm';
import { router } from './router';
import { cssVariables, theme } from './theme';

const nonce = document.querySelector('meta[name="csp-nonce"]')?.getAttribute('content') ?? undefined;
// What Mantine's dialogs stand on makes a style element of its own, and asks for the nonce here.
Object.assign(globalThis, { __webpack_nonce__: nonce });

function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // The feed says when something is old.
        staleTime: 10_000,
        refetchOnWindowFocus: false,
        // What the coordinator refused it refuses again; only one that is away may come back.
        retry: (count, error) => Problem.from(error).code === 'unreachable' && count < 3,
        retryDelay: (attempt) => Math.min(500 * 2 ** attempt, 5_000),
        networkMode: 'always',
      },
      mutations: { networkMode: 'always' },
    },
  });
}

export function App() {
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce ?? ''}
    >
      <Notifications position="bottom-left" />
      <SignedInOrNot />
    </MantineProvider>
  );
}

function SignedInOrNot() {
  const token = useToken();
  return token ? <SignedIn key={token} token={token} /> : <LoginPage />;
}

/// Keyed by the token: what one person saw is gone when another signs in.
function SignedIn({ token }: { token: string }) {
  const [client] = useState(newQueryClient);
  return (
    <QueryClientProvider client={client}>
      <LiveProvider token={token}>
        <ConfirmProvider>
          <RouterProvider router={router} />
        </ConfirmProvider>
      </LiveProvider>
    </QueryClientProvider>
  );
}
