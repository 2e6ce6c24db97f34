// All factories, in an order that does not change. Few are tiles, many are squares that open their tile.

import { Button, Group, Modal, NativeSelect, SegmentedControl, UnstyledButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useLocation, useNavigate } from '@tanstack/react-router';
import { memo, useDeferredValue, useEffect, useMemo, useState } from 'react';
import { factoriesQuery } from '../../api/queries';
import type { Factory, Job } from '../../api/types';
import { useRowKeys } from '../../app/keys';
import { useFeedEvents } from '../../live/LiveProvider';
import { CommandLine } from '../../ui/CommandLine';
import { FilterInput } from '../../ui/FilterInput';
import { plural } from '../../ui/format';
import { Panel } from '../../ui/Panel';
import { Empty, Loaded } from '../../ui/States';
import classes from './FactoryMap.module.css';
import { FactoryTile, StandingMark } from './FactoryTile';
import { PruneButton } from './PruneButton';
import { queuedQuery, runningQuery } from './queries';
import {
  afterEvent,
  byHolder,
  inOrder,
  matches,
  type Offers,
  offeredTo,
  offersOf,
  STANDING_WORDS,
  seats,
  standing,
  startCommand,
  type TileFilter,
} from './standing';

/// Above this, tiles are too many to look at.
const TILES = 40;
type Shape = 'tiles' | 'squares';

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
    const word = STANDING_WORDS[standing(factory)];
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return (
    <span className={classes.summary}>{[...counts].map(([word, n]) => `${n} ${word}`).join(' · ')}</span>
  );
}

function NoFactories() {
  return (
    <Empty title="No factory has joined yet">
      <p>Nothing runs until one does. A coordinator with a factory on this machine:</p>
      <CommandLine command="giga up --repos ~/code" />
      <p>Another machine: admit it here, then start it there with the token that this prints.</p>
      <CommandLine command="giga factory enroll mac-1 > mac-1.token" />
      <br />
      <CommandLine command={`${startCommand('mac-1')} --repos ~/code`} />
    </Empty>
  );
}

/// What is offered to whom, from the queue and what the feed said since.
function useOffers(): Map<string, number> {
  const { data, dataUpdatedAt } = useQuery(queuedQuery());
  const [offers, setOffers] = useState<Offers>(new Map());
  // biome-ignore lint/correctness/useExhaustiveDependencies: a look that found the same still replaces what was guessed
  useEffect(() => setOffers(offersOf(data?.jobs ?? [])), [data, dataUpdatedAt]);
  useFeedEvents((event) => setOffers((known) => afterEvent(known, event)));
  return useMemo(() => offeredTo(offers), [offers]);
}

const EVERYTHING: TileFilter = { text: '', standing: 'any' };

function Factories({ factories }: { factories: Factory[] }) {
  useRowKeys();
  const [filter, setFilter] = useState(EVERYTHING);
  const [chosen, setShape] = useState<Shape>();
  const [open, setOpen] = useState<string>();
  const running = useQuery(runningQuery()).data?.jobs;
  const offers = useOffers();
  const held = useMemo(() => byHolder(running ?? []), [running]);
  const sorted = useMemo(() => inOrder(factories), [factories]);
  // Typing stays quick, however many tiles go by it.
  const applied = useDeferredValue(filter);
  const shown = sorted.filter((factory) => matches(factory, applied, held.get(factory.id)));
  const shape = chosen ?? (factories.length > TILES ? 'squares' : 'tiles');
  const opened = factories.find((factory) => factory.id === open);
  const scrollTo = useScrollTo();
  useTileOfAddress(sorted, (factory) => {
    // A filter that hides it would make the link do nothing.
    if (!matches(factory, filter, held.get(factory.id))) setFilter(EVERYTHING);
    if (shape === 'squares') setOpen(factory.id);
    else scrollTo(`factory-${factory.id}`);
  });
  const tile = (factory: Factory) => (
    <FactoryTile
      factory={factory}
      running={held.get(factory.id) ?? NOTHING}
      offered={offers.get(factory.id) ?? 0}
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
          aria-label="Only factories that are"
          value={filter.standing}
          onChange={(event) =>
            setFilter({ ...filter, standing: event.currentTarget.value as TileFilter['standing'] })
          }
          data={[
            { value: 'any', label: 'any state' },
            { value: 'busy', label: 'at work' },
            { value: 'free', label: 'with a free seat' },
            ...Object.entries(STANDING_WORDS).map(([value, label]) => ({ value, label })),
          ]}
        />
        <SegmentedControl
          size="xs"
          aria-label="How factories are drawn"
          value={shape}
          onChange={(value) => setShape(value as Shape)}
          data={[
            { value: 'tiles', label: 'Tiles' },
            { value: 'squares', label: 'Squares' },
          ]}
        />
        <PruneButton anySilent={factories.some((factory) => !factory.live)} />
      </Group>
      {shown.length === 0 && (
        <Empty title="No factory is like that">
          <Button size="xs" variant="default" onClick={() => setFilter(EVERYTHING)}>
            Show all {plural(factories.length, 'factory', 'factories')}
          </Button>
        </Empty>
      )}
      {shape === 'tiles' ? (
        <ul className={classes.tiles} data-many={shown.length > TILES || undefined} aria-label="Factories">
          {shown.map((factory) => (
            <li key={factory.id} id={`factory-${factory.id}`} className={classes.tile}>
              {tile(factory)}
            </li>
          ))}
        </ul>
      ) : (
        <ul className={classes.squares} aria-label="Factories">
          {shown.map((factory) => (
            <li key={factory.id}>
              <FactorySquare factory={factory} offered={offers.get(factory.id) ?? 0} onOpen={setOpen} />
            </li>
          ))}
        </ul>
      )}
      <Modal opened={opened !== undefined} onClose={() => setOpen(undefined)} title="Factory" centered>
        {opened && tile(opened)}
      </Modal>
    </>
  );
}

const NOTHING: Job[] = [];

/// `#factory-NAME`, as alerts link to it: shows that tile. The address is then as before, so that the same link works again.
function useTileOfAddress(factories: Factory[], show: (factory: Factory) => void) {
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

/// A factory among hundreds: how it stands and how full it is. A click tells the rest.
export const FactorySquare = memo(function FactorySquare({
  factory,
  offered,
  onOpen,
}: {
  factory: Factory;
  offered: number;
  onOpen: (id: string) => void;
}) {
  const stands = standing(factory);
  const { used, reserved, over } = seats(factory.seatLimit, factory.seatsUsed, offered);
  const share = factory.seatLimit > 0 ? Math.min(1, (used + reserved + over) / factory.seatLimit) : 0;
  const seatWords = `${factory.seatsUsed}/${factory.seatLimit}`;
  return (
    <UnstyledButton
      className={classes.square}
      data-row
      data-standing={stands}
      onClick={() => onOpen(factory.id)}
      title={`${factory.id}: ${STANDING_WORDS[stands]}, ${seatWords} seats`}
      aria-label={`${factory.id}, ${STANDING_WORDS[stands]}, ${seatWords} seats used`}
    >
      <span className={classes.name}>{factory.id}</span>
      <span className={classes.line}>
        <StandingMark standing={stands} />
        <span>{seatWords}</span>
      </span>
      <span className={classes.fill} style={{ width: `${share * 100}%` }} aria-hidden />
    </UnstyledButton>
  );
});
