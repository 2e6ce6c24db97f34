import { Alert, Button } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useRouter } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { Problem } from '../../api/problem';
import { count, plural } from '../../ui/format';
import { COLUMNS } from './columns';
import { JobHeaderCells, JobRow } from './JobRow';
import classes from './JobTable.module.css';
import { isAny, type useJobList, useNextPage, useTidying, type Waiting } from './useJobList';
import type { useSelection } from './useSelection';
import { useTableKeys } from './useTableKeys';

/// Fixed, so that nothing has to be measured and nothing moves: a line of the table, or a card on a narrow screen.
const LINE = 36;
const CARD = 96;
/// The height of the sticky headers of the page and the table.
const HEADERS = 52 + 34;

interface JobTableProps {
  list: ReturnType<typeof useJobList>;
  selection: ReturnType<typeof useSelection>;
}

export function JobTable({ list, selection }: JobTableProps) {
  const { rows, query, look, waiting, showWaiting } = list;
  const router = useRouter();
  const isNarrow = useMediaQuery('(max-width: 47.99em)') ?? false;
  const height = isNarrow ? CARD : LINE;
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => height,
    overscan: 12,
    scrollMargin: top,
    scrollPaddingStart: HEADERS,
    scrollPaddingEnd: height,
    getItemKey: (index) => rows[index]?.id ?? index,
  });
  useLayoutEffect(() => {
    const now = (body.current?.getBoundingClientRect().top ?? 0) + window.scrollY;
    if (Math.abs(now - top) > 1) setTop(now);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another height makes all that was measured wrong
  useLayoutEffect(() => virtual.measure(), [height]);

  const items = virtual.getVirtualItems();
  const first = items[0];
  const last = items.at(-1);
  useEffect(() => {
    if (first && last) look(rows.slice(first.index, last.index + 1).map((job) => job.id));
  }, [look, rows, first?.index, last?.index, first, last]);
  const next = useNextPage(list, rows.length - 1 - (last?.index ?? 0));

  const { keyed, setActive, active } = useTableKeys(rows, virtual, selection);
  const [pointed, setPointed] = useState(false);
  const isAtTop = (virtual.scrollOffset ?? 0) <= top;
  const isCalm = isAtTop && !pointed && active === undefined && selection.ids.size === 0;
  const isWaiting = isAny(waiting);
  useEffect(() => {
    if (isCalm && isWaiting) showWaiting();
  }, [isCalm, isWaiting, showWaiting]);

  useTidying(list, isCalm);

  const { stateOf, strays } = list;
  const all = selection.chosen.length === rows.length;
  return (
    <section
      aria-label="Job list"
      ref={keyed}
      onPointerEnter={(event) => {
        setPointed(event.pointerType === 'mouse');
        // A row under the pointer may be opened next.
        void router.loadRouteChunk(router.routesByPath['/jobs/$id']);
      }}
      onPointerLeave={() => setPointed(false)}
      onBlur={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget)) setActive(undefined);
      }}
    >
      {/* Above the rows, not among them: neither of these may move what one looks at. */}
      <div className={classes.pill}>
        <NewPill
          waiting={waiting}
          show={() => {
            showWaiting();
            window.scrollTo({ top: 0 });
          }}
        />
        {strays > 0 && (
          <Button size="xs" radius="xl" variant="default" onClick={() => void list.reload()}>
            {strays === 1 ? '1 job no longer matches' : `${count(strays)} jobs no longer match`}, reload
          </Button>
        )}
      </div>
      <table
        className={classes.table}
        aria-label="Jobs"
        aria-rowcount={query.hasNextPage ? -1 : rows.length + 1}
        aria-busy={query.isPlaceholderData || undefined}
      >
        <thead>
          <tr aria-rowindex={1}>
            <th className={classes.check}>
              <label className={classes.box}>
                <input
                  type="checkbox"
                  aria-label="Select all loaded jobs"
                  checked={all}
                  ref={(input) => {
                    if (input) input.indeterminate = selection.ids.size > 0 && !all;
                  }}
                  onChange={selection.chooseAll}
                />
                <span className={classes.narrow} aria-hidden>
                  Select all loaded
                </span>
              </label>
            </th>
            <JobHeaderCells />
          </tr>
        </thead>
        <tbody ref={body}>
          <Gap height={first ? first.start - top : 0} />
          {items.map((item) => {
            const job = rows[item.index];
            if (!job) return null;
            return (
              <JobRow
                key={job.id}
                job={job}
                index={item.index}
                state={query.isPlaceholderData ? 'listed' : stateOf(job)}
                isSelected={selection.ids.has(job.id)}
                isActive={active === job.id}
                choose={selection.choose}
                activate={setActive}
              />
            );
          })}
          <Gap height={last ? virtual.getTotalSize() - (last.end - top) : 0} />
        </tbody>
      </table>
      <Foot list={list} next={next} />
    </section>
  );
}

/// The columns of every screen, and the checkbox: a gap that spans more would add columns.
const SPAN = 1 + COLUMNS.filter((column) => !column.wideOnly).length;

/// Stands for the rows that are out of sight.
function Gap({ height }: { height: number }) {
  if (height <= 0) return null;
  return (
    <tr className={classes.gap} aria-hidden>
      <td colSpan={SPAN} style={{ height }} />
    </tr>
  );
}

interface FootProps {
  list: JobTableProps['list'];
  next: ReturnType<typeof useNextPage>;
}

function Foot({ list: { query, waiting }, next }: FootProps) {
  if (next.isError) {
    return (
      <Alert color="red" mt="sm" role="alert" title="Could not load more jobs">
        {Problem.from(next.error).message}{' '}
        <Button size="compact-xs" variant="default" onClick={() => void next.refetch()}>
          Try again
        </Button>
      </Alert>
    );
  }
  const end =
    waiting.many || waiting.older ? 'There may be more jobs, reload to see them' : 'End of the list';
  return <p className={classes.foot}>{query.hasNextPage ? 'Loading more' : end}</p>;
}

/// Announces new jobs, which move nothing until somebody asks for them.
function NewPill({ waiting, show }: { waiting: Waiting; show(): void }) {
  if (!isAny(waiting)) return null;
  return (
    <Button size="xs" radius="xl" onClick={show}>
      {announcement(waiting)}
    </Button>
  );
}

function announcement({ jobs, many }: Waiting): string {
  if (many) return 'Many new jobs, show';
  return jobs.length > 0 ? `${plural(jobs.length, 'new job')}, show` : 'There may be more jobs, reload';
}
