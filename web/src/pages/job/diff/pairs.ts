// Side by side: what was removed beside what came in its place, and which part of the line differs.

import type { DiffLine } from './parseDiff';

export interface Pair {
  left?: DiffLine;
  right?: DiffLine;
}

export function pairs(lines: DiffLine[]): Pair[] {
  const rows: Pair[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (!line) break;
    if (line.kind === 'same') {
      rows.push({ left: line, right: line });
      at += 1;
      continue;
    }
    const removed = run(lines, at, 'removed');
    const added = run(lines, at + removed.length, 'added');
    for (let row = 0; row < Math.max(removed.length, added.length); row += 1) {
      rows.push({ left: removed[row], right: added[row] });
    }
    at += removed.length + added.length;
  }
  return rows;
}

function run(lines: DiffLine[], from: number, kind: DiffLine['kind']): DiffLine[] {
  let end = from;
  while (lines[end]?.kind === kind) end += 1;
  return lines.slice(from, end);
}

export interface Part {
  text: string;
  differs: boolean;
}

/// Longer lines are not compared within.
const COMPARED = 1_000;

/// The line in parts: what it shares with the other one at both ends, and what differs between.
export function within(text: string, other: string | undefined): Part[] {
  if (other === undefined || text.length > COMPARED || other.length > COMPARED)
    return [{ text, differs: false }];
  let head = 0;
  while (head < text.length && head < other.length && text[head] === other[head]) head += 1;
  let tail = 0;
  while (
    tail < text.length - head &&
    tail < other.length - head &&
    text[text.length - 1 - tail] === other[other.length - 1 - tail]
  ) {
    tail += 1;
  }
  // Two lines that share next to nothing are two lines, not one that changed.
  if (head + tail < Math.min(text.length, other.length) * 0.3) return [{ text, differs: false }];
  const parts = [
    { text: text.slice(0, head), differs: false },
    { text: text.slice(head, text.length - tail), differs: true },
    { text: text.slice(text.length - tail), differs: false },
  ];
  return parts.filter((part) => part.text !== '');
}
