import { useState } from 'react';
import { Hint, SmallButton } from '../../../ui/Basics';
import { count } from '../../../ui/format';
import { ScrollBox } from '../../../ui/Panel';
import { visible } from '../../../ui/visible';
import { SideRows, UnifiedRows } from './DiffRows';
import classes from './DiffView.module.css';
import type { DiffFile, Hunk } from './parseDiff';

/// A very long file is shown this many lines at a time.
const STEP = 1_000;

export function fileTitle(file: DiffFile): string {
  const moved = (file.kind === 'renamed' || file.kind === 'copied') && file.oldName !== file.newName;
  return visible(
    moved ? `${file.oldName} → ${file.newName}` : file.newName || file.oldName || 'unnamed file',
  );
}

interface DiffFileProps {
  id: string;
  file: DiffFile;
  side: boolean;
  wrap: boolean;
  open: boolean;
  setOpen: (open: boolean) => void;
}

export function DiffFilePanel({ id, file, side, wrap, open, setOpen }: DiffFileProps) {
  const [limit, setLimit] = useState(STEP);
  const { hunks, left } = firstLines(file.hunks, limit);
  const title = fileTitle(file);
  return (
    <section id={id} className={classes.file} aria-label={title}>
      <h3 className={classes.head}>
        <button type="button" className={classes.fold} aria-expanded={open} onClick={() => setOpen(!open)}>
          <span aria-hidden>{open ? '▾' : '▸'}</span>
          <span className={classes.name}>{title}</span>
          <span className={classes.kind}>{file.kind === 'added' ? 'new' : file.kind}</span>
          {file.mode && <span className={classes.kind}>{visible(file.mode)}</span>}
          <FileCounts file={file} />
        </button>
      </h3>
      {open && (
        <ScrollBox className={classes.body} wrap={wrap} label={`Changes in ${title}`}>
          {hunks.length === 0 ? (
            <Hint p="xs">{without(file)}</Hint>
          ) : (
            <table className={classes.lines} data-side={side || undefined}>
              <colgroup>
                <col className={classes.numberCol} />
                {side && <col />}
                <col className={classes.numberCol} />
                <col />
              </colgroup>
              {hunks.map((hunk, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a diff never changes
                <tbody key={index}>
                  <tr className={classes.hunk}>
                    <td colSpan={side ? 4 : 3}>{visible(hunk.header)}</td>
                  </tr>
                  {side ? <SideRows lines={hunk.lines} /> : <UnifiedRows lines={hunk.lines} />}
                </tbody>
              ))}
            </table>
          )}
          {left > 0 && (
            <SmallButton m="xs" onClick={() => setLimit(limit + STEP)}>
              Show {count(Math.min(STEP, left))} more of {count(left)} lines
            </SmallButton>
          )}
        </ScrollBox>
      )}
    </section>
  );
}

function without(file: DiffFile): string {
  if (file.binary) return 'Binary file, not shown.';
  if (file.kind === 'renamed')
    return `Renamed without changes${file.similarity ? ` (${file.similarity} similar)` : ''}.`;
  if (file.kind === 'copied') return 'Copied without changes.';
  if (file.kind === 'mode') return `Only its mode changed: ${visible(file.mode ?? '')}.`;
  return file.kind === 'added' ? 'Empty file.' : 'The diff has no lines of this file.';
}

/// The hunks up to a number of lines, and how many lines there are beyond.
function firstLines(hunks: readonly Hunk[], limit: number): { hunks: Hunk[]; left: number } {
  const shown: Hunk[] = [];
  let room = limit;
  let left = 0;
  for (const hunk of hunks) {
    const lines = room > 0 ? hunk.lines.slice(0, room) : [];
    if (lines.length > 0) shown.push({ header: hunk.header, lines });
    room -= lines.length;
    left += hunk.lines.length - lines.length;
  }
  return { hunks: shown, left };
}

export function FileCounts({ file }: { file: DiffFile }) {
  if (file.binary) return <span className={classes.kind}>binary</span>;
  return <Counts added={file.added} removed={file.removed} />;
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className={classes.counts}>
      <span className={classes.plus}>+{count(added)}</span>{' '}
      <span className={classes.minus}>−{count(removed)}</span>
    </span>
  );
}
