import {
  type CSSVariablesResolver,
  createTheme,
  MantineProvider,
  Modal,
  ModalHeader,
  Notification,
} from '@mantine/core';
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

const nonce = document.querySelector('meta[name="csp-nonce"]')?.getAttribute('content') ?? undefined;
// A library below Mantine's dialogs creates its own style element and looks for the nonce here.
Object.assign(globalThis, { __webpack_nonce__: nonce });

function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // The feed marks data as stale.
        staleTime: 10_000,
        refetchOnWindowFocus: false,
        // A refusal would be repeated; only an unreachable coordinator may come back.
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

/// Keyed by the token: nothing that one person saw is left when another signs in.
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

const theme = createTheme({
  primaryColor: 'blue',
  primaryShade: { light: 8, dark: 8 },
  autoContrast: true,
  defaultRadius: 'sm',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.25rem' },
  cursorType: 'pointer',
  components: {
    Modal: Modal.extend({ defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } }),
    Notification: Notification.extend({ defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } }),
    // Only the page has a header in the sense of landmarks.
    ModalHeader: ModalHeader.extend({ defaultProps: { role: 'presentation' } }),
  },
});

const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#495057',
    '--mantine-color-placeholder': '#5c636a',
    '--mantine-color-error': '#c92a2a',
    '--mantine-color-anchor': '#1864ab',
  },
  dark: {
    '--mantine-color-dimmed': '#b4b8bd',
    '--mantine-color-placeholder': '#a6abb0',
    '--mantine-color-error': '#ff8787',
    '--mantine-color-anchor': '#74c0fc',
  },
});
