import { useSyncExternalStore } from 'react';

// One timer for all ages on the page, and none while nobody looks.
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (!timer) {
    now = Date.now();
    timer = setInterval(() => {
      now = Date.now();
      for (const told of listeners) told();
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

/// The time, to the second; stands still when it is not `ticking`.
export function useNow(ticking = true): number {
  return useSyncExternalStore(ticking ? subscribe : still, () =>
    timer ? now : Date.now() - (Date.now() % 1_000),
  );
}
