import { Button } from '@mantine/core';
import { useDeferredValue, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { Hint } from '../../../ui/Basics';
import { bytes, plural } from '../../../ui/format';
import { Empty, Loading, ProblemAlert } from '../../../ui/States';
import { LogRow } from './LogRow';
import { LogTools } from './LogTools';
import classes from './LogView.module.css';
import { findAll, type Match } from './logBuffer';
import { type Log, useLog } from './useLog';
import { ROW_HEIGHT, useRows } from './useRows';

/// Closer to an edge than this counts as being there.
const NEAR = 40;
const NO_MATCHES: readonly Match[] = [];

interface LogViewProps {
  jobId: string;
  epoch: number;
  /// More output may come.
  running: boolean;
}

/// The log of one run, starting at its end.
export function LogView(props: LogViewProps) {
  const log = useLog(props.jobId, props.epoch);
  if (log.loaded) return <LogLines {...props} log={log} />;
  return log.error === undefined ? <Loading what="log" /> : <ProblemAlert error={log.error} />;
}

/// Only the rows in sight are rendered, however many there are.
function LogLines({ jobId, epoch, running, log }: LogViewProps & { log: Log }) {
  const { buffer, version } = log;
  const scroll = useRef<HTMLDivElement>(null);
  const lastTop = useRef(0);
  /// The row that stays in the middle when row heights change.
  const kept = useRef<number>(undefined);
  const [follow, setFollow] = useState(true);
  const [wrap, setWrap] = useState(false);
  const [words, setWords] = useState('');
  const [place, setPlace] = useState(-1);
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);

  const rows = useRows(scroll, buffer.length, wrap);

  const searched = useDeferredValue(words);
  const found = useMemo(() => {
    // The buffer changes in place; its version says when.
    void version;
    return findAll(buffer, searched);
  }, [buffer, version, searched]);
  const current = found.matches[place];
  const byRow = useMemo(() => groupByRow(found.matches), [found]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each change of the log once
  useLayoutEffect(() => {
    // The visible rows stay in place when older rows are added above.
    if (scroll.current && log.moved > 0 && !follow) scroll.current.scrollTop += log.moved * ROW_HEIGHT;
  }, [version]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: new rows and another width are what it goes by
  useLayoutEffect(() => {
    if (follow && buffer.length > 0) rows.scrollTo(buffer.length - 1, 'end');
  }, [follow, version, wrap]);

  const turnWrap = (to: boolean) => {
    const box = scroll.current;
    const middle = box ? box.scrollTop + box.clientHeight / 2 : 0;
    kept.current = rows.items.findLast((item) => item.top <= middle)?.index;
    setWrap(to);
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: only when rows got other heights
  useLayoutEffect(() => {
    if (kept.current !== undefined && !follow) rows.scrollTo(kept.current, 'center');
  }, [wrap]);

  const go = (to: number) => {
    const next = found.matches.length === 0 ? -1 : (to + found.matches.length) % found.matches.length;
    setPlace(next);
    const match = found.matches[next];
    if (!match) return;
    setFollow(false);
    rows.scrollTo(match.row, 'center');
  };

  const loadOlder = async (all: boolean) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await log.older(all);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };

  const onScroll = () => {
    const box = scroll.current;
    if (!box) return;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    // Only scrolling up stops following; new rows below do not.
    if (!atEnd && follow && box.scrollTop < lastTop.current - 2) setFollow(false);
    lastTop.current = box.scrollTop;
    if (box.scrollTop < NEAR && buffer.start > 0 && !busy && !follow && problem === undefined)
      void loadOlder(false);
  };

  return (
    <section
      aria-label={`Log of run ${epoch}`}
      onKeyDown={(event) => {
        if (event.target instanceof HTMLInputElement) return;
        if (event.key === 'n') go(place + 1);
        if (event.key === 'N') go(place - 1);
      }}
    >
      <LogTools
        jobId={jobId}
        epoch={epoch}
        words={words}
        setWords={(next) => {
          setWords(next);
          setPlace(-1);
        }}
        found={found}
        place={place}
        go={go}
        follow={follow}
        setFollow={setFollow}
        wrap={wrap}
        setWrap={turnWrap}
      />
      {log.error !== undefined && <ProblemAlert error={log.error} />}
      {problem !== undefined && <ProblemAlert error={problem} retry={() => void loadOlder(false)} />}
      <div className={classes.frame}>
        <div
          ref={scroll}
          className={classes.scroll}
          onScroll={onScroll}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: without it only a mouse could scroll
          tabIndex={0}
          role="log"
          aria-live="off"
          aria-label={`Lines of run ${epoch}`}
        >
          {buffer.length === 0 ? (
            <Empty title={running ? 'No output yet' : 'This run wrote nothing'} />
          ) : (
            <div className={classes.all} data-wrap={wrap || undefined} style={{ height: rows.height }}>
              {rows.items.map((item) => {
                const line = buffer.row(item.index);
                if (!line) return null;
                return (
                  <div
                    key={item.index}
                    ref={rows.measure}
                    data-index={item.index}
                    className={classes.row}
                    style={{ transform: `translateY(${item.top}px)` }}
                  >
                    <LogRow
                      line={line}
                      number={buffer.lineNumber(item.index)}
                      matches={byRow.get(item.index) ?? NO_MATCHES}
                      current={current?.row === item.index ? current : undefined}
                    />
                  </div>
                );
              })}
            </div>
          )}
        </div>
        {!follow && (
          <Button className={classes.end} size="xs" onClick={() => setFollow(true)}>
            Jump to the end
          </Button>
        )}
      </div>
      <div className={classes.foot}>
        <Hint size="xs">
          {buffer.start > 0
            ? `Last ${bytes(buffer.end - buffer.start)} of ${bytes(buffer.total)}. `
            : `${plural(buffer.length, 'row')}, ${bytes(buffer.total)}. `}
          {running && !buffer.complete ? 'Still running; new lines appear automatically.' : 'Finished.'}
        </Hint>
        {buffer.start > 0 && !buffer.cut && (
          <Button size="compact-xs" variant="default" loading={busy} onClick={() => void loadOlder(true)}>
            Load from the start
          </Button>
        )}
      </div>
    </section>
  );
}

function groupByRow(matches: readonly Match[]): Map<number, Match[]> {
  const rows = new Map<number, Match[]>();
  for (const match of matches) {
    const row = rows.get(match.row);
    if (row) row.push(match);
    else rows.set(match.row, [match]);
  }
  return rows;
}
