import { Group, Switch } from '@mantine/core';
import { useState } from 'react';
import type { FeedEvent } from '../../../api/types';
import { labelOf, STAGE } from '../../../api/vocabulary';
import { useActorName } from '../../../session/useSession';
import { Ago } from '../../../ui/Ago';
import { Hint, SmallButton } from '../../../ui/Basics';
import { CodeText } from '../../../ui/CodeText';
import { eventSentence, eventTone } from '../../../ui/events';
import { count, plural } from '../../../ui/format';
import { Empty, Loading, ProblemAlert } from '../../../ui/States';
import { visible } from '../../../ui/visible';
import classes from './Timeline.module.css';
import type { JobHistory } from './useHistory';

const STEP = 30;

/// Everything that happened to the job, live.
export function Timeline({ history: { history, loaded, error, retry } }: { history: JobHistory }) {
  const [newestFirst, setNewestFirst] = useState(true);
  const [limit, setLimit] = useState(STEP);
  const { events } = history;
  if (events.length === 0) {
    if (error !== undefined) return <ProblemAlert error={error} retry={retry} />;
    return loaded ? <Empty title="No events yet" /> : <Loading what="history" />;
  }
  const shown = newestFirst ? events.slice(-limit).reverse() : events.slice(0, limit);
  const left = events.length - shown.length;
  return (
    <>
      <Group justify="space-between" mb="sm">
        <Hint size="xs">{plural(events.length, 'event')}</Hint>
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
        <SmallButton onClick={() => setLimit(limit + 10 * STEP)}>
          Show {count(Math.min(left, 10 * STEP))} more
        </SmallButton>
      )}
    </>
  );
}

function OneEvent({ event }: { event: FeedEvent }) {
  const actorName = useActorName();
  const [open, setOpen] = useState(false);
  return (
    <li className={classes.event} data-tone={eventTone(event)}>
      <div>
        <CodeText text={visible(eventSentence(event))} />
      </div>
      <div className={classes.meta}>
        <Ago at={event.at} />
        <span>{visible(actorName(event.actor))}</span>
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
    ? `${event.from ? labelOf(STAGE, event.from) : 'new'} → ${labelOf(STAGE, event.to)}`
    : undefined;
  const lines = [
    `${event.type}, event ${event.seq ?? '–'} of this job`,
    event.at,
    stages,
    event.cause,
    Object.keys(event.data).length > 0 ? JSON.stringify(event.data, null, 2) : undefined,
  ];
  return visible(lines.filter((line) => line).join('\n'));
}
