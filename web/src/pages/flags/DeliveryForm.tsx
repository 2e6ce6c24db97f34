import { Button, Group, NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { factoriesQuery } from '../../api/queries';
import { DELIVERY, wordsOf } from '../../api/vocabulary';
import { useMay } from '../../session/useSession';
import { Hint } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { Panel } from '../../ui/Panel';
import { deliveryAbout, flagCommand } from './takes';
import { useSetFlag } from './useSetFlag';

/// A delivery mode for one factory, to try it before the whole fleet uses it.
export function DeliveryForm() {
  const may = useMay('admin');
  const factories = useQuery(factoriesQuery()).data?.factories ?? [];
  const { set, busy } = useSetFlag();
  const [chosen, setFactory] = useState('');
  const [mode, setMode] = useState('shadow');
  const factory = chosen || factories[0]?.id;
  if (!may || !factory) return null;
  const name = `delivery.${factory}`;
  const save = (event: FormEvent) => {
    event.preventDefault();
    void set(name, mode, mode, undefined);
  };
  return (
    <Panel title="Delivery mode of one factory">
      <form onSubmit={save}>
        <Group align="flex-end" gap="xs">
          <NativeSelect
            size="xs"
            label="Factory"
            data={factories.map(({ id }) => id)}
            value={factory}
            onChange={(event) => setFactory(event.currentTarget.value)}
          />
          <NativeSelect
            size="xs"
            label="Delivery mode"
            data={wordsOf(DELIVERY)}
            value={mode}
            onChange={(event) => setMode(event.currentTarget.value)}
          />
          <Button type="submit" size="xs" variant="default" loading={busy}>
            Set…
          </Button>
          <CommandLine command={flagCommand(name, mode)} />
        </Group>
        <Hint size="xs" mt="xs">
          {deliveryAbout(mode)}
        </Hint>
      </form>
    </Panel>
  );
}
