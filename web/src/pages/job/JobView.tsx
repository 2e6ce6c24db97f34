import { Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { explainQuery, runsQuery } from '../../api/queries';
import type { Job, Run } from '../../api/types';
import { Panel } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import { chosenRun } from './chosenRun';
import { DiffPanel } from './diff/DiffPanel';
import { ExplainPanel } from './ExplainPanel';
import { FilesPanel } from './files/FilesPanel';
import { GraphTab } from './GraphTab';
import { JobHeader } from './JobHeader';
import classes from './JobView.module.css';
import { LogView } from './log/LogView';
import { Overview } from './overview/Overview';
import { RunPicker } from './runs/RunPicker';
import { RunsPanel } from './runs/RunsPanel';
import { JOB_TABS, type JobTab } from './search';
import { useHistory } from './timeline/useHistory';
import { useTabStrip } from './useTabStrip';

const LABELS: Record<JobTab, string> = {
  overview: 'Overview',
  log: 'Log',
  diff: 'Diff',
  runs: 'Runs',
  files: 'Files',
  graph: 'Graph',
  explain: 'Explain',
};

/// One job, with everything that is known about it. Which part is shown stands in the address.
export function JobView({ job }: { job: Job }) {
  const { tab = 'overview', epoch } = useSearch({ from: '/jobs/$id' });
  const navigate = useNavigate({ from: '/jobs/$id' });
  const runs = useQuery(runsQuery(job.id));
  const told = useHistory(job.id);
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
        <JobHeader job={job} runs={newestFirst} events={told.history.events} brief={tab !== 'overview'} />
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
        <Overview job={job} runs={newestFirst} told={told} />
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
          'The log begins when a factory takes the job. The tab Explain says what it waits for.',
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
          'The changes of a run appear here when it has handed its work over.',
        )}
      </Tabs.Panel>
      <Tabs.Panel value="runs" pt="md">
        {withRun(
          () => (
            <RunsPanel job={job} runs={newestFirst} />
          ),
          'Every attempt at the job appears here, side by side.',
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
    <Panel title="Why it is where it is">
      <Loaded query={query} what="explanation">
        {(explanation) => <ExplainPanel explanation={explanation} />}
      </Loaded>
    </Panel>
  );
}
