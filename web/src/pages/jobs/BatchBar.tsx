import { Alert, Button, Group, List, Paper, Text, Tooltip } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import type { Job } from '../../api/types';
import { type OperatorAction, STAGE, STAGES } from '../../api/vocabulary';
import { useMay } from '../../session/useSession';
import { SmallButton } from '../../ui/Basics';
import { notifyDone, notifyProblem, useConfirm } from '../../ui/Confirm';
import { count, plural } from '../../ui/format';
import { AnchorLink } from '../../ui/links';
import { visible } from '../../ui/visible';
import { ACTIONS, actionCommand, isLegal, JOB_ACTIONS } from './actions';
import { type Outcome, runBatch, undone } from './batch';
import classes from './JobsPage.module.css';

interface BatchBarProps {
  chosen: readonly Job[];
  clear(): void;
  finished(report: Report): void;
}

interface Running {
  action: OperatorAction;
  finished: number;
  of: number;
}

/// What can be done with the selected jobs.
export function BatchBar({ chosen, clear, finished }: BatchBarProps) {
  const ask = useConfirm();
  const mayAct = useMay('operator');
  const [running, setRunning] = useState<Running>();
  const stop = useRef<AbortController>(undefined);
  const isShown = useRef(false);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);

  const run = async (name: OperatorAction) => {
    const jobs = chosen.filter((job) => isLegal(name, job.stage));
    const action = ACTIONS[name];
    const yes = await ask({
      title: `${action.label} ${plural(jobs.length, 'job')}?`,
      text: (
        <Question
          about={jobs.length === 1 ? action.about : action.aboutMany}
          jobs={jobs}
          chosen={chosen.length}
        />
      ),
      yes: `${action.label} ${plural(jobs.length, 'job')}`,
      danger: action.danger,
      command: actionCommand(
        name,
        jobs.map((job) => job.id),
      ),
    });
    if (!yes) return;
    const abort = new AbortController();
    stop.current = abort;
    setRunning({ action: name, finished: 0, of: jobs.length });
    const outcome = await runBatch(name, jobs, {
      signal: abort.signal,
      progress: (now) => setRunning({ action: name, finished: now, of: jobs.length }),
    });
    setRunning(undefined);
    if (outcome.done.length > 0) notifyDone(`${plural(outcome.done.length, 'job')} ${action.done}`);
    finished({ action: name, outcome });
    // Whoever has left the page does not see the report.
    const problem = isShown.current ? undefined : undone(outcome);
    if (problem) notifyProblem(`${action.label}: ${problem.title}`, problem.why);
  };

  if (chosen.length === 0 && !running) return null;
  return (
    <Paper withBorder shadow="md" className={classes.bar} component="section" aria-label="Selected jobs">
      <Group gap="xs">
        {chosen.length > 0 && (
          <Text size="sm" fw={600} role="status">
            {count(chosen.length)} selected
          </Text>
        )}
        {running ? (
          <>
            <Text size="sm">
              {ACTIONS[running.action].label}: {count(running.finished)} of {count(running.of)} done
            </Text>
            <SmallButton onClick={() => stop.current?.abort()}>Stop</SmallButton>
          </>
        ) : (
          <>
            {JOB_ACTIONS.map((name) => {
              const legal = chosen.filter((job) => isLegal(name, job.stage)).length;
              const about = !mayAct
                ? 'requires the operator role'
                : legal === 0
                  ? `only in stage ${STAGES.filter((stage) => isLegal(name, stage))
                      .map((stage) => STAGE[stage].label)
                      .join(', ')}`
                  : undefined;
              return (
                <Tooltip key={name} label={about} disabled={about === undefined}>
                  <Button
                    size="xs"
                    variant="default"
                    data-disabled={about !== undefined || undefined}
                    aria-disabled={about !== undefined}
                    onClick={() => {
                      if (about === undefined) void run(name);
                    }}
                  >
                    {ACTIONS[name].label} {legal > 0 ? count(legal) : ''}
                  </Button>
                </Tooltip>
              );
            })}
            <Button size="xs" variant="subtle" onClick={clear}>
              Clear
            </Button>
          </>
        )}
      </Group>
    </Paper>
  );
}

/// This many names are listed.
const READ = 20;

function Question({ about, jobs, chosen }: { about: string; jobs: readonly Job[]; chosen: number }) {
  const others = chosen - jobs.length;
  return (
    <>
      <p className={classes.question}>{about}</p>
      <ul className={classes.names}>
        {jobs.slice(0, READ).map((job) => (
          <li key={job.id}>{visible(job.name)}</li>
        ))}
        {jobs.length > READ && <li>and {count(jobs.length - READ)} more</li>}
      </ul>
      {others > 0 && (
        <p className={classes.question}>
          {plural(others, 'other selected job')} will be skipped: not possible in{' '}
          {others === 1 ? 'its' : 'their'} current stage.
        </p>
      )}
    </>
  );
}

export interface Report {
  action: OperatorAction;
  outcome: Outcome;
}

/// What a batch could not do, job by job. The rows show what it did.
export function BatchReport({ report, close }: { report: Report; close(): void }) {
  const { done, failed, left } = report.outcome;
  const all = done.length + failed.length + left.length;
  return (
    <Alert
      color="red"
      mb="sm"
      role="alert"
      withCloseButton
      onClose={close}
      closeButtonLabel="Close this report"
      title={`${ACTIONS[report.action].label}: ${done.length} of ${plural(all, 'job')} done`}
    >
      <List size="sm">
        {failed.map(({ job, why }) => (
          <List.Item key={job.id}>
            <AnchorLink size="sm" to="/jobs/$id" params={{ id: job.id }}>
              {visible(job.name)}
            </AnchorLink>
            : {why}
          </List.Item>
        ))}
        {left.length > 0 && <List.Item>{plural(left.length, 'job')} skipped: stopped by you</List.Item>}
      </List>
    </Alert>
  );
}
