import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { budgetsQuery, metricsQuery } from '../../api/queries';
import type { FleetMetrics, Stage } from '../../api/types';
import { count, duration, percent, usd } from '../../ui/format';
import { ProblemAlert } from '../../ui/States';
import { useNow } from '../../ui/useNow';
import classes from './Figures.module.css';

function total(metrics: FleetMetrics | undefined, stages: readonly Stage[]): number | undefined {
  if (!metrics) return undefined;
  const of = (byStage: Record<string, number>) =>
    stages.reduce((sum, stage) => sum + (byStage[stage] ?? 0), 0);
  return metrics.products.reduce((sum, product) => sum + of(product.byStage), 0);
}

/// The fleet in one line of figures. Its height is the same with and without data.
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
    <dl className={classes.strip} aria-label="The fleet in figures">
      <StageFigure label="Queued" metrics={data} stages={['queued']} />
      <StageFigure label="Running" metrics={data} stages={['assigned', 'building']} tone="busy" />
      <StageFigure label="To review or ship" metrics={data} stages={['review', 'testing']} tone="warn" />
      <StageFigure label="Failed" metrics={data} stages={['failed']} tone="bad" />
      <StageFigure label="Dead letters" metrics={data} stages={['dead_letter']} tone="bad" />
      <Figure
        label="Longest wait"
        value={
          <span className={classes.long}>
            <OldestWait
              oldest={data?.oldestQueuedMs}
              asOf={metrics.dataUpdatedAt}
              known={data !== undefined}
            />
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
          factories ? `${count(factories.seatsUsed)} of ${count(factories.seats)} seats are used` : undefined
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

/// How many jobs stand there, and the way to them. None is nothing to draw the eye.
function StageFigure({ label, metrics, stages, tone }: StageFigureProps) {
  const n = total(metrics, stages);
  return <Figure label={label} stage={stages.join(',')} value={count(n)} tone={n ? tone : undefined} />;
}

/// Grows by itself between two looks.
function OldestWait({
  oldest,
  asOf,
  known,
}: {
  oldest: number | null | undefined;
  asOf: number;
  known: boolean;
}) {
  const waits = typeof oldest === 'number';
  const now = useNow(waits);
  if (!waits) return known ? 'none' : '–';
  const waited = oldest + Math.max(0, now - asOf);
  // To the second only while it is short: a figure that is read from afar.
  return duration(waited - (waited % (waited < 60_000 ? 1_000 : 60_000)));
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
