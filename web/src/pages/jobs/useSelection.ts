import { useCallback, useMemo, useState } from 'react';
import type { Job } from '../../api/types';
import type { JobsSearch } from '../../app/search';
import { toggled } from '../../ui/filter';

/// The selection of one view: another filter clears it, so that nothing is selected that is out of sight.
export function useSelection(search: JobsSearch, rows: readonly Job[]) {
  const [kept, keep] = useState({ of: search, selection: NOTHING });
  const selection = kept.of === search ? kept.selection : NOTHING;
  const order = useMemo(() => rows.map((job) => job.id), [rows]);
  const chosen = useMemo(() => rows.filter((job) => selection.ids.has(job.id)), [rows, selection]);

  const choose = useCallback(
    (id: string, range: boolean) =>
      keep({ of: search, selection: range ? toggleRange(selection, id, order) : toggle(selection, id) }),
    [search, selection, order],
  );
  const chooseAll = useCallback(
    () => keep({ of: search, selection: toggleAll(selection, order) }),
    [search, selection, order],
  );
  const clear = useCallback(() => keep({ of: search, selection: NOTHING }), [search]);
  // From the current selection: it may have changed since the action began.
  const drop = useCallback(
    (ids: Iterable<string>) => keep((now) => ({ ...now, selection: without(now.selection, ids) })),
    [],
  );
  return { ids: selection.ids, chosen, choose, chooseAll, clear, drop };
}

// Which rows are selected. Ranges go by the order on the screen.

export interface Selection {
  ids: ReadonlySet<string>;
  /// Where a range begins: the row selected last.
  anchor: string | undefined;
}

export const NOTHING: Selection = { ids: new Set(), anchor: undefined };

export function toggle(selection: Selection, id: string): Selection {
  return { ids: toggled(selection.ids, id), anchor: id };
}

/// Everything from the last row to this one gets the new state of this one.
export function toggleRange(selection: Selection, id: string, order: readonly string[]): Selection {
  const from = selection.anchor === undefined ? -1 : order.indexOf(selection.anchor);
  const to = order.indexOf(id);
  if (from < 0 || to < 0) return toggle(selection, id);
  const ids = new Set(selection.ids);
  const on = !ids.has(id);
  for (const each of order.slice(Math.min(from, to), Math.max(from, to) + 1)) {
    if (on) ids.add(each);
    else ids.delete(each);
  }
  return { ids, anchor: id };
}

export function toggleAll(selection: Selection, order: readonly string[]): Selection {
  const all = order.length > 0 && order.every((id) => selection.ids.has(id));
  return all ? NOTHING : { ids: new Set(order), anchor: undefined };
}

/// Without these ids; the rest stays selected.
export function without(selection: Selection, ids: Iterable<string>): Selection {
  const rest = new Set(selection.ids);
  for (const id of ids) rest.delete(id);
  return { ids: rest, anchor: selection.anchor };
}
