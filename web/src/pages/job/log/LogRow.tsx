import { type CSSProperties, memo } from 'react';
import { visible } from '../../../ui/visible';
import { parseAnsi, type Style } from './ansi';
import classes from './LogView.module.css';
import type { LogLine, Match } from './logBuffer';

interface LogRowProps {
  line: LogLine;
  number: number | undefined;
  /// In this row, from left to right.
  matches: readonly Match[];
  current: Match | undefined;
}

/// One row: the number, and the coloured text with search matches marked.
export const LogRow = memo(function LogRow({ line, number, matches, current }: LogRowProps) {
  const { spans } = parseAnsi(line.text, line.style);
  let at = 0;
  return (
    <>
      <span className={classes.number} aria-hidden>
        {number ?? (line.more ? '↳' : '·')}
      </span>
      <span className={classes.text}>
        {spans.map((span) => {
          const from = at;
          at += span.text.length;
          return (
            <span key={from} className={classes.span} style={look(span.style)}>
              {pieces(span.text, from, matches).map((piece) =>
                piece.match ? (
                  <mark key={piece.from} data-current={piece.match === current || undefined}>
                    {visible(piece.text)}
                  </mark>
                ) : (
                  visible(piece.text)
                ),
              )}
            </span>
          );
        })}
      </span>
    </>
  );
});

interface Piece {
  text: string;
  from: number;
  match?: Match;
}

function pieces(text: string, from: number, matches: readonly Match[]): Piece[] {
  const found: Piece[] = [];
  const end = from + text.length;
  let at = from;
  const add = (to: number, match?: Match) => {
    if (to > at) found.push({ text: text.slice(at - from, to - from), from: at, match });
    at = Math.max(at, to);
  };
  for (const match of matches) {
    if (match.to <= from || match.from >= end) continue;
    add(Math.max(match.from, from));
    add(Math.min(match.to, end), match);
  }
  add(end);
  return found;
}

function look({ fg, bg, bold, dim, italic, underline }: Style): CSSProperties {
  const quiet = dim ? 'var(--giga-quiet)' : undefined;
  return {
    color: fg === undefined ? quiet : `var(--fg-${fg})`,
    background: bg === undefined ? undefined : `var(--bg-${bg})`,
    fontWeight: bold ? 700 : undefined,
    fontStyle: italic ? 'italic' : undefined,
    textDecoration: underline ? 'underline' : undefined,
  };
}
