import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// Where `npm run dev` finds a coordinator: the page comes from Vite, the API from there.
const coordinator = process.env.GIGA_URL ?? 'http://127.0.0.1:7717';

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2022',
    // Nothing is inlined: the content security policy allows scripts, styles and fonts from our own files only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
    manifest: true,
  },
  server: { proxy: { '/api': coordinator } },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['src/**/*.test.{ts,tsx}'],
          environment: 'happy-dom',
          setupFiles: ['src/test/setup.ts'],
          unstubGlobals: true,
          restoreMocks: true,
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'screenshots',
          include: ['e2e/screenshots.ts'],
          testTimeout: 300_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
