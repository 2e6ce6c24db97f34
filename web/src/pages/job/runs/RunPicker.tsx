import { NativeSelect } from '@mantine/core';
import type { Run } from '../../../api/types';
import { CommandLine } from '../../../ui/CommandLine';
import classes from './Runs.module.css';

interface RunPickerProps {
  runs: readonly Run[];
  run: Run;
  choose: (epoch: number | undefined) => void;
  command: string;
}

/// Which attempt is shown.
export function RunPicker({ runs, run, choose, command }: RunPickerProps) {
  return (
    <div className={classes.picker}>
      <NativeSelect
        size="xs"
        aria-label="Run"
        value={String(run.leaseEpoch)}
        onChange={(event) => {
          const epoch = Number(event.currentTarget.value);
          choose(epoch === runs[0]?.leaseEpoch ? undefined : epoch);
        }}
        data={runs.map((one) => ({
          value: String(one.leaseEpoch),
          label: `Run ${one.leaseEpoch}: ${one.outcome} on ${one.factoryId}`,
        }))}
      />
      <CommandLine command={command} />
    </div>
  );
}
