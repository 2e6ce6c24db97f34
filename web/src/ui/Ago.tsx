import type { ReactNode } from 'react';
import { ago, millis } from './format';
import { useNow } from './useNow';

/// How long ago, with the exact time as a tooltip.
export function Ago({ at }: { at: string | null | undefined }) {
  const now = useNow();
  const then = millis(at);
  if (then === undefined || !at) return <span>–</span>;
  return <Time at={at}>{ago(then, now)}</Time>;
}

/// A time in words of the caller, with the exact one as a tooltip.
export function Time({ at, children }: { at: string; children: ReactNode }) {
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {children}
    </time>
  );
}
