import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useMemo, useReducer, useState } from 'react';
import type { FeedEvent } from '../../api/types';
import { useFeedEvents } from '../../live/LiveProvider';
import { Ago } from '../../ui/Ago';
import { CommandLine } from '../../ui/CommandLine';
import { Panel } from '../../ui/Panel';
import { visible } from '../../ui/visible';
import { NameBook } from './names';
import { jobNames, lastEvents, queuedQuery, runningQuery } from './queries';
import classes from './Ticker.module.css';
import { eventSubject, eventTone, eventWords, withEvent } from './words';

const MOST = 15;

/// The last things that happened. Rows have one height and their places are kept, so nothing below moves.
export function Ticker() {
  const [live, setLive] = useState<FeedEvent[]>([]);
  const before = useQuery({
    queryKey: ['ticker'],
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
    <Panel title="What happens" aside={<CommandLine command="giga events -f" />}>
      <ol className={classes.list} aria-label="The last events, newest first">
        {events.length === 0 && (
          <li className={classes.none}>{before.isLoading ? '' : 'Nothing happened lately.'}</li>
        )}
        {events.map((event) => (
          <Row key={event.pos} event={event} name={event.jobId ? names.nameOf(event.jobId) : undefined} />
        ))}
      </ol>
    </Panel>
  );
}

/// Events name jobs by their ids. What is on this page anyway knows most names; the rest is asked for, in turns.
function useNames(events: readonly FeedEvent[]): NameBook {
  const running = useQuery(runningQuery()).data?.jobs;
  const queued = useQuery(queuedQuery()).data?.jobs;
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const [book] = useState(() => new NameBook(jobNames, redraw));
  // Told while drawing, since what was told is drawn at once; telling twice changes nothing.
  useMemo(() => {
    for (const job of [...(running ?? []), ...(queued ?? [])]) book.learn([[job.id, job.name]]);
    for (const event of events) {
      const name = (event.data as Record<string, unknown>).name;
      if (event.jobId && event.type === 'job.submitted' && typeof name === 'string')
        book.learn([[event.jobId, name]]);
    }
  }, [book, running, queued, events]);
  useEffect(() => {
    book.open();
    return () => book.close();
  }, [book]);
  useEffect(() => book.want(events.flatMap((event) => event.jobId ?? [])), [book, events]);
  return book;
}

function Row({ event, name }: { event: FeedEvent; name: string | undefined }) {
  return (
    <li className={classes.row} title={`${event.cause} (${event.actor})`}>
      <span className={classes.when}>
        <Ago at={event.at} />
      </span>
      <span className={classes.what}>
        {event.jobId ? (
          <Link to="/jobs/$id" params={{ id: event.jobId }} className={name ? undefined : classes.id}>
            {visible(name ?? `…${event.jobId.slice(-6)}`)}
          </Link>
        ) : (
          <span className={classes.subject}>{eventSubject(event) ?? event.type.split('.')[0]}</span>
        )}{' '}
        <span data-tone={eventTone(event)} className={classes.words}>
          {eventWords(event)}
        </span>{' '}
        <span className={classes.cause}>{event.cause}</span>
      </span>
    </li>
  );
}
