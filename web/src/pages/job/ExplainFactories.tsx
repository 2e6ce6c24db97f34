// The verdict on each factory. A fleet may have thousands: eligible ones are rendered only while in sight, the others are
// counted by reason.

import { Tooltip, UnstyledButton } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef, useState } from 'react';
import type { FactoryVerdict } from '../../api/types';
import { BLOCKER, labelOf } from '../../api/vocabulary';
import { Hint } from '../../ui/Basics';
import { CodeText } from '../../ui/CodeText';
import { toggled } from '../../ui/filter';
import { plural } from '../../ui/format';
import { lead, type Refusal, type Term, terms, widest } from './ExplainGroups';
import classes from './ExplainPanel.module.css';

/// Up to here the list is simply there; longer ones scroll in a box of their own.
const SHORT = 12;
/// So many names are written out; nobody reads more.
const NAMES = 200;

interface Scored {
  scale: number;
  toggling: { open: ReadonlySet<string>; toggle: (id: string) => void };
}

export function Feasible({ verdicts }: { verdicts: FactoryVerdict[] }) {
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const scale = widest(verdicts);
  const first = verdicts[0];
  // The best is open until somebody closes it; which one is best may change meanwhile.
  const open = new Set(changed);
  if (first && !changed.has(first.factoryId)) open.add(first.factoryId);
  else if (first) open.delete(first.factoryId);
  const toggle = (id: string) => setChanged((before) => toggled(before, id));
  const ahead = lead(verdicts[0], verdicts[1]);
  return (
    <>
      {ahead && (
        <Hint mb={4}>
          {first?.factoryId} is{' '}
          {ahead.by > 0
            ? `ahead of ${ahead.over} by ${figure(ahead.by)}`
            : `tied with ${ahead.over} and comes first by name`}
          {ahead.by > 0 && ahead.mostly && `, mostly because it ${ahead.mostly}`}.
        </Hint>
      )}
      {verdicts.length <= SHORT ? (
        <ol className={classes.factories}>
          {verdicts.map((verdict) => (
            <li key={verdict.factoryId}>
              <Candidate verdict={verdict} scale={scale} toggling={{ open, toggle }} />
            </li>
          ))}
        </ol>
      ) : (
        <ManyFeasible verdicts={verdicts} scale={scale} toggling={{ open, toggle }} />
      )}
    </>
  );
}

function ManyFeasible({ verdicts, scale, toggling }: Scored & { verdicts: FactoryVerdict[] }) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: verdicts.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => (toggling.open.has(verdicts[index]?.factoryId ?? '') ? 180 : 34),
    getItemKey: (index) => verdicts[index]?.factoryId ?? index,
    overscan: 6,
  });
  return (
    <section ref={box} className={classes.box} aria-label="Eligible factories, best first">
      <ol className={classes.factories} style={{ height: rows.getTotalSize(), position: 'relative' }}>
        {rows.getVirtualItems().map((row) => {
          const verdict = verdicts[row.index];
          if (!verdict) return null;
          return (
            <li
              key={row.key}
              data-index={row.index}
              ref={rows.measureElement}
              aria-setsize={verdicts.length}
              aria-posinset={row.index + 1}
              className={classes.placed}
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <Candidate verdict={verdict} scale={scale} toggling={toggling} />
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function Candidate({ verdict, scale, toggling }: Scored & { verdict: FactoryVerdict }) {
  const opened = toggling.open.has(verdict.factoryId);
  return (
    <>
      <UnstyledButton
        className={classes.candidate}
        aria-expanded={opened}
        onClick={() => toggling.toggle(verdict.factoryId)}
      >
        <span className={classes.caret} aria-hidden="true" data-open={opened || undefined}>
          ›
        </span>
        <span className={classes.id}>{verdict.factoryId}</span>
        <span className={classes.figure}>
          <span className={classes.quiet}>score</span> {figure(verdict.score ?? 0)}
        </span>
      </UnstyledButton>
      {opened && <ScoreTerms verdict={verdict} scale={scale} />}
    </>
  );
}

export function Refused({ groups }: { groups: Refusal[] }) {
  return (
    <ul className={classes.factories}>
      {groups.map((group) => (
        <li key={`${group.filter} ${group.detail}`}>
          <RefusedGroup group={group} />
        </li>
      ))}
    </ul>
  );
}

function RefusedGroup({ group }: { group: Refusal }) {
  const [only] = group.factories;
  const summary = (
    <>
      <span className={classes.filter}>{labelOf(BLOCKER, group.filter)}</span>{' '}
      {group.factories.length === 1 ? (
        <b>{only}</b>
      ) : (
        <b>{plural(group.factories.length, 'factory', 'factories')}</b>
      )}
      {': '}
      <CodeText text={group.detail} />
    </>
  );
  if (group.factories.length === 1) return <div className={classes.refused}>{summary}</div>;
  const more = group.factories.length - NAMES;
  return (
    <details className={classes.refused}>
      <summary>{summary}</summary>
      <div className={classes.ids}>
        {group.factories.slice(0, NAMES).join(', ')}
        {more > 0 && ` and ${plural(more, 'other')}`}
      </div>
    </details>
  );
}

export function figure(value: number): string {
  const shown = Math.abs(value) < 0.0005 ? 0 : value;
  return `${shown < 0 ? '−' : ''}${Math.abs(shown).toFixed(3)}`;
}

function ScoreTerms({ verdict, scale }: { verdict: FactoryVerdict; scale: number }) {
  return (
    <dl className={classes.terms}>
      {terms(verdict).map((term) => (
        <ScoreTerm key={term.name} term={term} scale={scale} />
      ))}
    </dl>
  );
}

function ScoreTerm({ term, scale }: { term: Term; scale: number }) {
  const share = Math.min(1, Math.abs(term.value) / scale) * 50;
  const style = term.value < 0 ? { right: '50%', width: `${share}%` } : { left: '50%', width: `${share}%` };
  return (
    <div className={classes.term}>
      <Tooltip label={term.about} multiline maw={320}>
        <dt>{term.label}</dt>
      </Tooltip>
      <dd>
        <span className={classes.track} aria-hidden="true">
          <span className={classes.bar} data-negative={term.value < 0 || undefined} style={style} />
        </span>
        <span className={classes.figure}>{figure(term.value)}</span>
      </dd>
    </div>
  );
}
