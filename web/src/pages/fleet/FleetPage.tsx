// The page for the second screen: figures, alerts, and what every factory is doing.

import { Stack } from '@mantine/core';
import { PageHead } from '../../ui/Panel';
import { Activity } from './Activity';
import { Alerts } from './Alerts';
import { Board } from './Board';
import { FactoryMap } from './FactoryMap';
import { Figures } from './Figures';
import classes from './Fleet.module.css';

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
          <Activity />
        </div>
      </div>
    </Stack>
  );
}
