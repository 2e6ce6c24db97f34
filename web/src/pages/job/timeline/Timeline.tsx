import { Button, Group, Switch, Text } from '@mantine/core';
import { useState } from 'react';
import type { FeedEvent } from '../../../api/types';
import { Ago } from '../../../ui/Ago';
import { CodeText } from '../../../ui/CodeText';
import { count, plural } from '../../../ui/format';
import { stageWord } from '../../../ui/StageBadge';
import { Empty, Loading, ProblemAlert } from '../../../ui/States';
import { visible } from '../../../ui/visible';
import { sentence, tone } from './sentences';
import classes from './Timeline.module.css';
import type { Told } from './useHistory';

const STEP = 30;

/// Everything that happened to the job, as it happens.
export function Timeline({ told: { history, loaded, error, retry } }: { told: Told }) {
  const [newestFirst, setNewestFirst] = useState(true);
  const [limit, setLimit] = useState(STEP);
  const { events } = history;
  if (events.length === 0) {
    if (error !== undefined) return <ProblemAlert error={error} retry={retry} />;
    return loaded ? <Empty title="Nothing has happened yet" /> : <Loading what="history" />;
  }
  const shown = newestFirst ? events.slice(-limit).reverse() : events.slice(0, limit);
  const left = events.length - shown.length;
  return (
    <>
      <Group justify="space-between" mb="sm">
        <Text size="xs" c="dimmed">
          {plural(events.length, 'event')}
        </Text>
        <Switch
          size="xs"
          label="Newest first"
          checked={newestFirst}
          onChange={(event) => setNewestFirst(event.currentTarget.checked)}
        />
      </Group>
      {error !== undefined && <ProblemAlert error={error} retry={retry} />}
      <ol className={classes.list} reversed={newestFirst}>
        {shown.map((event) => (
          <OneEvent key={event.seq} event={event} />
        ))}
      </ol>
      {left > 0 && (
        <Button size="xs" variant="default" onClick={() => setLimit(limit + 10 * STEP)}>
          Show {count(Math.min(left, 10 * STEP))} more
        </Button>
      )}
    </>
  );
}

function OneEvent({ event }: { event: FeedEvent }) {
  const [open, setOpen] = useState(false);
  return (
    <li className={classes.event} data-tone={tone(event)}>
      <div>
        <CodeText text={visible(sentence(event))} />
      </div>
      <div className={classes.meta}>
        <Ago at={event.at} />
        <span>{visible(event.actor)}</span>
        <details onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
          <summary>details</summary>
        </details>
        {open && <pre className={classes.data}>{details(event)}</pre>}
      </div>
    </li>
  );
}

function details(event: FeedEvent): string {
  const stages = event.to
    ? `${event.from ? stageWord(event.from) : 'new'} → ${stageWord(event.to)}`
    : undefined;
  const lines = [
    `${event.type}, number ${event.seq ?? '–'} of this job`,
    event.at,
    stages,
    event.cause,
    Object.keys(event.data).length > 0 ? JSON.stringify(event.data, null, 2) : undefined,
  ];
  return visible(lines.filter((line) => line).join('\n'));
}
