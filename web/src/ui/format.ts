// Figures as people read them. None of these ever returns NaN: an unknown value is a dash.

const DASH = '–';

export function usd(dollars: number | null | undefined): string {
  if (dollars === null || dollars === undefined || !Number.isFinite(dollars)) return DASH;
  const size = Math.abs(dollars);
  // Too little to show is still not zero.
  if (size !== 0 && size < 0.00005) return dollars < 0 ? '−<$0.0001' : '<$0.0001';
  const digits = size !== 0 && size < 0.01 ? 4 : 2;
  return `${dollars < 0 ? '−' : ''}$${size.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return DASH;
  return `${Math.round(share * 100)} %`;
}

export function count(n: number | null | undefined): string {
  if (n === null || n === undefined || !Number.isFinite(n)) return DASH;
  return n.toLocaleString('en-US');
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/// Seconds in each, from the longest on.
export const UNITS: readonly [number, string][] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/// Two units at most: `3 d 4 h`, `2 min 5 s`, `450 ms`.
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return DASH;
  if (ms < 0) return duration(0);
  if (ms < 1_000) return Math.round(ms) === 0 ? '0 s' : `${Math.min(Math.round(ms), 999)} ms`;
  const seconds = Math.floor(ms / 1_000);
  const first = UNITS.findIndex(([size]) => seconds >= size);
  const parts: string[] = [];
  let rest = seconds;
  for (const [size, name] of UNITS.slice(first, first + 2)) {
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    if (whole > 0) parts.push(`${whole} ${name}`);
  }
  return parts.join(' ');
}

/// Milliseconds since 1970, or nothing if the text is not a time.
export function millis(rfc3339: string | null | undefined): number | undefined {
  const at = rfc3339 ? Date.parse(rfc3339) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

/// Clocks differ a little, and what just happened must not seem to be in the future.
const SKEW = 2_000;

export function ago(at: number, now: number): string {
  const past = now - at;
  if (past < -SKEW) return `in ${duration(-past)}`;
  if (past < 1_000) return 'just now';
  return `${coarse(past)} ago`;
}

/// Coarser with age: nobody needs the seconds of yesterday.
export function coarse(ms: number, secondsUntil = 60_000): string {
  const past = Math.max(0, ms);
  return duration(past - (past % (past < secondsUntil ? 1_000 : 60_000)));
}

export function bytes(size: number | null | undefined): string {
  if (size === null || size === undefined || !Number.isFinite(size)) return DASH;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let rest = Math.max(0, size);
  let unit = 0;
  // Rounded to one digit, 1023.96 KiB would be 1024.0: that is the next unit already.
  while (rest >= 1023.95 && unit < units.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(rest) : rest.toFixed(1)} ${units[unit]}`;
}

/// A word in a `giga …` line, quoted if the shell needs it.
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/// The coordinator's sentences begin in lower case; on the page they stand alone.
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
