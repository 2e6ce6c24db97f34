import { Checkbox, UnstyledButton } from '@mantine/core';
import { Ago } from '../../ui/Ago';
import { CommandLine } from '../../ui/CommandLine';
import { duration } from '../../ui/format';
import { Fact, ScrollBox } from '../../ui/Panel';
import { isMadeUp, type ListedJob } from './payload';
import classes from './TopicJobs.module.css';
import { topicCommand } from './TopicSwitch';

interface RowProps {
  job: ListedJob;
  open: boolean;
  onToggle: () => void;
  /// Undefined where there is nothing to choose for.
  chosen: boolean | undefined;
  onChoose: () => void;
}

export function TopicJobRow({ job, open, onToggle, chosen, onChoose }: RowProps) {
  return (
    <li className={classes.row}>
      <div className={classes.head}>
        {chosen !== undefined && (
          <Checkbox size="xs" checked={chosen} onChange={onChoose} aria-label={`Select ${job.id}`} />
        )}
        <UnstyledButton className={classes.open} onClick={onToggle} aria-expanded={open} data-row>
          <span className={classes.id} title={job.id}>
            …{job.id.slice(-8)}
          </span>
          <span className={classes.glimpse}>{job.glimpse}</span>
          {job.lastError && <span className={classes.error}>{job.lastError.slice(0, 160)}</span>}
          <span className={classes.when}>
            <When job={job} />
          </span>
        </UnstyledButton>
      </div>
      {open && <Details job={job} />}
    </li>
  );
}

function When({ job }: { job: ListedJob }) {
  switch (job.state) {
    case 'scheduled':
      return (
        <>
          due <Ago at={job.dueAt} />
        </>
      );
    case 'running':
      return <>on {job.workerId ?? 'a worker'}</>;
    case 'dead':
    case 'done':
      return (
        <>
          {job.state === 'dead' ? 'failed' : 'done'} <Ago at={job.endedAt} />
        </>
      );
    default:
      return (
        <>
          added <Ago at={job.createdAt} />
        </>
      );
  }
}

function Details({ job }: { job: ListedJob }) {
  const payload = job.shown;
  const topic = { name: job.topic, productId: job.productId };
  return (
    <div className={classes.details}>
      <dl className={classes.facts}>
        <Fact name="id">
          <code>{job.id}</code>
        </Fact>
        <Fact name="priority">{job.priority}</Fact>
        <Fact name="attempts">
          {job.attempts} of {job.retryMax + 1}, first backoff {duration(job.retryBackoffMs)}
        </Fact>
        <Fact name="created">
          <Ago at={job.createdAt} />
        </Fact>
        {job.workerId && <Fact name="worker">{job.workerId}</Fact>}
        {job.expiresAt && (
          <Fact name="lease ends">
            <Ago at={job.expiresAt} />
          </Fact>
        )}
        {job.idempotencyKey && !isMadeUp(job.idempotencyKey) && <Fact name="key">{job.idempotencyKey}</Fact>}
      </dl>
      {job.lastError && (
        <>
          <h3 className={classes.title}>Last error</h3>
          <Block label="Last error">{job.lastError}</Block>
        </>
      )}
      <h3 className={classes.title}>Payload{payload.kind === 'base64' && ' (binary, as base64)'}</h3>
      {payload.kind === 'none' ? (
        <p className={classes.none}>No payload</p>
      ) : (
        <Block label="Payload">{payload.text}</Block>
      )}
      <CommandLine command={topicCommand('jobs', topic, ` ${job.id}`)} />
    </div>
  );
}

function Block({ label, children }: { label: string; children: string }) {
  return (
    <ScrollBox className={classes.block} label={label}>
      {children}
    </ScrollBox>
  );
}
