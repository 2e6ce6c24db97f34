import { UnstyledButton } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { memo, useState } from 'react';
import type { Factory, Job } from '../../api/types';
import { Ago } from '../../ui/Ago';
import { CommandLine } from '../../ui/CommandLine';
import { duration, millis, plural } from '../../ui/format';
import { useNow } from '../../ui/useNow';
import { visible } from '../../ui/visible';
import { FactoryMenu } from './FactoryMenu';
import classes from './FactoryTile.module.css';
import {
  capabilitiesInOrder,
  STANDING_ABOUT,
  STANDING_WORDS,
  type Standing,
  seats,
  standing,
  startCommand,
} from './standing';

/// Rows that are kept free for jobs, so that tiles do not grow and shrink with every claim.
const ROWS = 4;
const CAPABILITIES = 4;

interface TileProps {
  factory: Factory;
  running: Job[];
  offered: number;
}

/// Drawn anew only when something about this one changed: there may be hundreds.
export const FactoryTile = memo(function FactoryTile({ factory, running, offered }: TileProps) {
  const stands = standing(factory);
  return (
    <article className={classes.tile} aria-label={`Factory ${factory.id}`}>
      <header className={classes.head}>
        <StandingMark standing={stands} />
        <h3 className={classes.name}>{factory.id}</h3>
        <span className={classes.standing} data-standing={stands} title={STANDING_ABOUT[stands]}>
          {STANDING_WORDS[stands]}
          {stands !== 'draining' && factory.state === 'draining' && ', draining'}
        </span>
        <FactoryMenu factory={factory} />
      </header>
      {stands === 'new' ? (
        <NeverSeen factory={factory} />
      ) : (
        <>
          <SeatCells limit={factory.seatLimit} used={factory.seatsUsed} offered={offered} />
          <Runs factory={factory} running={running} />
          <Capabilities capabilities={factory.capabilities} />
          <Facts factory={factory} />
        </>
      )}
    </article>
  );
});

/// Nothing is known of its seats and capabilities before it was started once.
function NeverSeen({ factory }: { factory: Factory }) {
  return (
    <>
      <p className={classes.facts}>
        <span>
          enrolled <Ago at={factory.enrolledAt} />
        </span>
        {factory.products.length > 0 && <span>only {factory.products.join(', ')}</span>}
      </p>
      <p className={classes.facts}>Start it on its machine, with the token that enrolling printed:</p>
      <CommandLine command={startCommand(factory.id)} />
    </>
  );
}

function Runs({ factory, running }: { factory: Factory; running: Job[] }) {
  const known = new Set(running.map((job) => job.id));
  // Held, but not in the page of jobs that was read.
  const unnamed = factory.running.filter((id) => !known.has(id));
  const rows = Math.min(ROWS, Math.max(1, factory.seatLimit));
  const all = [
    ...running.map((job) => ({ id: job.id, name: visible(job.name), since: job.lease?.grantedAt })),
    ...unnamed.map((id) => ({ id, name: undefined, since: undefined })),
  ];
  const fit = all.length > rows ? rows - 1 : rows;
  const hidden = factory.seatsUsed - factory.running.length;
  return (
    <ul
      className={classes.runs}
      style={{ minHeight: `${rows * 1.45}em` }}
      aria-label={`What ${factory.id} runs`}
    >
      {all.length === 0 && (
        <li className={classes.idle}>
          {hidden > 0 ? `${plural(hidden, 'job')} of other products` : 'runs nothing'}
        </li>
      )}
      {all.slice(0, fit).map((job) => (
        <li key={job.id} className={classes.run}>
          <Link to="/jobs/$id" params={{ id: job.id }} className={classes.job} title={job.name ?? job.id}>
            {job.name ?? `…${job.id.slice(-6)}`}
          </Link>
          {job.since && <Age since={job.since} />}
        </li>
      ))}
      {all.length > fit && (
        <li className={classes.run}>
          <Link to="/jobs" search={{ factory: factory.id }} className={classes.job}>
            and {all.length - fit} more
          </Link>
        </li>
      )}
    </ul>
  );
}

/// Without "ago": it runs still.
function Age({ since }: { since: string }) {
  const now = useNow();
  const then = millis(since);
  if (then === undefined) return null;
  return (
    <time dateTime={since} className={classes.age} title={`since ${new Date(then).toLocaleString()}`}>
      {duration(Math.floor(Math.max(0, now - then) / 1_000) * 1_000)}
    </time>
  );
}

function Capabilities({ capabilities }: { capabilities: string[] }) {
  const [all, setAll] = useState(false);
  const sorted = capabilitiesInOrder(capabilities);
  const shown = all ? sorted : sorted.slice(0, CAPABILITIES);
  const rest = sorted.length - CAPABILITIES;
  if (sorted.length === 0) return <p className={classes.facts}>no capabilities told yet</p>;
  return (
    <div className={classes.capabilities}>
      {shown.map((capability) => (
        <span key={capability} className={classes.capability}>
          {capability}
        </span>
      ))}
      {rest > 0 && (
        <UnstyledButton
          className={classes.more}
          onClick={() => setAll(!all)}
          aria-expanded={all}
          aria-label={all ? 'Show fewer capabilities' : `Show ${rest} more capabilities`}
        >
          {all ? 'fewer' : `+${rest}`}
        </UnstyledButton>
      )}
    </div>
  );
}

function Facts({ factory }: { factory: Factory }) {
  const differs = factory.live && factory.delivery !== factory.actualDelivery;
  const repos = factory.repos.map((repo) => repo.name);
  return (
    <p className={classes.facts}>
      <span>
        seen <Ago at={factory.lastSeenAt} />
      </span>
      <span className={differs ? classes.differs : undefined} title="How jobs reach it">
        {differs ? `meant to ${factory.delivery}, does ${factory.actualDelivery}` : factory.delivery}
      </span>
      {Number.isFinite(factory.load) && (
        <span title="What it says of its own load">load {factory.load.toFixed(2)}</span>
      )}
      <span title={repos.slice(0, 30).join(', ') || undefined}>
        {plural(repos.length, 'repo')}
        {factory.canClone && ', clones others'}
      </span>
      {factory.products.length > 0 && <span>only {factory.products.join(', ')}</span>}
    </p>
  );
}

/// More cells than this cannot be told apart.
const CELLS = 32;

/// Seats as cells: filled ones are used, hatched ones offered, empty ones free.
export function SeatCells({ limit, used, offered }: { limit: number; used: number; offered: number }) {
  const taken = seats(limit, used, offered);
  const words = [
    `${used} of ${plural(limit, 'seat')} used`,
    taken.reserved > 0 && `${taken.reserved} offered`,
    taken.over > 0 && `${taken.over} too many`,
  ].filter(Boolean);
  // Larger factories are drawn in proportion.
  const scale = limit > CELLS ? CELLS / limit : 1;
  const cells = (n: number, least = 0) => Math.max(least, Math.round(n * scale));
  const usedCells = Math.min(CELLS, cells(taken.used, taken.used > 0 ? 1 : 0));
  const reservedCells = Math.min(CELLS - usedCells, cells(taken.reserved, taken.reserved > 0 ? 1 : 0));
  const freeCells = Math.max(0, cells(limit) - usedCells - reservedCells);
  const drawn = [
    ...Array<string>(usedCells).fill('used'),
    ...Array<string>(reservedCells).fill('reserved'),
    ...Array<string>(freeCells).fill('free'),
  ];
  return (
    <div className={classes.seats}>
      <span className={classes.cells} aria-hidden>
        {drawn.map((kind, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a cell is its place
          <span key={place} className={classes.cell} data-kind={kind} />
        ))}
      </span>
      <span className={classes.words}>{words.join(', ')}</span>
    </div>
  );
}

/// A shape for each state, so that colour is not all that tells them apart.
const SHAPES: Record<Standing, string> = {
  live: 'M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1z',
  degraded: 'M6 1l5.500 10h-11z',
  draining: 'M6 1.500a4.500 4.500 0 0 0 0 9z',
  down: 'M1 1h10v10H1z',
  stale: 'M2 2l8 8M10 2l-8 8',
  new: 'M6 1.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9z',
};
const HOLLOW: Standing[] = ['stale', 'new'];

export function StandingMark({ standing }: { standing: Standing }) {
  const hollow = HOLLOW.includes(standing);
  return (
    <svg
      className={classes.mark}
      data-standing={standing}
      width="10"
      height="10"
      viewBox="0 0 12 12"
      aria-hidden="true"
      focusable="false"
    >
      {standing === 'draining' && (
        <circle cx="6" cy="6" r="4.500" fill="none" stroke="currentColor" strokeWidth="1.500" />
      )}
      <path
        d={SHAPES[standing]}
        fill={hollow ? 'none' : 'currentColor'}
        stroke={hollow ? 'currentColor' : 'none'}
        strokeWidth="2"
      />
    </svg>
  );
}
