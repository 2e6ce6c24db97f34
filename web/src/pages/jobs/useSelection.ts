import { useCallback, useMemo, useState } from 'react';
import type { Job } from '../../api/types';
import type { JobsSearch } from './search';
import { NOTHING, toggle, toggleAll, toggleRange, without } from './selection';

/// The selection of one view: with another filter it begins anew, so that nothing is chosen that is out of sight.
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
  // Of whatever is chosen now: much may have been chosen, and filtered, since somebody asked for it.
  const drop = useCallback(
    (ids: Iterable<string>) => keep((now) => ({ ...now, selection: without(now.selection, ids) })),
    [],
  );
  return { ids: selection.ids, chosen, choose, chooseAll, clear, drop };
}
