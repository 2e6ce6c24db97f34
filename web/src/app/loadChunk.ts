// Pages are fetched when they are opened, and the coordinator may be away just then. The router would load the whole page
// anew at once, and what one sees then is the browser's own error instead of the banner: so the script is waited for.

/// How often it is asked whether the coordinator is back.
export const RETRY_INTERVAL = 1_000;

/// Loads it; where that fails, once more as soon as the coordinator answers. What is then still missing is of another
/// build: of a page the router loads everything anew, of a part of one [`isMissingChunk`] says so.
export function withRetry<T>(load: () => Promise<T>): () => Promise<T> {
  return async () => {
    try {
      return await load();
    } catch {
      await reachable();
      return load();
    }
  };
}

/// Every browser has words of its own for a script that did not come, the last are those of Vite for a style.
const MISSING =
  /dynamically imported module|Importing a module script failed|is not a valid JavaScript MIME|Unable to preload CSS/i;

/// A script that was not to be had. The failure is kept for as long as the page is open: only loading it anew helps.
export function isMissingChunk(error: unknown): error is Error {
  return error instanceof Error && MISSING.test(error.message);
}

async function reachable(): Promise<void> {
  for (;;) {
    try {
      const { status } = await fetch('/livez', { cache: 'no-store' });
      // From 502 to 504 only a proxy has answered.
      if (status < 502 || status > 504) return;
    } catch {
      // Not yet.
    }
    await new Promise((settle) => setTimeout(settle, RETRY_INTERVAL));
  }
}
