// Keys without modifiers, for the whole page. They are left alone where somebody types, in menus and behind dialogs.
// `g` and then a letter goes somewhere; the letter after a `g` is nobody else's.

import { useEffect, useRef } from 'react';

/// How long `g` is remembered.
export const PATIENCE = 1_500;

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

let judged: { event: KeyboardEvent; isAfterG: boolean } | undefined;

/// Every listener asks about every event, in any order; what the first was told holds for all.
function isAfterG(event: KeyboardEvent): boolean {
  if (judged?.event !== event) {
    judged = { event, isAfterG: event.timeStamp - pressedG <= PATIENCE };
    pressedG = event.key === 'g' && !judged.isAfterG ? event.timeStamp : Number.NEGATIVE_INFINITY;
  }
  return judged.isAfterG;
}

/// `jumps` are the letters after `g`; without them a letter after `g` is left to whoever has them.
function pressed(event: KeyboardEvent, keys: Keys, jumps: Keys | undefined): void {
  if (!isFree(event)) return;
  (isAfterG(event) ? jumps : keys)?.[event.key]?.(event);
}

/// While the component is shown. Keys are as `KeyboardEvent.key` says them: `j`, `/`, `?`, `ArrowDown`.
export function useKeys(keys: Keys, jumps?: Keys): void {
  const newest = useRef({ keys, jumps });
  useEffect(() => {
    newest.current = { keys, jumps };
  });
  useEffect(() => {
    const listen = (event: KeyboardEvent) => pressed(event, newest.current.keys, newest.current.jumps);
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, []);
}
