// The page for the second screen: how the fleet does, what needs somebody, and what every factory is at.

import { Group, Stack, Title } from '@mantine/core';
import { CommandLine } from '../../ui/CommandLine';
import { Alerts } from './Alerts';
import { Board } from './Board';
import { FactoryMap } from './FactoryMap';
import { Figures } from './Figures';
import classes from './Fleet.module.css';
import { Ticker } from './Ticker';

export function FleetPage() {
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Title order={1} size="h3">
          Fleet
        </Title>
        <CommandLine command="giga top" />
      </Group>
      <Figures />
      <div className={classes.columns}>
        <div className={classes.wide}>
          <Board />
          <FactoryMap />
        </div>
        <div className={classes.narrow}>
          <Alerts />
          <Ticker />
        </div>
      </div>
    </Stack>
  );
}
