import classes from './StandingMark.module.css';
import type { Standing } from './standing';

/// A shape for each state, so that colour is not all that tells them apart.
const SHAPES: Record<Standing, string> = {
  live: 'M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1z',
  degraded: 'M6 1l5.500 10h-11z',
  draining: 'M6 1.500a4.500 4.500 0 0 0 0 9z',
  down: 'M1 1h10v10H1z',
  stale: 'M2 2l8 8M10 2l-8 8',
  new: 'M6 1.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9z',
};
const HOLLOW: Standing[] = ['stale', 'new'];

export function StandingMark({ standing }: { standing: Standing }) {
  const hollow = HOLLOW.includes(standing);
  return (
    <svg
      className={classes.mark}
      data-standing={standing}
      width="10"
      height="10"
      viewBox="0 0 12 12"
      aria-hidden="true"
      focusable="false"
    >
      {standing === 'draining' && (
        <circle cx="6" cy="6" r="4.500" fill="none" stroke="currentColor" strokeWidth="1.500" />
      )}
      <path
        d={SHAPES[standing]}
        fill={hollow ? 'none' : 'currentColor'}
        stroke={hollow ? 'currentColor' : 'none'}
        strokeWidth="2"
      />
    </svg>
  );
}
