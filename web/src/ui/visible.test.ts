import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { visible } from './visible';

interface Table {
  hidden: [string, string][];
  texts: [string, string][];
}

// The coordinator's tests read the same one for Markdown.
const table: Table = JSON.parse(
  readFileSync('../crates/server/src/markdown/tests/visible.json', { encoding: 'utf8' }),
);

it.each(table.texts)('%j is shown as %j', (text, shown) => {
  expect(visible(text)).toBe(shown);
});

it('writes out what is hidden wherever it stands, and nothing else', () => {
  const ranges = table.hidden.map(
    ([from, to]) => [Number.parseInt(from, 16), Number.parseInt(to, 16)] as const,
  );
  const wrong: string[] = [];
  for (let code = 0; code <= 0x10ffff; code += 1) {
    // Halves of characters are none; these have places where they stay, which the texts are about.
    if ((code >= 0xd800 && code <= 0xdfff) || [0x0d, 0x200c, 0x200d, 0xfe0e, 0xfe0f].includes(code)) continue;
    const character = String.fromCodePoint(code);
    const name = `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
    const listed = ranges.some(([from, to]) => from <= code && code <= to);
    if (visible(`a${character}b`) !== `a${listed ? name : character}b`) wrong.push(name);
  }
  expect(wrong).toEqual([]);
});
