// The page for the second screen: how the fleet does, what needs somebody, and what every factory is at.

import { Stack } from '@mantine/core';
import { PageHead } from '../../ui/Panel';
import { Alerts } from './Alerts';
import { Board } from './Board';
import { FactoryMap } from './FactoryMap';
import { Figures } from './Figures';
import classes from './Fleet.module.css';
import { Ticker } from './Ticker';

export function FleetPage() {
  return (
    <Stack gap="md">
      <PageHead title="Fleet" command="giga top" />
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
