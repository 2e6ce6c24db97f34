// Which rows are selected. Ranges go by the order on the screen.

export interface Selection {
  ids: ReadonlySet<string>;
  /// Where a range begins: the row that was chosen last.
  anchor: string | undefined;
}

export const NOTHING: Selection = { ids: new Set(), anchor: undefined };

export function toggle(selection: Selection, id: string): Selection {
  const ids = new Set(selection.ids);
  if (!ids.delete(id)) ids.add(id);
  return { ids, anchor: id };
}

/// Everything from the row chosen last to this one becomes as this one becomes.
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

/// Without those that something was done with. What was chosen besides stays.
export function without(selection: Selection, ids: Iterable<string>): Selection {
  const rest = new Set(selection.ids);
  for (const id of ids) rest.delete(id);
  return { ids: rest, anchor: selection.anchor };
}
