import { describe, expect, it } from 'vitest';
import type { LogPiece } from '../../../api/types';
import { findAll, LogBuffer, PIECE } from './logBuffer';

const encoder = new TextEncoder();

/// As the coordinator answers: at most `most` bytes from `offset` on, bytes that are no text replaced.
function piece(log: string, offset: number, most = PIECE, running = false): LogPiece {
  const all = encoder.encode(log);
  const part = all.subarray(Math.min(offset, all.length), Math.min(offset + most, all.length));
  return {
    leaseEpoch: 1,
    offset,
    nextOffset: offset + part.length,
    total: all.length,
    complete: !running && offset + part.length >= all.length,
    text: new TextDecoder().decode(part),
  };
}

function rows(buffer: LogBuffer): string[] {
  return Array.from({ length: buffer.length }, (_, index) => buffer.row(index)?.text ?? '');
}

describe('a log that grows', () => {
  it('joins a line that came in two pieces', () => {
    const buffer = new LogBuffer();
    const log = 'one\ntwo\nthree\n';
    buffer.append({ ...piece(log, 0, 6), complete: false });
    expect(rows(buffer)).toEqual(['one', 'tw']);
    buffer.append(piece(log, 6));
    expect(rows(buffer)).toEqual(['one', 'two', 'three']);
    expect(buffer.complete).toBe(true);
    expect(buffer.end).toBe(log.length);
  });

  it('refuses a piece that leaves a hole or comes twice', () => {
    const buffer = new LogBuffer();
    const log = 'one\ntwo\nthree\n';
    buffer.append(piece(log, 0, 4));
    expect(buffer.append(piece(log, 8, 4))).toBe(false);
    expect(buffer.append(piece(log, 0, 4))).toBe(false);
    expect(rows(buffer)).toEqual(['one']);
    expect(buffer.append(piece(log, 4))).toBe(true);
    expect(rows(buffer)).toEqual(['one', 'two', 'three']);
  });

  it('stays as it is while nothing comes', () => {
    const buffer = new LogBuffer();
    buffer.append(piece('', 0, PIECE, true));
    expect([buffer.length, buffer.complete]).toEqual([0, false]);
    buffer.append(piece('a\n', 0, PIECE, true));
    buffer.append(piece('a\n', 2, PIECE, true));
    expect(rows(buffer)).toEqual(['a']);
  });

  it('shows what a terminal shows of a progress bar, and no returns', () => {
    const buffer = new LogBuffer();
    buffer.append(piece('10%\r50%\r100%\r\nnext\r\n\r\n', 0));
    expect(rows(buffer)).toEqual(['100%', 'next', '']);
  });

  it('shows it as it comes, also where the return comes by itself', () => {
    const buffer = new LogBuffer();
    const log = '10%\r50%\r\r\nnext';
    const seen = [4, 8, 9, 10, log.length].map((end) => {
      buffer.append({ ...piece(log, buffer.end, end - buffer.end), complete: false });
      return rows(buffer);
    });
    expect(seen).toEqual([['10%'], ['50%'], ['50%'], ['50%'], ['50%', 'next']]);
  });

  it('keeps nothing of what a progress bar has written over', () => {
    const buffer = new LogBuffer();
    const bar = `\r${'#'.repeat(60)}`;
    for (let poll = 0; poll < 400; poll += 1) {
      const [offset, text] = [buffer.end, bar.repeat(100)];
      const nextOffset = offset + text.length;
      buffer.append({ leaseEpoch: 1, offset, nextOffset, total: nextOffset, complete: false, text });
    }
    expect(rows(buffer)).toEqual(['#'.repeat(60)]);
    expect(String(Reflect.get(buffer, 'open')).length).toBeLessThan(2 * bar.length);
  });

  it('carries colours over lines', () => {
    const buffer = new LogBuffer();
    buffer.append(piece('\u001b[31mred\nstill\u001b[0m\nplain\n', 0));
    expect([0, 1, 2].map((index) => buffer.row(index)?.style.fg)).toEqual([undefined, 1, undefined]);
  });

  it('breaks a line without an end into rows, and drops none of it', () => {
    const buffer = new LogBuffer();
    const endless = 'x'.repeat(5_000);
    buffer.append(piece(`${endless}\nshort\n`, 0));
    expect(rows(buffer).slice(0, -1).join('')).toBe(endless);
    expect(rows(buffer).every((row) => row.length <= 2_000)).toBe(true);
    expect([0, 1, 2, 3].map((index) => buffer.lineNumber(index))).toEqual([1, undefined, undefined, 2]);
  });

  it('drops the oldest rows when there are too many, and says so', () => {
    const buffer = new LogBuffer(100);
    const log = Array.from({ length: 150 }, (_, index) => `${index}\n`).join('');
    buffer.append(piece(log, 0));
    expect(buffer.length).toBeLessThanOrEqual(100);
    expect(rows(buffer).at(-1)).toBe('149');
    expect([buffer.cut, buffer.lineNumber(0)]).toEqual([true, undefined]);
    expect(buffer.prepend(piece(log, 0))).toBe(0);
  });

  it('drops the beginning of one line that is too long for it', () => {
    const buffer = new LogBuffer(10);
    const log = `${'x'.repeat(100_000)}end`;
    while (buffer.end < log.length) buffer.append({ ...piece(log, buffer.end, 30_000), complete: false });
    expect(buffer.length).toBeLessThanOrEqual(10);
    expect(rows(buffer).join('')).toMatch(/^x{15000,20000}end$/);
    expect(buffer.append(piece(`${log}\nnext\n`, buffer.end))).toBe(true);
    expect(rows(buffer).join('')).toMatch(/^x{15000,20000}endnext$/);
  });
});

describe('the end of a long log', () => {
  const lines = Array.from(
    { length: 9_000 },
    (_, index) => `Zeile ${index}: grüße 🦀 ${'·'.repeat(index % 40)}`,
  );
  const log = `${lines.join('\n')}\n`;
  const total = encoder.encode(log).length;

  it('begins with a whole line and gets its beginning piece by piece, without a hole or a broken character', () => {
    const buffer = new LogBuffer();
    buffer.append(piece(log, total - PIECE));
    expect(buffer.start).toBeGreaterThan(0);
    expect(lines).toContain(rows(buffer)[0]);
    expect(buffer.lineNumber(0)).toBeUndefined();
    let asked = 0;
    while (buffer.start > 0 && asked < 100) {
      asked += 1;
      const before = buffer.length;
      const moved = buffer.prepend(piece(log, Math.max(0, buffer.start - PIECE)));
      expect(buffer.length).toBe(before + moved);
    }
    expect(rows(buffer)).toEqual(lines);
    expect(buffer.lineNumber(8_999)).toBe(9_000);
  });

  it('is put together from wherever its pieces begin, within characters too', () => {
    const few = ['äöü', '🦀🦀', 'abc', 'grüße', '', '漢字'];
    const short = `${few.join('\n')}\n`;
    const bytes = encoder.encode(short).length;
    for (let from = 1; from < bytes - 8; from += 1) {
      const buffer = new LogBuffer();
      buffer.append(piece(short, from, bytes));
      for (let asked = 0; buffer.start > 0 && asked < bytes; asked += 1) {
        buffer.prepend(piece(short, Math.max(0, buffer.start - 20), 20));
      }
      expect(rows(buffer), `from byte ${from}`).toEqual(few);
    }
  });

  it('comes to an end also where a piece is all one line', () => {
    const endless = `${'y'.repeat(PIECE * 3)}\nend\n`;
    const size = endless.length;
    const buffer = new LogBuffer();
    buffer.append(piece(endless, size - PIECE));
    let asked = 0;
    while (buffer.start > 0 && asked < 20) {
      asked += 1;
      buffer.prepend(piece(endless, Math.max(0, buffer.start - PIECE)));
    }
    expect(buffer.start).toBe(0);
    expect(rows(buffer).join('').replace('end', '')).toBe('y'.repeat(PIECE * 3));
  });

  it('loses nothing of a line that the end of the log begins within', () => {
    const whole = `first\n${'y'.repeat(PIECE + 100_000)}`;
    const buffer = new LogBuffer();
    buffer.append(piece(whole, whole.length - PIECE));
    buffer.prepend(piece(whole, 0));
    expect(buffer.start).toBe(0);
    expect(rows(buffer)[0]).toBe('first');
    expect(rows(buffer).slice(1).join('').length).toBe(PIECE + 100_000);
    const numbers = rows(buffer).flatMap((_, index) => buffer.lineNumber(index) ?? []);
    expect(numbers).toEqual([1, 2]);
  });

  it('refuses an older piece that does not reach to where it begins', () => {
    const buffer = new LogBuffer();
    buffer.append(piece(log, total - PIECE));
    const before = rows(buffer);
    expect(buffer.prepend(piece(log, 0, 100))).toBe(0);
    expect(rows(buffer)).toEqual(before);
  });
});

describe('search', () => {
  it('finds every occurrence, whatever its case or colour', () => {
    const buffer = new LogBuffer();
    buffer.append(piece('Error: \u001b[31mERR\u001b[0mor error\nnone\nerror\n', 0));
    const { matches } = findAll(buffer, 'error');
    expect(matches).toEqual([
      { row: 0, from: 0, to: 5 },
      { row: 0, from: 7, to: 12 },
      { row: 0, from: 13, to: 18 },
      { row: 2, from: 0, to: 5 },
    ]);
  });

  it('takes the words as they are, ends at its limit and finds nothing for nothing', () => {
    const buffer = new LogBuffer();
    buffer.append(piece('a.b a*b\naaaa\n', 0));
    expect(findAll(buffer, '.*').matches).toEqual([]);
    expect(findAll(buffer, 'a*').matches).toHaveLength(1);
    expect(findAll(buffer, 'a', 3)).toMatchObject({ more: true, matches: { length: 3 } });
    expect(findAll(buffer, '').matches).toEqual([]);
  });
});
