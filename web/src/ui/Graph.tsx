import { Progress, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { lazy, Suspense, useState } from 'react';
import type { Dag } from '../api/types';
import { labelOf, STAGE } from '../api/vocabulary';
import { withRetry } from '../app/loadChunk';
import { Choice } from './Basics';
import { CommandLine } from './CommandLine';
import { plural, usd } from './format';
import classes from './Graph.module.css';
import { GraphList } from './GraphList';
import { Note } from './Note';
import { Loading } from './States';

// Drawing is heavy, so it is loaded on demand.
const GraphCanvas = lazy(
  withRetry(() => import('./GraphCanvas').then((module) => ({ default: module.GraphCanvas }))),
);

/// More are easier to read in a list.
const MOST_DRAWN = 1_500;

/// A job and everything below it: dependencies and progress, drawn or as a list.
export function JobGraph({ dag, selected }: { dag: Dag; selected?: string }) {
  const narrow = useMediaQuery('(max-width: 48em)', undefined, { getInitialValueInEffect: false });
  const [chosen, setChosen] = useState<'drawing' | 'list'>();
  const view = chosen ?? (narrow || dag.jobs.length > MOST_DRAWN ? 'list' : 'drawing');
  const alone = dag.jobs.length === 1 && dag.outside.length === 0;
  return (
    <div>
      <div className={classes.head}>
        <Whole dag={dag} />
        <Choice
          label="Show as"
          value={view}
          words={{ drawing: 'Graph', list: 'List' }}
          onChange={setChosen}
        />
      </div>
      {dag.truncated && (
        <div className={classes.note}>
          <Note tone="warn" title="Only part of the graph is shown">
            Showing the first {plural(dag.jobs.length, 'job')}. Open one of the groups to see the jobs below
            it.
          </Note>
        </div>
      )}
      {alone && (
        <Text size="sm" c="dimmed" mb="xs" component="div">
          This job has no children and no dependencies. Add a child with{' '}
          <CommandLine command={`giga job submit FILE --parent ${dag.rootId}`} />
        </Text>
      )}
      {view === 'list' ? (
        <GraphList dag={dag} selected={selected} />
      ) : (
        <Suspense fallback={<Loading what="graph" />}>
          <GraphCanvas dag={dag} selected={selected} />
        </Suspense>
      )}
    </div>
  );
}

function Whole({ dag }: { dag: Dag }) {
  const { progress } = dag;
  const stages = Object.entries(progress.byStage).map(([stage, n]) => `${n} ${labelOf(STAGE, stage)}`);
  return (
    <div className={classes.whole}>
      <Progress
        value={progress.percent}
        color={progress.percent === 100 ? 'green' : 'blue'}
        aria-label="Share of jobs shipped"
      />
      <Text size="sm" className={classes.figures}>
        <b>{progress.percent} %</b> · {progress.shipped} of {plural(progress.total, 'job')} shipped ·{' '}
        {usd(progress.spentUsd)} spent
        {stages.length > 0 && <span className={classes.quiet}> · {stages.join(', ')}</span>}
      </Text>
    </div>
  );
}
