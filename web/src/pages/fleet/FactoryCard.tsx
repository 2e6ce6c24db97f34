import { UnstyledButton } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { memo, useState } from 'react';
import type { Factory, Job } from '../../api/types';
import { ACCOUNT_STATE } from '../../api/vocabulary';
import { Ago } from '../../ui/Ago';
import { CommandLine } from '../../ui/CommandLine';
import { duration, millis, plural } from '../../ui/format';
import { useNow } from '../../ui/useNow';
import { visible } from '../../ui/visible';
import classes from './FactoryCard.module.css';
import { FactoryMenu } from './FactoryMenu';
import {
  capabilitiesInOrder,
  FACTORY_STATUS,
  type FactoryStatus,
  isolation,
  seats,
  startCommand,
  statusOf,
} from './factories';

/// Rows reserved for jobs, so that cards do not grow and shrink with every claim.
const ROWS = 4;
const CAPABILITIES = 4;

interface CardProps {
  factory: Factory;
  running: Job[];
  offered: number;
  /// The pool that it belongs to.
  pool?: string;
}

/// Rendered again only when this factory changed: there may be hundreds.
export const FactoryCard = memo(function FactoryCard({ factory, running, offered, pool }: CardProps) {
  const status = statusOf(factory);
  return (
    <article className={classes.card} aria-label={`Factory ${factory.id}`}>
      <header className={classes.head}>
        <StatusMark status={status} />
        <h3 className={classes.name}>{factory.id}</h3>
        {pool && (
          <Link
            to="/pools/$name"
            params={{ name: pool }}
            className={classes.pool}
            title={`Of the pool ${pool}`}
          >
            {pool}
          </Link>
        )}
        <span
          className={classes.status}
          data-tone={FACTORY_STATUS[status].tone}
          title={FACTORY_STATUS[status].about}
        >
          {FACTORY_STATUS[status].label}
          {status !== 'draining' && factory.state === 'draining' && ', draining'}
        </span>
        <FactoryMenu factory={factory} />
      </header>
      {status === 'new' ? (
        <NeverStarted factory={factory} />
      ) : (
        <>
          <SeatCells limit={factory.seatLimit} used={factory.seatsUsed} offered={offered} />
          <Runs factory={factory} running={running} />
          <Capabilities capabilities={factory.capabilities} />
          <Accounts factory={factory} />
          <Facts factory={factory} />
        </>
      )}
    </article>
  );
});

/// Its seats and capabilities are unknown until it has been started once.
function NeverStarted({ factory }: { factory: Factory }) {
  return (
    <>
      <p className={classes.facts}>
        <span>
          enrolled <Ago at={factory.enrolledAt} />
        </span>
        {factory.products.length > 0 && <span>{factory.products.join(', ')} only</span>}
      </p>
      <p className={classes.facts}>Start it on its machine with the token that enrolling it printed:</p>
      <CommandLine command={startCommand(factory.id)} />
    </>
  );
}

function Runs({ factory, running }: { factory: Factory; running: Job[] }) {
  const known = new Set(running.map((job) => job.id));
  // Held, but not in the page of jobs that was fetched.
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
      aria-label={`Jobs on ${factory.id}`}
    >
      {all.length === 0 && (
        <li className={classes.idle}>{hidden > 0 ? `${plural(hidden, 'job')} of other products` : 'idle'}</li>
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
  if (sorted.length === 0) return <p className={classes.facts}>no capabilities reported yet</p>;
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

/// Only those that take no work: an open account is the ordinary case.
function Accounts({ factory }: { factory: Factory }) {
  const closed = (factory.accounts ?? []).filter((account) => account.state !== 'open');
  if (closed.length === 0) return null;
  return (
    <p className={classes.facts}>
      {closed.map(({ engine, account, state, until }) => (
        <span key={engine} className={classes.differs}>
          <Link to="/accounts/$account" params={{ account }} className={classes.job}>
            {engine} {ACCOUNT_STATE[state].label}
          </Link>
          {until && (
            <>
              {', opens '}
              <Ago at={until} />
            </>
          )}
        </span>
      ))}
    </p>
  );
}

function Facts({ factory }: { factory: Factory }) {
  const differs = factory.live && factory.delivery !== factory.actualDelivery;
  const repos = factory.repos.map((repo) => repo.name);
  return (
    <p className={classes.facts}>
      <span>
        last seen <Ago at={factory.lastSeenAt} />
      </span>
      <span className={differs ? classes.differs : undefined} title="Delivery mode">
        {differs ? `${factory.actualDelivery} instead of ${factory.delivery}` : factory.delivery}
      </span>
      {Number.isFinite(factory.load) && (
        <span title="The load that the factory reports">load {factory.load.toFixed(2)}</span>
      )}
      <span title={repos.slice(0, 30).join(', ') || undefined}>
        {plural(repos.length, 'repo')}
        {factory.canClone && ', can clone others'}
      </span>
      {factory.products.length > 0 && <span>{factory.products.join(', ')} only</span>}
      {isolation(factory.advertised) && (
        <span
          className={factory.advertised.includes('sandbox:none') ? classes.differs : undefined}
          title="How its jobs are isolated"
        >
          {isolation(factory.advertised)}
        </span>
      )}
    </p>
  );
}

/// More cells than this are too small to see.
const CELLS = 32;

/// Seats as cells: filled is used, hatched is offered, empty is free.
function SeatCells({ limit, used, offered }: { limit: number; used: number; offered: number }) {
  const taken = seats(limit, used, offered);
  const words = [
    `${used} of ${plural(limit, 'seat')} used`,
    taken.reserved > 0 && `${taken.reserved} offered`,
    taken.over > 0 && `${taken.over} over the limit`,
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

/// A shape for each status, so that colour is not all that tells them apart.
const SHAPES: Record<FactoryStatus, { path: string; hollow?: boolean }> = {
  online: { path: 'M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1z' },
  degraded: { path: 'M6 1l5.500 10h-11z' },
  draining: { path: 'M6 1.500a4.500 4.500 0 0 0 0 9z' },
  down: { path: 'M1 1h10v10H1z' },
  offline: { path: 'M2 2l8 8M10 2l-8 8', hollow: true },
  new: { path: 'M6 1.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9z', hollow: true },
};

export function StatusMark({ status }: { status: FactoryStatus }) {
  const { path, hollow } = SHAPES[status];
  return (
    <svg
      className={classes.mark}
      data-tone={FACTORY_STATUS[status].tone}
      width="10"
      height="10"
      viewBox="0 0 12 12"
      aria-hidden="true"
      focusable="false"
    >
      {status === 'draining' && (
        <circle cx="6" cy="6" r="4.500" fill="none" stroke="currentColor" strokeWidth="1.500" />
      )}
      <path
        d={path}
        fill={hollow ? 'none' : 'currentColor'}
        stroke={hollow ? 'currentColor' : 'none'}
        strokeWidth="2"
      />
    </svg>
  );
}
