import { labelOf, STAGE, type Stage, toneOf } from '../api/vocabulary';
import classes from './shared.module.css';

interface StageBadgeProps {
  stage: Stage;
  /// It asks a person something: more urgent than where it is.
  needsInput?: boolean;
}

export function StageBadge({ stage, needsInput }: StageBadgeProps) {
  if (needsInput) {
    return (
      <span className={classes.badge} data-tone="warn" title={labelOf(STAGE, stage)}>
        needs input
      </span>
    );
  }
  return (
    <span className={classes.badge} data-tone={toneOf(STAGE, stage)}>
      {labelOf(STAGE, stage)}
    </span>
  );
}
