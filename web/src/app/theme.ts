// Colours and sizes. Mantine's defaults for dimmed text and filled buttons miss the contrast of WCAG AA; these do not.

import { type CSSVariablesResolver, createTheme, Modal, ModalHeader, Notification } from '@mantine/core';

export const theme = createTheme({
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

export const cssVariables: CSSVariablesResolver = () => ({
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
