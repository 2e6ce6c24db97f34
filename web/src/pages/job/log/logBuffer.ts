// The loaded part of a run's log: the end first, older pieces on scrolling up, new ones as they come. Always one range
// without gaps: bytes `start` to `end` of the run's log.

import type { LogPiece } from '../../../api/types';
import { PLAIN, parseAnsi, plainText, type Style } from './ansi';

/// How much the coordinator sends at once.
export const PIECE = 256 * 1024;
/// The longest row: an endless line must not become one element.
const ROW_CHARS = 2_000;
/// More rows than this do not fit the height that browsers can scroll.
export const MOST_ROWS = 900_000;

export interface LogLine {
  readonly text: string;
  /// The style that it begins in: colours continue over lines.
  readonly style: Style;
  /// Continues the row before.
  readonly more: boolean;
}

export class LogBuffer {
  /// Where the first row begins in the run's log.
  start = 0;
  /// Where the next piece begins.
  end = 0;
  total = 0;
  complete = false;
  /// Old rows were dropped: there are more than a browser can scroll.
  cut = false;
  private rows: LogLine[] = [];
  /// `start` may be within a line, so that the piece before it ends in the middle of one.
  private startsWithin = false;
  /// The last line, which may continue.
  private open = '';
  private openStyle: Style = PLAIN;
  private openRows = 0;
  private numbers: Uint32Array | undefined;

  constructor(private readonly mostRows = MOST_ROWS) {}

  get length(): number {
    return this.rows.length;
  }

  row(index: number): LogLine | undefined {
    return this.rows[index];
  }

  /// The number of the line that begins with a row. Known only if the log is loaded from its beginning.
  lineNumber(index: number): number | undefined {
    if (this.start > 0 || this.cut || this.rows[index]?.more) return undefined;
    this.numbers ??= this.count();
    return this.numbers[index];
  }

  private count(): Uint32Array {
    const numbers = new Uint32Array(this.rows.length);
    let number = 0;
    this.rows.forEach((row, index) => {
      if (!row.more) number += 1;
      numbers[index] = number;
    });
    return numbers;
  }

  /// Appends the next piece. One that overlaps or leaves a gap is refused: it belongs to another request.
  append(piece: LogPiece): boolean {
    if (this.length === 0 && this.end === 0) this.start = this.end = piece.offset;
    if (piece.offset !== this.end) return false;
    this.total = Math.max(piece.total, piece.nextOffset);
    this.complete = piece.complete;
    if (piece.text === '') return true;
    let text = piece.text;
    if (this.rows.length === 0 && this.open === '' && piece.offset > 0) {
      const cut = cutFirstLine(text);
      this.start = piece.offset + cut.bytes;
      this.startsWithin = cut.bytes === 0;
      text = cut.rest;
    }
    this.end = piece.nextOffset;
    this.take(text);
    if (this.rows.length > this.mostRows) {
      this.rows = this.rows.slice(-Math.floor(this.mostRows * 0.9));
      this.cut = true;
      if (this.openRows > this.rows.length) {
        this.openRows = this.rows.length;
        this.open = this.open.slice(-this.openRows * ROW_CHARS);
      }
    }
    return true;
  }

  /// Prepends an older piece, which reaches `start` or beyond. Returns by how many rows the others moved down.
  prepend(piece: LogPiece): number {
    if (this.cut || piece.offset >= this.start || piece.nextOffset < this.start - 4) return 0;
    let text = piece.text;
    if (piece.nextOffset > this.start) {
      text = firstBytes(text, this.start - piece.offset);
      if (!this.startsWithin) text = wholeLines(text);
    }
    const [first] = this.rows;
    if (first && this.startsWithin && !text.endsWith('\n')) this.rows[0] = { ...first, more: true };
    let start = piece.offset;
    this.startsWithin = false;
    if (piece.offset > 0) {
      const cut = cutFirstLine(text);
      start += cut.bytes;
      this.startsWithin = cut.bytes === 0;
      text = cut.rest;
    }
    const older = new LogBuffer(this.mostRows);
    older.take(text);
    this.numbers = undefined;
    this.rows = older.rows.concat(this.rows);
    this.start = start;
    return older.length;
  }

  private take(text: string): void {
    this.numbers = undefined;
    // The open line is laid out again with its continuation.
    this.rows.length -= this.openRows;
    const lines = (this.open + text).split('\n');
    const last = lines.pop() ?? '';
    let style = this.openStyle;
    for (const line of lines) style = this.push(line, style);
    this.open = withoutOverwritten(last);
    this.openStyle = style;
    const before = this.rows.length;
    if (last !== '') this.push(last, style);
    this.openRows = this.rows.length - before;
  }

  private push(line: string, style: Style): Style {
    const text = afterReturns(line);
    if (text.length <= ROW_CHARS) {
      this.rows.push({ text, style, more: false });
      return styleAfter(text, style);
    }
    let now = style;
    for (let at = 0; at < text.length; ) {
      const end = rowEnd(text, at);
      const part = text.slice(at, end);
      this.rows.push({ text: part, style: now, more: at > 0 });
      now = styleAfter(part, now);
      at = end;
    }
    return now;
  }
}

export interface Match {
  row: number;
  from: number;
  to: number;
}

/// The matches of the words, ignoring case, row by row; at most `most` of them.
export function findAll(buffer: LogBuffer, words: string, most = 5_000): { matches: Match[]; more: boolean } {
  const matches: Match[] = [];
  const wanted = words.toLowerCase();
  if (wanted === '') return { matches, more: false };
  for (let row = 0; row < buffer.length; row += 1) {
    const text = plainText(buffer.row(row)?.text ?? '').toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      if (matches.length >= most) return { matches, more: true };
      matches.push({ row, from: at, to: at + wanted.length });
    }
  }
  return { matches, more: false };
}

/// A carriage return goes back to the start of the line: the last text is visible.
function afterReturns(line: string): string {
  let end = line.length;
  while (line[end - 1] === '\r') end -= 1;
  return line.slice(line.lastIndexOf('\r', end - 1) + 1, end);
}

/// For a line that may continue: a return at its end overwrites it only when something follows.
function withoutOverwritten(line: string): string {
  return line.includes('\r') ? afterReturns(line) + (line.endsWith('\r') ? '\r' : '') : line;
}

function styleAfter(text: string, style: Style): Style {
  return text.includes('\u001b') || text.includes('\u009b') ? parseAnsi(text, style).style : style;
}

/// Not within a surrogate pair and, where possible, not within an escape.
function rowEnd(text: string, from: number): number {
  const end = from + ROW_CHARS;
  if (end >= text.length) return text.length;
  const begun = text.lastIndexOf('\u001b', end);
  if (begun > from && end - begun < 32) return begun;
  const code = text.charCodeAt(end);
  return code >= 0xdc00 && code <= 0xdfff ? end - 1 : end;
}

/// A piece may begin within a line, or within a character. Its first line is left to the piece before. A piece that is all
/// one line stays whole.
function cutFirstLine(text: string): { bytes: number; rest: string } {
  const at = text.indexOf('\n');
  if (at < 0 || at === text.length - 1) return { bytes: 0, rest: text };
  const head = text.slice(0, at + 1);
  // Each byte of a cut character became one replacement character.
  const broken = /^\ufffd{0,3}/.exec(head)?.[0].length ?? 0;
  return { bytes: broken + new TextEncoder().encode(head.slice(broken)).length, rest: text.slice(at + 1) };
}

function firstBytes(text: string, bytes: number): string {
  return new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, bytes));
}

function wholeLines(text: string): string {
  const end = text.lastIndexOf('\n');
  return end < 0 ? text : text.slice(0, end + 1);
}
