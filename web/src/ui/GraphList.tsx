// The graph as a table: the same facts in reading order, for keyboards, screen readers and phones.

import { VisuallyHidden } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, memo, useMemo, useRef } from 'react';
import type { Dag } from '../api/types';
import classes from './Graph.module.css';
import { type ListRow, listRows } from './GraphRows';
import { StageBadge } from './StageBadge';

const COLUMNS = ['Job', 'Stage', 'Factory', 'Failed attempts', 'Blocked by', 'Children'];
const ROW = 40;
const STEPS: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

export function GraphList({ dag, selected }: { dag: Dag; selected?: string }) {
  const rows = useMemo(() => listRows(dag), [dag]);
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    getItemKey: (index) => rows[index]?.id ?? index,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const walk = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const links = [...(box.current?.querySelectorAll<HTMLElement>('tbody a') ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    const next = links[at < 0 ? 0 : at + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the links in it take the keys; this only says which is next
    <div ref={box} className={classes.list} onKeyDown={walk}>
      <table className={classes.table} aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {COLUMNS.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap height={items[0]?.start ?? 0} />
          {items.map((item) => {
            const row = rows[item.index];
            return (
              row && (
                <Row
                  key={row.id}
                  row={row}
                  index={item.index}
                  current={row.id === selected}
                  measure={virtual.measureElement}
                />
              )
            );
          })}
          <Gap height={virtual.getTotalSize() - (items.at(-1)?.end ?? 0)} />
        </tbody>
      </table>
    </div>
  );
}

/// Stands for the rows that are out of sight.
function Gap({ height }: { height: number }) {
  if (height <= 0) return null;
  return (
    <tr>
      <td colSpan={COLUMNS.length} style={{ height, padding: 0, border: 0 }} />
    </tr>
  );
}

interface RowProps {
  row: ListRow;
  index: number;
  current: boolean;
  measure: (element: HTMLElement | null) => void;
}

const Row = memo(function Row({ row, index, current, measure }: RowProps) {
  return (
    <tr
      ref={measure}
      data-index={index}
      aria-rowindex={index + 2}
      aria-current={current || undefined}
      data-current={current || undefined}
    >
      <th scope="row" style={{ paddingLeft: `${0.5 + Math.min(row.depth, 8) * 1.1}rem` }}>
        {row.depth > 0 && (
          <span className={classes.branch} aria-hidden="true">
            └{' '}
          </span>
        )}
        {row.depth > 0 && <VisuallyHidden>level {row.depth}: </VisuallyHidden>}
        <Link to="/jobs/$id" params={{ id: row.id }} className={classes.link}>
          {row.name}
        </Link>
        {row.kind !== 'job' && (
          <span className={classes.kind}> {row.kind === 'composite' ? 'group' : row.kind}</span>
        )}
      </th>
      <td>
        <StageBadge stage={row.stage} />
        {row.failure && <span className={classes.quiet}> {row.failure}</span>}
      </td>
      <td>{row.factory ?? '–'}</td>
      <td className={classes.number}>{row.kind === 'job' ? row.attempts : '–'}</td>
      <td className={classes.deps}>{row.waitsFor || '–'}</td>
      <td className={classes.number}>{row.progress ?? '–'}</td>
    </tr>
  );
});
