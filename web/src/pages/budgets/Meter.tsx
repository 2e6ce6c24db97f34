import type { BudgetPeriod } from '../../api/types';
import { usd } from '../../ui/format';
import classes from './Meter.module.css';
import { meterWords, shares } from './spending';

/// A period: what is spent, what is reserved for running jobs (hatched), and the limit. Without a limit, figures.
export function Meter({ period, reservedUsd }: { period: BudgetPeriod; reservedUsd: number }) {
  const parts = shares(period.spentUsd, reservedUsd, period.ceilingUsd);
  const state = !parts ? 'none' : parts.over ? 'over' : parts.near ? 'near' : 'fine';
  return (
    <div className={classes.meter} data-state={state}>
      <div className={classes.line}>
        <span className={classes.period}>{period.period}</span>
        <span>
          <b>{usd(period.spentUsd)}</b>
          {parts ? ` of ${usd(period.ceilingUsd)}` : ''}
        </span>
      </div>
      {parts ? (
        <div
          className={classes.bar}
          role="img"
          aria-label={`${period.period}: ${meterWords(period, reservedUsd)}`}
        >
          <span className={classes.spent} style={{ width: `${parts.spent * 100}%` }} />
          <span className={classes.reserved} style={{ width: `${parts.reserved * 100}%` }} />
          {parts.over && <span className={classes.limit} style={{ left: `${parts.limit * 100}%` }} />}
        </div>
      ) : (
        <div className={classes.open}>no limit</div>
      )}
      <div className={classes.left}>
        {parts && (parts.over ? 'over the limit' : `${usd(period.leftUsd)} left`)}
        {parts && !parts.over && parts.near && ', nearly exhausted'}
      </div>
    </div>
  );
}
