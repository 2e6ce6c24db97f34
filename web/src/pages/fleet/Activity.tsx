import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useMemo, useReducer, useState } from 'react';
import type { FeedEvent } from '../../api/types';
import { useFeedEvents } from '../../live/LiveProvider';
import { useActorName } from '../../session/useSession';
import { Ago } from '../../ui/Ago';
import { CommandLine } from '../../ui/CommandLine';
import { capitalized, eventTone } from '../../ui/events';
import { Panel } from '../../ui/Panel';
import { visible } from '../../ui/visible';
import classes from './Activity.module.css';
import { JobNames } from './jobNames';
import { jobNames, lastEvents, queuedQuery, runningQuery } from './queries';

const MOST = 15;

/// The latest events. Rows have one height and their places are kept, so nothing below moves.
export function Activity() {
  const [live, setLive] = useState<FeedEvent[]>([]);
  const before = useQuery({
    queryKey: ['activity'],
    queryFn: ({ signal }) => lastEvents(MOST, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  useFeedEvents((event) => setLive((known) => withEvent(known, event, MOST)));
  const events = useMemo(
    () => (before.data ?? []).reduce((known, event) => withEvent(known, event, MOST), live),
    [before.data, live],
  );
  const names = useNames(events);
  return (
    <Panel title="Recent activity" aside={<CommandLine command="giga events -f" />}>
      <ol className={classes.list} aria-label="Recent events, newest first">
        {events.length === 0 && (
          <li className={classes.none}>{before.isLoading ? '' : 'No recent activity'}</li>
        )}
        {events.map((event) => (
          <Row key={event.pos} event={event} name={event.jobId ? names.nameOf(event.jobId) : undefined} />
        ))}
      </ol>
    </Panel>
  );
}

/// Events carry the ids of jobs. The rest of this page knows most names; the others are fetched in batches.
function useNames(events: readonly FeedEvent[]): JobNames {
  const running = useQuery(runningQuery()).data?.jobs;
  const queued = useQuery(queuedQuery()).data?.jobs;
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const [cache] = useState(() => new JobNames(jobNames, redraw));
  // While rendering, since the names are shown at once; doing it twice changes nothing.
  useMemo(() => {
    for (const job of [...(running ?? []), ...(queued ?? [])]) cache.learn([[job.id, job.name]]);
    for (const event of events) {
      const name = (event.data as Record<string, unknown>).name;
      if (event.jobId && event.type === 'job.submitted' && typeof name === 'string')
        cache.learn([[event.jobId, name]]);
    }
  }, [cache, running, queued, events]);
  useEffect(() => {
    cache.open();
    return () => cache.close();
  }, [cache]);
  useEffect(() => cache.want(events.flatMap((event) => event.jobId ?? [])), [cache, events]);
  return cache;
}

function Row({ event, name }: { event: FeedEvent; name: string | undefined }) {
  const actorName = useActorName();
  return (
    <li className={classes.row} title={`${event.cause} (${actorName(event.actor)})`}>
      <span className={classes.when}>
        <Ago at={event.at} />
      </span>
      <span className={classes.what}>
        {event.jobId && (
          <Link to="/jobs/$id" params={{ id: event.jobId }} className={name ? undefined : classes.id}>
            {visible(name ?? `…${event.jobId.slice(-6)}`)}
          </Link>
        )}{' '}
        <span data-tone={eventTone(event)} className={classes.words}>
          {visible(event.jobId ? event.cause : capitalized(event.cause))}
        </span>
      </span>
    </li>
  );
}

/// Newest first, each once, no more than fit.
export function withEvent(events: readonly FeedEvent[], event: FeedEvent, most: number): FeedEvent[] {
  if (events.some((known) => known.pos === event.pos)) return [...events];
  return [event, ...events].sort((a, b) => b.pos - a.pos).slice(0, most);
}
