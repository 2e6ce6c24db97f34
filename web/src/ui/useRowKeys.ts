import { useKeys } from '../app/keys';

/// `j` and `k` go from one `[data-row]` to the next; Enter then does what it does on any button or link.
export function useRowKeys(): void {
  useKeys({ j: () => moveFocus(1), k: () => moveFocus(-1) });
}

export function moveFocus(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by;
  rows[next]?.focus();
}
