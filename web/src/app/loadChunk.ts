// Pages are loaded when they are opened, and the coordinator may be unreachable just then. The router would reload the whole
// page at once, which shows the browser's own error instead of the banner: so we wait for the script.

/// How often to check whether the coordinator is back.
export const RETRY_INTERVAL = 1_000;

/// Loads it, and if that fails once more as soon as the coordinator answers. A script that is still missing then belongs to
/// another build: for a page the router reloads everything, for a part of one see [`isMissingChunk`].
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

/// What browsers say about a script that could not be loaded, and Vite about a style.
const MISSING =
  /dynamically imported module|Importing a module script failed|is not a valid JavaScript MIME|Unable to preload CSS/i;

/// A script that could not be loaded. Browsers remember the failure while the page is open: only a reload helps.
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
