// All factories, in an order that does not change: as cards, or compact where there are many. A compact one opens its card.

import { Group, Modal, NativeSelect, UnstyledButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useLocation, useNavigate } from '@tanstack/react-router';
import { memo, useDeferredValue, useEffect, useMemo, useState } from 'react';
import { factoriesQuery, poolsQuery } from '../../api/queries';
import type { Factory, Job } from '../../api/types';
import { useRowKeys } from '../../app/keys';
import { useFeedEvents } from '../../live/LiveProvider';
import { Choice, SmallButton } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { FilterInput } from '../../ui/FilterInput';
import { plural } from '../../ui/format';
import { Panel } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import { poolByFactory } from '../pools/pools';
import { FactoryCard, StatusMark } from './FactoryCard';
import classes from './FactoryMap.module.css';
import {
  afterEvent,
  byHolder,
  FACTORY_STATUS,
  type FactoryFilter,
  inOrder,
  matches,
  type Offers,
  offeredTo,
  offersOf,
  seats,
  startCommand,
  statusOf,
} from './factories';
import { PruneButton } from './PruneButton';
import { queuedQuery, runningQuery } from './queries';

/// More cards than this are too many to look at.
const MOST_CARDS = 40;
type Layout = 'cards' | 'compact';

export function FactoryMap() {
  const factories = useQuery(factoriesQuery());
  return (
    <Panel title="Factories" aside={<Summary factories={factories.data?.factories} />}>
      <Loaded query={factories} what="factories">
        {(data) => (data.factories.length === 0 ? <NoFactories /> : <Factories factories={data.factories} />)}
      </Loaded>
    </Panel>
  );
}

function Summary({ factories }: { factories: Factory[] | undefined }) {
  if (!factories || factories.length === 0) return null;
  const counts = new Map<string, number>();
  for (const factory of factories) {
    const word = FACTORY_STATUS[statusOf(factory)].label;
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return (
    <span className={classes.summary}>{[...counts].map(([word, n]) => `${n} ${word}`).join(' · ')}</span>
  );
}

function NoFactories() {
  return (
    <Empty title="No factories yet">
      <p>Jobs run once a factory joins. To start a coordinator with a factory on this machine:</p>
      <CommandLine command="giga up --repos ~/code" />
      <p>To add another machine, enroll it here, then start it there with the token that this prints:</p>
      <CommandLine command="giga factory enroll mac-1 > mac-1.token" />
      <br />
      <CommandLine command={`${startCommand('mac-1')} --repos ~/code`} />
    </Empty>
  );
}

/// What is offered to whom, from the queue and the events since.
function useOffers(): Map<string, number> {
  const { data, dataUpdatedAt } = useQuery(queuedQuery());
  const [offers, setOffers] = useState<Offers>(new Map());
  // biome-ignore lint/correctness/useExhaustiveDependencies: a fetch that found the same still replaces what was guessed
  useEffect(() => setOffers(offersOf(data?.jobs ?? [])), [data, dataUpdatedAt]);
  useFeedEvents((event) => setOffers((known) => afterEvent(known, event)));
  return useMemo(() => offeredTo(offers), [offers]);
}

const EVERYTHING: FactoryFilter = { text: '', status: 'any' };

function Factories({ factories }: { factories: Factory[] }) {
  useRowKeys();
  const [filter, setFilter] = useState(EVERYTHING);
  const [chosen, setLayout] = useState<Layout>();
  const [open, setOpen] = useState<string>();
  const running = useQuery(runningQuery()).data?.jobs;
  const offers = useOffers();
  const pools = useQuery(poolsQuery()).data?.pools;
  const poolOf = useMemo(() => poolByFactory(pools ?? []), [pools]);
  const held = useMemo(() => byHolder(running ?? []), [running]);
  const sorted = useMemo(() => inOrder(factories), [factories]);
  // Typing stays quick, however many cards it filters.
  const applied = useDeferredValue(filter);
  const shown = sorted.filter((factory) => matches(factory, applied, held.get(factory.id)));
  const layout = chosen ?? (factories.length > MOST_CARDS ? 'compact' : 'cards');
  const opened = factories.find((factory) => factory.id === open);
  const scrollTo = useScrollTo();
  useCardInAddress(sorted, (factory) => {
    // A filter that hides it would make the link do nothing.
    if (!matches(factory, filter, held.get(factory.id))) setFilter(EVERYTHING);
    if (layout === 'compact') setOpen(factory.id);
    else scrollTo(`factory-${factory.id}`);
  });
  const card = (factory: Factory) => (
    <FactoryCard
      factory={factory}
      running={held.get(factory.id) ?? NOTHING}
      offered={offers.get(factory.id) ?? 0}
      pool={poolOf.get(factory.id)}
    />
  );
  return (
    <>
      <Group mb="sm" gap="xs" align="flex-end">
        <FilterInput
          label="Filter factories by name, capability, repository or job"
          placeholder="Name, capability, repo, job"
          value={filter.text}
          onType={(text) => setFilter({ ...filter, text })}
          className={classes.filter}
        />
        <NativeSelect
          size="xs"
          aria-label="Status"
          value={filter.status}
          onChange={(event) =>
            setFilter({ ...filter, status: event.currentTarget.value as FactoryFilter['status'] })
          }
          data={[
            { value: 'any', label: 'any status' },
            { value: 'busy', label: 'busy' },
            { value: 'free', label: 'with free seats' },
            ...Object.entries(FACTORY_STATUS).map(([value, { label }]) => ({ value, label })),
          ]}
        />
        <Choice
          label="Layout"
          value={layout}
          words={{ cards: 'Cards', compact: 'Compact' }}
          onChange={setLayout}
        />
        <PruneButton anyOffline={factories.some((factory) => !factory.live)} />
      </Group>
      {shown.length === 0 && (
        <Empty title="No factories match">
          <SmallButton onClick={() => setFilter(EVERYTHING)}>
            Show all {plural(factories.length, 'factory', 'factories')}
          </SmallButton>
        </Empty>
      )}
      {layout === 'cards' ? (
        <ul
          className={classes.cards}
          data-many={shown.length > MOST_CARDS || undefined}
          aria-label="Factories"
        >
          {shown.map((factory) => (
            <li key={factory.id} id={`factory-${factory.id}`} className={classes.card}>
              {card(factory)}
            </li>
          ))}
        </ul>
      ) : (
        <ul className={classes.compact} aria-label="Factories">
          {shown.map((factory) => (
            <li key={factory.id}>
              <CompactFactory factory={factory} offered={offers.get(factory.id) ?? 0} onOpen={setOpen} />
            </li>
          ))}
        </ul>
      )}
      <Modal opened={opened !== undefined} onClose={() => setOpen(undefined)} title="Factory" centered>
        {opened && card(opened)}
      </Modal>
    </>
  );
}

const NOTHING: Job[] = [];

/// `#factory-NAME`, as alerts link to it: shows that card. The address is then as before, so that the same link works again.
function useCardInAddress(factories: Factory[], show: (factory: Factory) => void) {
  const { hash } = useLocation();
  const navigate = useNavigate();
  const asked = factories.find((factory) => hash === `factory-${factory.id}`);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only an address opens something
  useEffect(() => {
    if (!asked) return;
    show(asked);
    void navigate({ to: '/', hash: '', replace: true, resetScroll: false });
  }, [asked?.id]);
}

/// Scrolls to an element as soon as it is there: a filter that was just lifted takes a moment.
function useScrollTo(): (id: string) => void {
  const [goal, setGoal] = useState<string>();
  useEffect(() => {
    const element = goal && document.getElementById(goal);
    if (!element) return;
    element.scrollIntoView({ block: 'center' });
    setGoal(undefined);
  });
  return setGoal;
}

/// A factory among hundreds: its status and how full it is. A click shows the rest.
const CompactFactory = memo(function CompactFactory({
  factory,
  offered,
  onOpen,
}: {
  factory: Factory;
  offered: number;
  onOpen: (id: string) => void;
}) {
  const status = statusOf(factory);
  const { label, tone } = FACTORY_STATUS[status];
  const { used, reserved, over } = seats(factory.seatLimit, factory.seatsUsed, offered);
  const share = factory.seatLimit > 0 ? Math.min(1, (used + reserved + over) / factory.seatLimit) : 0;
  const seatWords = `${factory.seatsUsed}/${factory.seatLimit}`;
  return (
    <UnstyledButton
      className={classes.square}
      data-row
      data-tone={tone}
      onClick={() => onOpen(factory.id)}
      title={`${factory.id}: ${label}, ${seatWords} seats`}
      aria-label={`${factory.id}, ${label}, ${seatWords} seats used`}
    >
      <span className={classes.name}>{factory.id}</span>
      <span className={classes.line}>
        <StatusMark status={status} />
        <span>{seatWords}</span>
      </span>
      <span className={classes.fill} style={{ width: `${share * 100}%` }} aria-hidden />
    </UnstyledButton>
  );
});
