// Shortcuts without modifiers, for the whole page. They are off while somebody types, in menus and behind dialogs. `g` and
// then a letter goes to a page; the letter after a `g` has no other meaning.

import { useEffect, useEffectEvent } from 'react';

/// How long after `g` the second key may come.
const SEQUENCE_TIMEOUT = 1_500;

export type Keys = Record<string, (event: KeyboardEvent) => void>;

const TYPED_INTO =
  'input:not([type="checkbox"], [type="radio"], [type="button"]), textarea, select, [contenteditable]';
const OWN_KEYS = '[role="menu"], [role="listbox"], [role="dialog"], [role="alertdialog"]';

let pressedG = Number.NEGATIVE_INFINITY;

function isFree(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing)
    return false;
  const target = event.target instanceof Element ? event.target : null;
  if (target?.closest(`${TYPED_INTO}, ${OWN_KEYS}`)) return false;
  return document.querySelector('[role="dialog"][aria-modal="true"], [role="alertdialog"]') === null;
}

let last: { event: KeyboardEvent; isAfterG: boolean } | undefined;

/// Every listener asks about every event, in any order; the first answer holds for all.
function isAfterG(event: KeyboardEvent): boolean {
  if (last?.event !== event) {
    last = { event, isAfterG: event.timeStamp - pressedG <= SEQUENCE_TIMEOUT };
    pressedG = event.key === 'g' && !last.isAfterG ? event.timeStamp : Number.NEGATIVE_INFINITY;
  }
  return last.isAfterG;
}

/// `jumps` are the letters after `g`; without them a letter after `g` is ignored here.
function pressed(event: KeyboardEvent, keys: Keys, jumps: Keys | undefined): void {
  if (!isFree(event)) return;
  (isAfterG(event) ? jumps : keys)?.[event.key]?.(event);
}

/// While the component is shown. Keys are as `KeyboardEvent.key` says them: `j`, `/`, `?`, `ArrowDown`.
export function useKeys(keys: Keys, jumps?: Keys): void {
  const onKey = useEffectEvent((event: KeyboardEvent) => pressed(event, keys, jumps));
  useEffect(() => {
    const listen = (event: KeyboardEvent) => onKey(event);
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, []);
}

/// `j` and `k` move between `[data-row]` elements; Enter then works as on any button or link.
export function useRowKeys(): void {
  useKeys({ j: () => moveFocus(1), k: () => moveFocus(-1) });
}

function moveFocus(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by;
  rows[next]?.focus();
}
