import { labelOf, STAGE, type Stage, toneOf } from '../api/vocabulary';
import classes from './shared.module.css';

export function StageBadge({ stage }: { stage: Stage }) {
  return (
    <span className={classes.badge} data-tone={toneOf(STAGE, stage)}>
      {labelOf(STAGE, stage)}
    </span>
  );
}
