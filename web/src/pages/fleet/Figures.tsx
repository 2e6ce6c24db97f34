import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { budgetsQuery, metricsQuery } from '../../api/queries';
import type { FleetMetrics } from '../../api/types';
import { type Stage, stagesIn } from '../../api/vocabulary';
import { coarse, count, percent, usd } from '../../ui/format';
import { ProblemAlert } from '../../ui/States';
import { useNow } from '../../ui/useNow';
import classes from './Figures.module.css';

function total(metrics: FleetMetrics | undefined, stages: readonly Stage[]): number | undefined {
  if (!metrics) return undefined;
  const of = (byStage: Record<string, number>) =>
    stages.reduce((sum, stage) => sum + (byStage[stage] ?? 0), 0);
  return metrics.products.reduce((sum, product) => sum + of(product.byStage), 0);
}

/// Its height is the same with and without data.
export function Figures() {
  const metrics = useQuery(metricsQuery());
  const { data: budgets } = useQuery(budgetsQuery());
  const { data } = metrics;
  if (!data && metrics.isError) {
    return <ProblemAlert error={metrics.error} retry={() => void metrics.refetch()} />;
  }
  const factories = data?.factories;
  const today = budgets?.budgets.reduce((sum, budget) => {
    return sum + (budget.periods.find(({ period }) => period === 'day')?.spentUsd ?? 0);
  }, 0);
  return (
    <dl className={classes.strip} aria-label="Fleet at a glance">
      <StageFigure label="Queued" metrics={data} stages={stagesIn('queued')} />
      <StageFigure label="Running" metrics={data} stages={stagesIn('running')} tone="busy" />
      <StageFigure label="To review or ship" metrics={data} stages={stagesIn('decision')} tone="warn" />
      <StageFigure label="Failed" metrics={data} stages={stagesIn('failed')} tone="bad" />
      <StageFigure label="Dead letters" metrics={data} stages={stagesIn('dead')} tone="bad" />
      <Figure
        label="Longest wait"
        value={
          <span className={classes.long}>
            <OldestWait metrics={metrics} />
          </span>
        }
      />
      <Figure
        label="Seats used"
        value={factories && factories.seats > 0 ? percent(factories.utilisation) : '–'}
        small={
          factories && factories.seats > 0 && factories.seats < 1_000
            ? `${factories.seatsUsed} of ${factories.seats}`
            : undefined
        }
        about={
          factories ? `${count(factories.seatsUsed)} of ${count(factories.seats)} seats used` : undefined
        }
      />
      <Figure label="Spent today" to="/budgets" value={usd(today)} about="since 00:00 UTC" />
    </dl>
  );
}

interface StageFigureProps {
  label: string;
  metrics: FleetMetrics | undefined;
  stages: readonly Stage[];
  tone?: FigureProps['tone'];
}

/// How many jobs are there, with a link to them. A zero draws no attention.
function StageFigure({ label, metrics, stages, tone }: StageFigureProps) {
  const n = total(metrics, stages);
  return <Figure label={label} stage={stages.join(',')} value={count(n)} tone={n ? tone : undefined} />;
}

/// Grows between two fetches.
function OldestWait({ metrics: { data, dataUpdatedAt } }: { metrics: UseQueryResult<FleetMetrics> }) {
  const oldest = data?.oldestQueuedMs;
  const waits = typeof oldest === 'number';
  const now = useNow(waits);
  if (!waits) return data ? 'none' : '–';
  return coarse(oldest + Math.max(0, now - dataUpdatedAt));
}

interface FigureProps {
  label: string;
  value: ReactNode;
  small?: string;
  about?: string;
  stage?: string;
  to?: '/budgets';
  tone?: 'busy' | 'warn' | 'bad';
}

function Figure({ label, value, small, about, stage, to, tone }: FigureProps) {
  const shown = (
    <>
      {value}
      {small && <small className={classes.small}>{small}</small>}
    </>
  );
  return (
    <div className={classes.figure} title={about}>
      <dt className={classes.label}>{label}</dt>
      <dd className={classes.value} data-tone={tone}>
        {stage && (
          <Link className={classes.link} to="/jobs" search={{ stage }}>
            {shown}
          </Link>
        )}
        {to && (
          <Link className={classes.link} to={to}>
            {shown}
          </Link>
        )}
        {!stage && !to && shown}
      </dd>
    </div>
  );
}
