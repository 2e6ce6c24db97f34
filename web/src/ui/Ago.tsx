import { ago, millis } from './format';
import { useNow } from './useNow';

/// How long ago, with the exact time as a tooltip.
export function Ago({ at }: { at: string | null | undefined }) {
  const now = useNow();
  const then = millis(at);
  if (then === undefined || !at) return <span>–</span>;
  return (
    <time dateTime={at} title={new Date(then).toLocaleString()}>
      {ago(then, now)}
    </time>
  );
}
