import { memo } from 'react';
import { visible } from '../../../ui/visible';
import classes from './DiffView.module.css';
import { type Pair, pairs, within } from './pairs';
import type { DiffLine } from './parseDiff';

const SIGNS = { same: ' ', added: '+', removed: '−' } as const;

/// One line under the other.
export const UnifiedRows = memo(function UnifiedRows({ lines }: { lines: DiffLine[] }) {
  const other = new Map<DiffLine, string>();
  for (const { left, right } of pairs(lines)) {
    if (left && right && left !== right) {
      other.set(left, right.text);
      other.set(right, left.text);
    }
  }
  return lines.map((line) => (
    <tr key={`${line.old ?? ''}/${line.new ?? ''}`} data-kind={line.kind}>
      <LineNumber value={line.old} />
      <LineNumber value={line.new} />
      <Code line={line} other={other.get(line)} />
    </tr>
  ));
});

/// Before on the left, after on the right.
export const SideRows = memo(function SideRows({ lines }: { lines: DiffLine[] }) {
  return pairs(lines).map((pair) => (
    <SideRow key={`${pair.left?.old ?? ''}/${pair.right?.new ?? ''}`} pair={pair} />
  ));
});

function SideRow({ pair: { left, right } }: { pair: Pair }) {
  const differ = left !== right;
  return (
    <tr>
      <LineNumber value={left?.old} kind={left?.kind} />
      <Code line={left} other={differ ? right?.text : undefined} />
      <LineNumber value={right?.new} kind={right?.kind} />
      <Code line={right} other={differ ? left?.text : undefined} />
    </tr>
  );
}

function LineNumber({ value, kind }: { value: number | undefined; kind?: DiffLine['kind'] }) {
  return (
    <td className={classes.number} data-kind={kind}>
      {value}
    </td>
  );
}

function Code({ line, other }: { line: DiffLine | undefined; other: string | undefined }) {
  if (!line) return <td className={classes.nothing} />;
  let at = 0;
  return (
    <td className={classes.code} data-kind={line.kind}>
      <span className={classes.sign}>{SIGNS[line.kind]}</span>
      {within(shown(line.text), other === undefined ? undefined : shown(other)).map((part) => {
        const from = at;
        at += part.text.length;
        return part.differs ? <mark key={from}>{part.text}</mark> : <span key={from}>{part.text}</span>;
      })}
      {line.noNewline && <span className={classes.mark}> no newline at end of file</span>}
    </td>
  );
}

/// A return at the end of a line is a change that nobody would see; one within it would hide what stands behind it.
function shown(text: string): string {
  return visible(text.endsWith('\r') ? `${text.slice(0, -1)}␍` : text);
}
