// That a real coordinator reads the same from this text as from JSON is tried in the browser tests.

import { describe, expect, it } from 'vitest';
import { emit, scalar } from './emit';

describe('a scalar', () => {
  it('stands bare where nobody could take it for anything else', () => {
    const plain = [
      'fix-greeting',
      'os:linux',
      'org/app',
      'coder@3',
      'fix the greeting',
      '20m',
      '1h30m',
      'a.b',
    ];
    for (const text of plain) {
      expect(scalar(text), text).toBe(text);
    }
  });

  it('is a JSON string where somebody could', () => {
    const doubtful = [
      '', ' ', 'true', 'No', 'null', 'y', 'on', '~', '1', '1.5', '1e3', '0x1f', '.5', '2026-01-01', '12:30',
      'a: b', 'a:', ': a', 'a #b', '#a', '- a', '-', '? a', '*a', '&a', '!a', '|', '>', '%a', '@a', '`a`', '{a}', '[a]',
      'a,b', 'a]', 'a}', '"a"', "'a'", 'a\nb', 'a\tb', ' a', 'a ', 'a  b', '---', '...', 'é', '<b>', '\\', 'nan', 'a.',
    ]; // biome-ignore format: a table
    for (const text of doubtful) {
      expect(scalar(text).startsWith('"'), text).toBe(true);
      expect(JSON.parse(scalar(text)), text).toBe(text);
    }
  });

  it('hides nothing: what cannot be seen is written as a number', () => {
    expect(scalar('a\u2028b\u202ec\u0085\ufeff')).toBe('"a\\u2028b\\u202ec\\u0085\\ufeff"');
    expect(scalar('\u0000\u001b[31m')).toBe('"\\u0000\\u001b[31m"');
    expect(scalar('half \ud800')).not.toMatch(/\p{Surrogate}/u);
    expect(scalar('😀')).toBe('"😀"');
  });

  it('keeps numbers numbers', () => {
    expect([scalar(2.5), scalar(0), scalar(-1)]).toEqual(['2.5', '0', '-1']);
  });
});

describe('a manifest', () => {
  it('is front matter and the body byte for byte', () => {
    const body = '---\n  two\r\n\n';
    const text = emit(
      {
        name: 'fix',
        capabilities: ['os:linux', 'x y: z'],
        budget: { usd: 2.5, wall: '20m' },
        verify: ['cargo test', 'a: b'],
        review: { quorum: 1, reviewers: ['ana'] },
      },
      body,
    );
    expect(text).toBe(
      [
        '---',
        'name: fix',
        'capabilities: [os:linux, "x y: z"]',
        'budget: {usd: 2.5, wall: 20m}',
        'verify:',
        '  - cargo test',
        '  - "a: b"',
        'review: {quorum: 1, reviewers: [ana]}',
        `---\n${body}`,
      ].join('\n'),
    );
  });

  it('shows a script as it is, with exactly its line ends', () => {
    expect(emit({ script: 'a\n  b\n\nc' }, '')).toBe('---\nscript: |-\n  a\n    b\n\n  c\n---\n');
    expect(emit({ script: 'a\nb\n' }, '')).toBe('---\nscript: |\n  a\n  b\n---\n');
    expect(emit({ script: 'a\nb\n\n\n' }, '')).toBe('---\nscript: |+\n  a\n  b\n\n\n---\n');
  });

  it('quotes a script whose blanks could be misread', () => {
    for (const script of [' a\nb', '\na', '\ta\nb', 'a\n \nb', 'a\r\nb', 'a\n\u2028', 'a\u0007\nb']) {
      const line = emit({ script }, '').split('\n')[1] ?? '';
      expect(JSON.parse(line.replace('script: ', '')), JSON.stringify(script)).toBe(script);
    }
  });

  it('cannot be closed from inside', () => {
    const text = emit({ name: 'x\n---\nevil: 1', script: 'a\n---\nb' }, 'body');
    expect(text.split('\n').filter((line) => line === '---')).toHaveLength(2);
  });
});
