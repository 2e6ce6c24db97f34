import { type RefObject, useEffect, useRef } from 'react';

/// As wide as the fade of the strip: what is brought into sight is not under it.
const FADE = 32;

/// Keeps the chosen tab of a strip that scrolls in sight, and marks the sides on which there are more. Only the strip is
/// scrolled, never the page.
export function useTabStrip(chosen: string): RefObject<HTMLDivElement | null> {
  const strip = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const list = strip.current;
    if (!list) return;
    const mark = () => {
      list.toggleAttribute('data-more-before', list.scrollLeft > 1);
      list.toggleAttribute('data-more-after', list.scrollLeft + list.clientWidth < list.scrollWidth - 1);
    };
    mark();
    list.addEventListener('scroll', mark, { passive: true });
    const resized = new ResizeObserver(mark);
    resized.observe(list);
    return () => {
      list.removeEventListener('scroll', mark);
      resized.disconnect();
    };
  }, []);
  useEffect(() => {
    const list = strip.current;
    const tab = list?.querySelector<HTMLElement>(`[role='tab'][data-tab='${CSS.escape(chosen)}']`);
    if (!list || !tab) return;
    const [around, own] = [list.getBoundingClientRect(), tab.getBoundingClientRect()];
    const before = around.left + FADE - own.left;
    const after = own.right - (around.right - FADE);
    if (before > 0) list.scrollLeft -= before;
    else if (after > 0) list.scrollLeft += after;
  }, [chosen]);
  return strip;
}
