// Which rows of the log are rendered. Unwrapped rows have one height, so that a million of them cost nothing; wrapped ones
// have to be measured.

import { useVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffect, useState } from 'react';

export const ROW_HEIGHT = 18;
/// Rows rendered beyond the edges, so that fast scrolling shows no gaps.
const SPARE = 30;
/// The window moves in steps, so that not every pixel causes a render.
const STEP = 10;

export interface Rows {
  height: number;
  items: { index: number; top: number }[];
  measure?: (element: HTMLElement | null) => void;
  scrollTo: (index: number, align: 'center' | 'end') => void;
}

export function useRows(box: RefObject<HTMLDivElement | null>, count: number, wrap: boolean): Rows {
  const fixed = useFixedRows(box, count);
  const measured = useVirtualizer({
    enabled: wrap,
    count: wrap ? count : 0,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: SPARE,
    initialOffset: () => box.current?.scrollTop ?? 0,
  });
  if (!wrap) return fixed;
  return {
    height: measured.getTotalSize(),
    items: measured.getVirtualItems().map(({ index, start }) => ({ index, top: start })),
    measure: measured.measureElement,
    scrollTo: (index, align) => measured.scrollToIndex(index, { align }),
  };
}

function useFixedRows(box: RefObject<HTMLDivElement | null>, count: number): Rows {
  const [window, setWindow] = useState({ first: 0, last: 60 });

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => {
      const first = Math.floor(element.scrollTop / ROW_HEIGHT / STEP) * STEP;
      const last = first + Math.ceil(element.clientHeight / ROW_HEIGHT / STEP) * STEP + STEP;
      setWindow((old) => (old.first === first && old.last === last ? old : { first, last }));
    };
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, [box]);

  const scrollTo = useCallback(
    (index: number, align: 'center' | 'end') => {
      const element = box.current;
      if (!element) return;
      const free = element.clientHeight - ROW_HEIGHT;
      element.scrollTop = index * ROW_HEIGHT - (align === 'center' ? free / 2 : free);
    },
    [box],
  );

  const from = Math.max(0, window.first - SPARE);
  const to = Math.min(count, window.last + SPARE);
  const items = Array.from({ length: Math.max(0, to - from) }, (_, at) => ({
    index: from + at,
    top: (from + at) * ROW_HEIGHT,
  }));
  return { height: count * ROW_HEIGHT, items, scrollTo };
}
