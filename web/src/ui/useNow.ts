import { useSyncExternalStore } from 'react';

// One timer for all ages on the page, and none while nothing shows one.
const listeners = new Set<() => void>();
let now = wholeSecond();
let timer: ReturnType<typeof setInterval> | undefined;

function wholeSecond(): number {
  const at = Date.now();
  return at - (at % 1_000);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (!timer) {
    now = wholeSecond();
    timer = setInterval(() => {
      now = wholeSecond();
      for (const listener of listeners) listener();
    }, 1_000);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

const still = () => () => {};
const snapshot = () => now;

/// The time to the second; does not change while it is not `ticking`.
export function useNow(ticking = true): number {
  // The timer was off: an old value would be shown for a moment.
  if (!timer) now = wholeSecond();
  return useSyncExternalStore(ticking ? subscribe : still, snapshot);
}
