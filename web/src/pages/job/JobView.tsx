import { NativeSelect, Stack, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type RefObject, useEffect, useRef } from 'react';
import { explainQuery, runsQuery } from '../../api/queries';
import type { Job, Run } from '../../api/types';
import { labelOf, RUN_OUTCOME } from '../../api/vocabulary';
import { JOB_TABS, type JobTab } from '../../app/search';
import { CommandLine } from '../../ui/CommandLine';
import { Panel } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import { DiffPanel } from './diff/DiffPanel';
import { ExplainPanel } from './ExplainPanel';
import { FilesPanel } from './files/FilesPanel';
import { GraphTab } from './GraphTab';
import { JobHeader } from './JobHeader';
import classes from './JobView.module.css';
import { LogView } from './log/LogView';
import { ManifestPanel } from './overview/ManifestPanel';
import { PromptPanel } from './overview/PromptPanel';
import { EarlierReviews } from './review/EarlierReviews';
import { ReviewPanel } from './review/ReviewPanel';
import { RunsPanel } from './runs/RunsPanel';
import { chosenRun } from './runs/runFacts';
import { StatusCard } from './status/StatusCard';
import { TalkPanel } from './talk/TalkPanel';
import { Timeline } from './timeline/Timeline';
import { type JobHistory, useHistory } from './timeline/useHistory';

const LABELS: Record<JobTab, string> = {
  overview: 'Overview',
  log: 'Log',
  diff: 'Diff',
  runs: 'Runs',
  files: 'Files',
  graph: 'Graph',
  explain: 'Explain',
};

/// One job, with everything that is known about it. The address says which part is shown.
export function JobView({ job }: { job: Job }) {
  const { tab = 'overview', epoch } = useSearch({ from: '/jobs/$id' });
  const navigate = useNavigate({ from: '/jobs/$id' });
  const runs = useQuery(runsQuery(job.id));
  const history = useHistory(job.id);
  const strip = useTabStrip(tab);
  const newestFirst = runs.data ? [...runs.data.runs].reverse() : [];
  const run = chosenRun(job, newestFirst, epoch);
  const choose = (next: number | undefined) =>
    void navigate({ search: (old) => ({ ...old, epoch: next }), replace: true, resetScroll: false });
  const withRun = (children: (run: Run) => React.ReactNode, none: string) => (
    <Loaded query={runs} what="runs">
      {() => (run ? children(run) : <Empty title="No run yet">{none}</Empty>)}
    </Loaded>
  );

  return (
    <Tabs
      value={tab}
      onChange={(next) => {
        const opened = JOB_TABS.find((known) => known === next);
        void navigate({ search: (old) => ({ ...old, tab: opened === 'overview' ? undefined : opened }) });
      }}
      keepMounted={false}
    >
      <div className={classes.head}>
        <JobHeader job={job} runs={newestFirst} events={history.history.events} brief={tab !== 'overview'} />
        <Tabs.List ref={strip} className={classes.tabs}>
          {JOB_TABS.map((name) => (
            <Tabs.Tab key={name} value={name} data-tab={name}>
              {LABELS[name]}
              {name === 'runs' && newestFirst.length > 1 ? ` ${newestFirst.length}` : ''}
            </Tabs.Tab>
          ))}
        </Tabs.List>
      </div>
      <Tabs.Panel value="overview" pt="md">
        <Overview job={job} runs={newestFirst} history={history} />
      </Tabs.Panel>
      <Tabs.Panel value="log" pt="md">
        {withRun(
          (shown) => (
            <>
              <RunPicker
                runs={newestFirst}
                run={shown}
                choose={choose}
                command={`giga job logs ${job.id} --epoch ${shown.leaseEpoch}`}
              />
              <LogView
                key={shown.leaseEpoch}
                jobId={job.id}
                epoch={shown.leaseEpoch}
                running={shown.outcome === 'running'}
              />
            </>
          ),
          'The log begins when a factory claims the job. The Explain tab says what it is waiting for.',
        )}
      </Tabs.Panel>
      <Tabs.Panel value="diff" pt="md">
        {withRun(
          (shown) => (
            <>
              <RunPicker runs={newestFirst} run={shown} choose={choose} command={`giga review ${job.id}`} />
              <DiffPanel job={job} run={shown} />
            </>
          ),
          'The changes of a run appear here when it has finished.',
        )}
      </Tabs.Panel>
      <Tabs.Panel value="runs" pt="md">
        {withRun(
          () => (
            <RunsPanel job={job} runs={newestFirst} />
          ),
          'Every run of the job appears here, side by side.',
        )}
      </Tabs.Panel>
      <Tabs.Panel value="files" pt="md">
        <FilesPanel job={job} />
      </Tabs.Panel>
      <Tabs.Panel value="graph" pt="md">
        <GraphTab job={job} />
      </Tabs.Panel>
      <Tabs.Panel value="explain" pt="md">
        <ExplainTab job={job} />
      </Tabs.Panel>
    </Tabs>
  );
}

function ExplainTab({ job }: { job: Job }) {
  const query = useQuery(explainQuery(job.id));
  return (
    <Panel title="Status">
      <Loaded query={query} what="explanation">
        {(explanation) => <ExplainPanel explanation={explanation} />}
      </Loaded>
    </Panel>
  );
}

interface RunPickerProps {
  runs: readonly Run[];
  run: Run;
  choose: (epoch: number | undefined) => void;
  command: string;
}

/// Which run is shown.
function RunPicker({ runs, run, choose, command }: RunPickerProps) {
  return (
    <div className={classes.picker}>
      <NativeSelect
        size="xs"
        aria-label="Run"
        value={String(run.leaseEpoch)}
        onChange={(event) => {
          const epoch = Number(event.currentTarget.value);
          choose(epoch === runs[0]?.leaseEpoch ? undefined : epoch);
        }}
        data={runs.map((one) => ({
          value: String(one.leaseEpoch),
          label: `Run ${one.leaseEpoch}: ${labelOf(RUN_OUTCOME, one.outcome)} on ${one.factoryId}`,
        }))}
      />
      <CommandLine command={command} />
    </div>
  );
}

interface OverviewProps {
  job: Job;
  /// The newest first.
  runs: readonly Run[];
  history: JobHistory;
}

function Overview({ job, runs, history }: OverviewProps) {
  return (
    <Stack gap="md">
      <StatusCard job={job} runs={runs} events={history.history.events} />
      <TalkPanel job={job} />
      {job.stage === 'review' && <ReviewPanel job={job} />}
      <div className={classes.columns}>
        <Stack gap="md" miw={0}>
          <PromptPanel job={job} />
          {job.stage !== 'review' && <EarlierReviews job={job} />}
          <ManifestPanel job={job} />
        </Stack>
        <Panel title="Timeline">
          <Timeline history={history} />
          <CommandLine command={`giga job events ${job.id} -f`} />
        </Panel>
      </div>
    </Stack>
  );
}

/// The width of the fade of the strip: a tab must not be under it.
const FADE = 32;

/// Keeps the selected tab of a scrolling strip in sight, and marks the sides on which there are more. Scrolls only the strip,
/// never the page.
function useTabStrip(chosen: string): RefObject<HTMLDivElement | null> {
  const strip = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const list = strip.current;
    if (!list) return;
    const mark = () => {
      list.toggleAttribute('data-more-before', list.scrollLeft > 1);
      list.toggleAttribute('data-more-after', list.scrollLeft + list.clientWidth < list.scrollWidth - 1);
    };
    mark();
    list.addEventListener('scroll', mark, { passive: true });
    const resized = new ResizeObserver(mark);
    resized.observe(list);
    return () => {
      list.removeEventListener('scroll', mark);
      resized.disconnect();
    };
  }, []);
  useEffect(() => {
    const list = strip.current;
    const tab = list?.querySelector<HTMLElement>(`[role='tab'][data-tab='${CSS.escape(chosen)}']`);
    if (!list || !tab) return;
    const [around, own] = [list.getBoundingClientRect(), tab.getBoundingClientRect()];
    const before = around.left + FADE - own.left;
    const after = own.right - (around.right - FADE);
    if (before > 0) list.scrollLeft -= before;
    else if (after > 0) list.scrollLeft += after;
  }, [chosen]);
  return strip;
}
