// What programs write for a terminal, as spans. Colours and weights (SGR) are kept; every other escape is dropped, so
// that a log affects nothing but its own looks. Linear in the length of the line.

const ESC = 0x1b;
const BEL = 0x07;
const CSI = 0x9b;

/// The eight colours of a terminal; the page has its own shades of them, readable in dark and light.
export type Colour = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7;

export interface Style {
  readonly fg?: Colour;
  readonly bg?: Colour;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
}

export interface Span {
  text: string;
  style: Style;
}

export const PLAIN: Style = {};

/// The spans of a line that begins in `style`, and the style that the next line begins in.
export function parseAnsi(line: string, style: Style = PLAIN): { spans: Span[]; style: Style } {
  const spans: Span[] = [];
  let now = style;
  let text = '';
  const flush = () => {
    if (text) spans.push({ text, style: now });
    text = '';
  };
  for (let at = 0; at < line.length; ) {
    const code = line.charCodeAt(at);
    if (code === ESC || (code >= 0x80 && code <= 0x9f)) {
      const found = escapeAt(line, at);
      at = found.end;
      if (found.sgr !== undefined) {
        const next = styled(now, found.sgr);
        if (next !== now) flush();
        now = next;
      }
    } else {
      const end = plainUntil(line, at);
      if (end > at) text += line.slice(at, end);
      // A control character outside an escape is dropped.
      at = end > at ? end : at + 1;
    }
  }
  flush();
  return { spans, style: now };
}

/// The visible text of a line.
export function plainText(line: string): string {
  if (plainUntil(line, 0) === line.length) return line;
  return parseAnsi(line)
    .spans.map((span) => span.text)
    .join('');
}

function plainUntil(line: string, from: number): number {
  let at = from;
  while (at < line.length) {
    const code = line.charCodeAt(at);
    if ((code < 0x20 && code !== 0x09) || (code >= 0x7f && code <= 0x9f)) break;
    at += 1;
  }
  return at;
}

interface Escape {
  end: number;
  /// The parameters, where it sets colours.
  sgr?: string;
}

function escapeAt(line: string, at: number): Escape {
  const code = line.charCodeAt(at);
  if (code === CSI) return controlSequence(line, at + 1);
  if (code !== ESC) return { end: at + 1 };
  const next = line[at + 1];
  if (next === '[') return controlSequence(line, at + 2);
  if (next !== undefined && ']PX^_'.includes(next)) return { end: stringEnd(line, at + 2) };
  // ESC, intermediate bytes, one final byte.
  let end = at + 1;
  while (inRange(line, end, 0x20, 0x2f)) end += 1;
  return { end: inRange(line, end, 0x30, 0x7e) ? end + 1 : end };
}

function controlSequence(line: string, from: number): Escape {
  let end = from;
  while (inRange(line, end, 0x30, 0x3f)) end += 1;
  const parameters = line.slice(from, end);
  const intermediates = end;
  while (inRange(line, end, 0x20, 0x2f)) end += 1;
  if (!inRange(line, end, 0x40, 0x7e)) return { end };
  const isSgr = line[end] === 'm' && end === intermediates && /^[\d;:]*$/.test(parameters);
  return isSgr ? { end: end + 1, sgr: parameters } : { end: end + 1 };
}

/// The end of a string such as a window title. An unterminated one hides nothing of the line.
function stringEnd(line: string, from: number): number {
  for (let at = from; at < line.length; at += 1) {
    const code = line.charCodeAt(at);
    if (code === BEL || code === 0x9c) return at + 1;
    if (code === ESC) return line[at + 1] === '\\' ? at + 2 : from;
  }
  return from;
}

function inRange(line: string, at: number, low: number, high: number): boolean {
  const code = line.charCodeAt(at);
  return code >= low && code <= high;
}

function styled(style: Style, parameters: string): Style {
  const numbers = parameters.split(/[;:]/, 64).map((word) => (word === '' ? 0 : Number(word)));
  let next: Style = style;
  for (let at = 0; at < numbers.length; at += 1) {
    const number = numbers[at] ?? 0;
    if (number === 38 || number === 48) {
      const { colour, used } = extended(numbers, at + 1);
      at += used;
      if (colour !== undefined) next = number === 38 ? { ...next, fg: colour } : { ...next, bg: colour };
    } else {
      next = simple(next, number);
    }
  }
  return next;
}

function simple(style: Style, number: number): Style {
  const { fg: _fg, ...withoutFg } = style;
  const { bg: _bg, ...withoutBg } = style;
  if (number === 0) return PLAIN;
  if (number === 1) return { ...style, bold: true };
  if (number === 2) return { ...style, dim: true };
  if (number === 3) return { ...style, italic: true };
  if (number === 4) return { ...style, underline: true };
  if (number === 22) return { ...style, bold: undefined, dim: undefined };
  if (number === 23) return { ...style, italic: undefined };
  if (number === 24) return { ...style, underline: undefined };
  if (number >= 30 && number <= 37) return { ...style, fg: (number - 30) as Colour };
  if (number === 39) return withoutFg;
  if (number >= 40 && number <= 47) return { ...style, bg: (number - 40) as Colour };
  if (number === 49) return withoutBg;
  if (number >= 90 && number <= 97) return { ...style, fg: (number - 90) as Colour };
  if (number >= 100 && number <= 107) return { ...style, bg: (number - 100) as Colour };
  return style;
}

/// `5;n` of 256 colours or `2;r;g;b`, as the nearest of the eight.
function extended(numbers: number[], from: number): { colour?: Colour; used: number } {
  const kind = numbers[from];
  if (kind === 5) {
    const n = numbers[from + 1];
    return { colour: n === undefined ? undefined : of256(n), used: 2 };
  }
  if (kind === 2) {
    const [r, g, b] = numbers.slice(from + 1, from + 4);
    if (r === undefined || g === undefined || b === undefined) return { used: 3 };
    return { colour: nearest(r, g, b), used: 4 };
  }
  return { used: 1 };
}

function of256(n: number): Colour | undefined {
  if (!Number.isInteger(n) || n < 0 || n > 255) return undefined;
  if (n < 16) return (n % 8) as Colour;
  if (n >= 232) return n < 244 ? 0 : 7;
  const cube = n - 16;
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40);
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

function nearest(r: number, g: number, b: number): Colour {
  const half = Math.max(r, g, b) * 0.6;
  const bit = (value: number, weight: number) => (value > half ? weight : 0);
  if (Math.max(r, g, b) < 60) return 0;
  return (bit(r, 1) + bit(g, 2) + bit(b, 4)) as Colour;
}
