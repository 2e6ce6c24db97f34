import { Anchor, Code, Text, VisuallyHidden } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import type { Job, Run } from '../../../api/types';
import { labelOf, RUN_OUTCOME, toneOf } from '../../../api/vocabulary';
import { Ago } from '../../../ui/Ago';
import { SmallButton } from '../../../ui/Basics';
import { CommandLine } from '../../../ui/CommandLine';
import { failureTitle } from '../../../ui/events';
import { count, duration, millis, plural, usd } from '../../../ui/format';
import { AnchorLink } from '../../../ui/links';
import { ScrollBox } from '../../../ui/Panel';
import { useNow } from '../../../ui/useNow';
import { visible } from '../../../ui/visible';
import { Checks } from './Checks';
import classes from './Runs.module.css';
import { totals, webLink } from './runFacts';

const SHOWN = 6;

/// Every run in a column of its own, newest first, to compare them.
export function RunsPanel({ job, runs }: { job: Job; runs: readonly Run[] }) {
  const [all, setAll] = useState(false);
  const now = useNow(runs.some((run) => run.outcome === 'running'));
  const shown = all ? runs : runs.slice(0, SHOWN);
  const sum = totals(runs);
  const rows: [string, (run: Run) => ReactNode][] = [
    ['Outcome', (run) => <Outcome run={run} />],
    ['Factory', (run) => visible(run.factoryId)],
    ['Engine', (run) => visible(run.engine ?? '–')],
    ['Model', (run) => visible(run.model ?? '–')],
    ['Claimed', (run) => <Ago at={run.assignedAt} />],
    ['Started', (run) => <Ago at={run.startedAt} />],
    ['Ended', (run) => <Ago at={run.endedAt} />],
    ['Duration', (run) => lasted(run, now)],
    ['Cost', (run) => `${usd(run.report.costUsd)}${run.report.costAssumed ? ' (assumed)' : ''}`],
    ['Tokens', (run) => count(run.report.tokens)],
    ['Changes', (run) => <Changed run={run} />],
    ['Summary', (run) => visible(run.report.summary ?? '–')],
    ['Checks', (run) => <Checks checks={run.report.checks} />],
    ['Branch', (run) => (run.report.branch ? <Code>{visible(run.report.branch)}</Code> : '–')],
    [
      'Commit',
      (run) =>
        run.report.commit ? (
          <Code title={run.report.commit}>{visible(run.report.commit.slice(0, 12))}</Code>
        ) : (
          '–'
        ),
    ],
    ['Pull request', (run) => <PullRequest url={run.report.pullRequest} />],
    ['More', (run) => <Links job={job} run={run} />],
  ];
  return (
    <>
      <div className={classes.above}>
        <Text size="sm">
          {plural(runs.length, 'run')} · {usd(sum.usd)} · {plural(sum.tokens, 'token')}
        </Text>
        <CommandLine command={`giga job show ${job.id}`} />
      </div>
      <ScrollBox className={classes.scroll} label="Runs side by side">
        <table className={classes.runs}>
          <thead>
            <tr>
              <th scope="col">Run</th>
              {shown.map((run) => (
                <th key={run.leaseEpoch} scope="col">
                  {run.leaseEpoch}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, show]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {shown.map((run) => (
                  <td key={run.leaseEpoch}>{show(run)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
      {runs.length > shown.length && (
        <SmallButton mt="xs" onClick={() => setAll(true)}>
          Show all {runs.length} runs
        </SmallButton>
      )}
    </>
  );
}

function Outcome({ run }: { run: Run }) {
  return (
    <>
      <b className={classes.outcome} data-tone={toneOf(RUN_OUTCOME, run.outcome)}>
        {labelOf(RUN_OUTCOME, run.outcome)}
      </b>
      {run.failure && (
        <div className={classes.failure}>
          {failureTitle(run.failure.reason, run.failure.detail)}
          {run.failure.detail ? `: ${visible(run.failure.detail)}` : ''}
        </div>
      )}
    </>
  );
}

function Changed({ run: { report } }: { run: Run }) {
  if (report.filesChanged === null || report.filesChanged === undefined) return '–';
  return `${plural(report.filesChanged, 'file')}, +${count(report.linesAdded ?? 0)} −${count(report.linesRemoved ?? 0)}`;
}

function PullRequest({ url }: { url: string | null | undefined }) {
  if (!url) return '–';
  const link = webLink(url);
  return link ? (
    <Anchor size="sm" href={link} target="_blank" rel="noopener noreferrer">
      {visible(url)}
    </Anchor>
  ) : (
    visible(url)
  );
}

function Links({ job, run }: { job: Job; run: Run }) {
  const to = (tab: 'log' | 'diff') => ({ tab, epoch: run.leaseEpoch });
  return (
    <>
      <AnchorLink size="sm" to="/jobs/$id" params={{ id: job.id }} search={to('log')}>
        Log<VisuallyHidden> of run {run.leaseEpoch}</VisuallyHidden>
      </AnchorLink>{' '}
      ·{' '}
      <AnchorLink size="sm" to="/jobs/$id" params={{ id: job.id }} search={to('diff')}>
        Diff<VisuallyHidden> of run {run.leaseEpoch}</VisuallyHidden>
      </AnchorLink>
    </>
  );
}

function lasted(run: Run, now: number): string {
  const from = millis(run.startedAt ?? run.assignedAt);
  const to = run.outcome === 'running' ? now : millis(run.endedAt);
  return from === undefined || to === undefined ? '–' : duration(to - from);
}
