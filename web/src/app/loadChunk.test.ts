import { beforeEach, expect, test, vi } from 'vitest';
import { isMissingChunk, RETRY_INTERVAL, withRetry } from './loadChunk';

beforeEach(() => void vi.useFakeTimers());

test('what can be had is had at once', async () => {
  const ask = vi.fn();
  vi.stubGlobal('fetch', ask);
  await expect(withRetry(async () => 'page')()).resolves.toBe('page');
  expect(ask).not.toHaveBeenCalled();
});

test('a page that is opened while the coordinator is away comes when it is back', async () => {
  let answer: () => Promise<{ status: number }> = async () => {
    throw new TypeError('Failed to fetch');
  };
  vi.stubGlobal('fetch', () => answer());
  const load = vi.fn(async (): Promise<string> => {
    throw new Error('Failed to fetch dynamically imported module');
  });
  const opened = vi.fn();
  const page = withRetry(load)().then(opened);
  await vi.advanceTimersByTimeAsync(RETRY_INTERVAL * 5);
  answer = async () => ({ status: 502 });
  await vi.advanceTimersByTimeAsync(RETRY_INTERVAL * 5);
  expect(load).toHaveBeenCalledOnce();
  expect(opened).not.toHaveBeenCalled();
  load.mockImplementation(async () => 'page');
  answer = async () => ({ status: 200 });
  await vi.advanceTimersByTimeAsync(RETRY_INTERVAL);
  await page;
  expect(opened).toHaveBeenCalledWith('page');
});

test('what is missing although the coordinator is there is said to be', async () => {
  vi.stubGlobal('fetch', async () => ({ status: 200 }));
  const load = vi.fn(async () => {
    throw new Error('no such file');
  });
  await expect(withRetry(load)()).rejects.toThrow('no such file');
  expect(load).toHaveBeenCalledTimes(2);
});

test.each([
  'Failed to fetch dynamically imported module: http://127.0.0.1:7717/assets/GraphCanvas-abc.js',
  'error loading dynamically imported module: http://127.0.0.1:7717/assets/GraphCanvas-abc.js',
  'Importing a module script failed.',
  "'text/html' is not a valid JavaScript MIME type.",
  'Unable to preload CSS for /assets/GraphCanvas-abc.css',
])('a script that does not come is told from a bug: %s', (message) => {
  expect(isMissingChunk(new TypeError(message))).toBe(true);
});

test('a bug is no missing script', () => {
  expect(isMissingChunk(new TypeError("Cannot read properties of undefined (reading 'jobs')"))).toBe(false);
  expect(isMissingChunk('Failed to fetch')).toBe(false);
});
