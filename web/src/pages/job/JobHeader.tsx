import { Code, Text, Title } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { explainNowQuery, jobQuery, keys } from '../../api/queries';
import type { FeedEvent, Job, Run } from '../../api/types';
import { isFinal, JOB_KIND, labelOf, PRIORITY } from '../../api/vocabulary';
import { useActorName, useMay } from '../../session/useSession';
import { CodeText } from '../../ui/CodeText';
import { CopyIcon } from '../../ui/CommandLine';
import { ActionButton } from '../../ui/Confirm';
import { AnchorLink, ButtonLink } from '../../ui/links';
import { Fact } from '../../ui/Panel';
import { StageBadge } from '../../ui/StageBadge';
import { useNow } from '../../ui/useNow';
import { visible } from '../../ui/visible';
import { act, actionCommand, type JobAction, jobActions } from '../jobs/actions';
import { reposOf } from '../jobs/rows';
import classes from './JobView.module.css';
import { jobStatus } from './status/status';

interface JobHeaderProps {
  job: Job;
  runs: readonly Run[];
  events: readonly FeedEvent[];
  /// Adds the status in one line, for tabs that do not show it at length.
  brief: boolean;
}

/// The job, its stage and what can be done about it.
export function JobHeader({ job, runs, events, brief }: JobHeaderProps) {
  const maySubmit = useMay('submitter');
  return (
    <>
      <div className={classes.title}>
        <Title order={1} size="h3" className={classes.name}>
          {visible(job.name)}
        </Title>
        <StageBadge stage={job.stage} needsInput={job.needsInput} />
        <div className={classes.actions}>
          {jobActions(job).map((action) => (
            <Action key={action.name} job={job} action={action} />
          ))}
          {maySubmit && (
            <ButtonLink size="xs" variant="default" to="/new" search={{ from: job.id }}>
              New job from this
            </ButtonLink>
          )}
        </div>
      </div>
      <dl className={classes.facts}>
        <Fact name="Priority">{labelOf(PRIORITY, job.priority)}</Fact>
        <Fact name="Product">
          <AnchorLink size="xs" to="/jobs" search={{ product: job.productId }}>
            {job.productId}
          </AnchorLink>
        </Fact>
        {job.repo && (
          <Fact name={job.repos?.length ? 'Repositories' : 'Repository'}>
            <AnchorLink size="xs" to="/jobs" search={{ repo: job.repo }}>
              {reposOf(job)}
            </AnchorLink>
          </Fact>
        )}
        {job.attempts > 0 && <Fact name="Failed attempts">{job.attempts}</Fact>}
        {job.kind !== 'agent' && <Fact name="Kind">{labelOf(JOB_KIND, job.kind)}</Fact>}
        <Fact name="ID">
          <Code>{job.id}</Code>
          <CopyIcon value={job.id} label="Copy the ID" size="xs" />
        </Fact>
        {job.parentId && <Parent id={job.parentId} />}
      </dl>
      {brief && <Brief job={job} runs={runs} events={events} />}
    </>
  );
}

function Parent({ id }: { id: string }) {
  const { data } = useQuery(jobQuery(id));
  return (
    <Fact name="Parent">
      <AnchorLink size="xs" to="/jobs/$id" params={{ id }} search={{}}>
        {visible(data?.name ?? id)}
      </AnchorLink>
    </Fact>
  );
}

function Action({ job, action }: { job: Job; action: JobAction }) {
  const client = useQueryClient();
  return (
    <ActionButton
      label={action.label}
      role={action.role}
      color={action.danger ? 'red' : undefined}
      variant={action.name === 'ship' ? 'filled' : 'default'}
      command={actionCommand(action.name, [job.id])}
      confirm={{
        title: `${action.label} ${visible(job.name)}?`,
        text: action.about,
        yes: action.yes ?? action.label,
        danger: action.danger,
      }}
      done={`${visible(job.name)} is ${action.done}`}
      run={async () => {
        try {
          await act(action.name, job);
        } finally {
          // Also when it was refused: then the job is no longer as it is shown.
          await client.invalidateQueries({ queryKey: keys.job(job.id) });
        }
      }}
    />
  );
}

function Brief({ job, runs, events }: Omit<JobHeaderProps, 'brief'>) {
  const now = useNow(!isFinal(job.stage));
  const actorName = useActorName();
  const isWaiting = job.stage === 'queued' || job.stage === 'blocked';
  const { data: explanation } = useQuery({ ...explainNowQuery(job), enabled: isWaiting });
  return (
    <Text className={classes.brief} lineClamp={1}>
      <CodeText text={visible(jobStatus({ job, runs, events, explanation, now, actorName }).title)} />
    </Text>
  );
}
