import { Stack } from '@mantine/core';
import type { Job, Run } from '../../../api/types';
import { CommandLine } from '../../../ui/CommandLine';
import { Panel } from '../../../ui/Panel';
import { NowCard } from '../now/NowCard';
import { EarlierReviews } from '../review/EarlierReviews';
import { ReviewPanel } from '../review/ReviewPanel';
import { Timeline } from '../timeline/Timeline';
import type { Told } from '../timeline/useHistory';
import { ManifestPanel } from './ManifestPanel';
import classes from './Overview.module.css';
import { TaskPanel } from './TaskPanel';

interface OverviewProps {
  job: Job;
  /// The newest first.
  runs: readonly Run[];
  told: Told;
}

export function Overview({ job, runs, told }: OverviewProps) {
  return (
    <Stack gap="md">
      <NowCard job={job} runs={runs} events={told.history.events} />
      {job.stage === 'review' && <ReviewPanel job={job} />}
      <div className={classes.columns}>
        <Stack gap="md" miw={0}>
          <TaskPanel job={job} />
          {job.stage !== 'review' && <EarlierReviews job={job} />}
          <ManifestPanel job={job} />
        </Stack>
        <Panel title="Timeline">
          <Timeline told={told} />
          <CommandLine command={`giga job events ${job.id} -f`} />
        </Panel>
      </div>
    </Stack>
  );
}
