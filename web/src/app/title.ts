// The document title: the page's own, or the name of its route.

import { useEffect, useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
let own: string | undefined;

function set(text: string | undefined): void {
  own = text;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/// While the page is shown: `useTitle(job?.name)`.
export function useTitle(text: string | undefined): void {
  useEffect(() => {
    set(text);
    return () => set(undefined);
  }, [text]);
}

export function useDocumentTitle(ofRoute: string | undefined): void {
  const text = useSyncExternalStore(subscribe, () => own) ?? ofRoute;
  useEffect(() => {
    document.title = text ? `${text} · Gigafactory` : 'Gigafactory';
  }, [text]);
}
