import { Progress, SegmentedControl, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { lazy, Suspense, useState } from 'react';
import type { Dag } from '../api/types';
import { withRetry } from '../app/loadChunk';
import { CommandLine } from './CommandLine';
import { plural, usd } from './format';
import classes from './Graph.module.css';
import { GraphList } from './GraphList';
import { Note } from './Note';
import { stageWord } from './StageBadge';
import { Loading } from './States';

// Drawing is heavy and few pages draw.
const GraphCanvas = lazy(
  withRetry(() => import('./GraphCanvas').then((module) => ({ default: module.GraphCanvas }))),
);

/// More are read better in a list than seen from afar.
const MOST_DRAWN = 1_500;

/// A job and all below it: who waits for whom, and how far they are. Drawn, or as a list with the same facts.
export function JobGraph({ dag, selected }: { dag: Dag; selected?: string }) {
  const narrow = useMediaQuery('(max-width: 48em)', undefined, { getInitialValueInEffect: false });
  const [chosen, setChosen] = useState<'drawing' | 'list'>();
  const view = chosen ?? (narrow || dag.jobs.length > MOST_DRAWN ? 'list' : 'drawing');
  const alone = dag.jobs.length === 1 && dag.outside.length === 0;
  return (
    <div className={classes.graph}>
      <div className={classes.head}>
        <Whole dag={dag} />
        <SegmentedControl
          size="xs"
          aria-label="Show as"
          value={view}
          onChange={(value) => setChosen(value === 'list' ? 'list' : 'drawing')}
          data={[
            { value: 'drawing', label: 'Drawing' },
            { value: 'list', label: 'List' },
          ]}
        />
      </div>
      {dag.truncated && (
        <div className={classes.note}>
          <Note tone="warn" title="Not all of it is shown">
            There are more jobs below this one than are shown here; the first {plural(dag.jobs.length, 'job')}{' '}
            are. Open one of the composites to see what is below it.
          </Note>
        </div>
      )}
      {alone && (
        <Text size="sm" c="dimmed" mb="xs" component="div">
          It has no children and waits for nothing. Give it children with{' '}
          <CommandLine command={`giga job submit FILE --parent ${dag.rootId}`} />
        </Text>
      )}
      {view === 'list' ? (
        <GraphList dag={dag} selected={selected} />
      ) : (
        <Suspense fallback={<Loading what="drawing" />}>
          <GraphCanvas dag={dag} selected={selected} />
        </Suspense>
      )}
    </div>
  );
}

function Whole({ dag }: { dag: Dag }) {
  const { progress } = dag;
  const stages = Object.entries(progress.byStage).map(([stage, n]) => `${n} ${stageWord(stage)}`);
  return (
    <div className={classes.whole}>
      <Progress
        value={progress.percent}
        color={progress.percent === 100 ? 'green' : 'blue'}
        aria-label="Shipped of the whole"
      />
      <Text size="sm" className={classes.figures}>
        <b>{progress.percent} %</b> · {progress.shipped} of {plural(progress.total, 'job')} shipped ·{' '}
        {usd(progress.spentUsd)} spent
        {stages.length > 0 && <span className={classes.quiet}> · {stages.join(', ')}</span>}
      </Text>
    </div>
  );
}
