import { describe, expect, it } from 'vitest';
import { PLAIN, parseAnsi, plainText } from './ansi';

const ESC = '\u001b';

describe('colours', () => {
  it('become spans, and go on over lines until they are reset', () => {
    const first = parseAnsi(`plain ${ESC}[1;31mred`);
    expect(first.spans).toEqual([
      { text: 'plain ', style: PLAIN },
      { text: 'red', style: { bold: true, fg: 1 } },
    ]);
    const second = parseAnsi(`still${ESC}[0m not`, first.style);
    expect(second.spans.map((span) => [span.text, span.style.fg])).toEqual([
      ['still', 1],
      [' not', undefined],
    ]);
    expect(second.style).toEqual(PLAIN);
  });

  it.each([
    ['[92m', { fg: 2 }],
    ['[38;5;196m', { fg: 1 }],
    ['[38;2;10;200;20m', { fg: 2 }],
    ['[48;5;21m', { bg: 4 }],
    ['[38;5;232m', { fg: 0 }],
    ['[4;3m', { underline: true, italic: true }],
  ])('%s is understood', (code, style) => {
    expect(parseAnsi(`${ESC}${code}x`).spans).toEqual([{ text: 'x', style }]);
  });

  it('do not take the parameters of an extended colour for codes of their own', () => {
    expect(parseAnsi(`${ESC}[38;5;1mx`).style).toEqual({ fg: 1 });
    expect(parseAnsi(`${ESC}[38;2;1;4;7mx`).style).toEqual({ fg: 0 });
  });
});

describe('everything else is dropped', () => {
  it.each([
    ['a window title', `a${ESC}]0;evil\u0007b`, 'ab'],
    ['a link', `${ESC}]8;;https://evil.example${ESC}\\click${ESC}]8;;${ESC}\\`, 'click'],
    ['the cursor', `a${ESC}[2J${ESC}[10;10Hb`, 'ab'],
    ['private modes', `${ESC}[?1049hx${ESC}[?25l`, 'x'],
    ['a device string', `${ESC}Pq#0;2;0;0;0${ESC}\\x`, 'x'],
    ['charsets', `${ESC}(0x${ESC}(B`, 'x'],
    ['eight-bit sequences', 'a\u009b31mb\u0085c', 'abc'],
    ['control characters', 'a\u0000\u0008\u007fb\tc', 'ab\tc'],
    ['a sequence that is cut off', `a${ESC}[38;5`, 'a'],
    ['an escape at the end', `a${ESC}`, 'a'],
    ['an sgr with private parameters', `${ESC}[>4;2mx`, 'x'],
    ['something that looks like an sgr but is none', `${ESC}[1 mx`, 'x'],
  ])('%s', (_, line, text) => {
    expect(plainText(line)).toBe(text);
    expect(parseAnsi(line).style.fg).toBe(line.includes('\u009b31m') ? 1 : undefined);
  });

  it('but a string without an end hides nothing of the line', () => {
    expect(plainText(`a${ESC}]0;the rest of the log`)).toBe('a0;the rest of the log');
    const interrupted = parseAnsi(`${ESC}]0;shown ${ESC}[31mred`);
    expect(interrupted.spans).toEqual([
      { text: '0;shown ', style: PLAIN },
      { text: 'red', style: { fg: 1 } },
    ]);
  });

  it('markup stays text', () => {
    const line = `<img src=x onerror=alert(1)>${ESC}[31m<script>`;
    expect(plainText(line)).toBe('<img src=x onerror=alert(1)><script>');
  });

  it('in time that grows with the line only', () => {
    const hostile = `${ESC}[`.repeat(200_000) + `${ESC}]`.repeat(200_000) + '1;'.repeat(200_000);
    const from = performance.now();
    parseAnsi(hostile);
    expect(performance.now() - from).toBeLessThan(2_000);
  });
});
