// j and k move down and up the list, x selects, Enter opens. The focus moves to the link in the row.

import type { Virtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, useState } from 'react';
import type { Job } from '../../api/types';
import { useKeys } from '../../app/keys';
import type { useSelection } from './useSelection';

const SHIFT_X = 'X';

export function useTableKeys(
  rows: readonly Job[],
  virtual: Virtualizer<Window, Element>,
  selection: ReturnType<typeof useSelection>,
) {
  const keyed = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState<string>();
  const wanted = useRef<string>(undefined);

  // The row may have to be scrolled to before there is a link to focus.
  useEffect(() => {
    if (wanted.current === undefined) return;
    const link = keyed.current?.querySelector<HTMLElement>(`[data-job="${CSS.escape(wanted.current)}"]`);
    if (!link) return;
    wanted.current = undefined;
    link.focus({ preventScroll: true });
  });

  const move = (by: number) => {
    const now = active === undefined ? -1 : rows.findIndex((job) => job.id === active);
    const inSight = virtual
      .getVirtualItems()
      .find((item) => item.end > (virtual.scrollOffset ?? 0) + 90)?.index;
    const next = now < 0 ? (inSight ?? 0) : Math.min(Math.max(now + by, 0), rows.length - 1);
    const job = rows[next];
    if (!job) return;
    wanted.current = job.id;
    setActive(job.id);
    virtual.scrollToIndex(next, { align: 'auto' });
  };
  // Arrows scroll the page as usual, unless the focus is in the list.
  const arrow = (by: number) => (event: KeyboardEvent) => {
    if (active === undefined) return;
    event.preventDefault();
    move(by);
  };
  const select = (range: boolean) => {
    if (active !== undefined) selection.choose(active, range);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: arrow(1),
    ArrowUp: arrow(-1),
    x: () => select(false),
    // With shift: everything from the row selected last.
    [SHIFT_X]: () => select(true),
    Escape: selection.clear,
  });
  return { keyed, active, setActive };
}
