// Why one factory scores higher than another: every term as a bar to the right or left of a zero line, and in figures.

import { Tooltip } from '@mantine/core';
import type { FactoryVerdict } from '../../api/types';
import { type Term, terms } from './ExplainGroups';
import classes from './ExplainPanel.module.css';

export function figure(value: number): string {
  const shown = Math.abs(value) < 0.0005 ? 0 : value;
  return `${shown < 0 ? '−' : ''}${Math.abs(shown).toFixed(3)}`;
}

export function ScoreTerms({ verdict, scale }: { verdict: FactoryVerdict; scale: number }) {
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
