// The switch that stops a product. Pausing asks first, and whether to stop what runs.

import { Button, Checkbox, Group, Modal, Stack, Text, Textarea, Tooltip } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { keys } from '../../api/queries';
import type { Budget } from '../../api/types';
import { useMay } from '../../session/useSession';
import { Ago } from '../../ui/Ago';
import { CommandLine } from '../../ui/CommandLine';
import { ActionButton, tellDone, tellProblem } from '../../ui/Confirm';
import { plural, shellWord } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import classes from './Budgets.module.css';
import { pauseWords } from './spending';

type Switched = Pick<Budget, 'productId' | 'paused' | 'periods'>;

export function KillSwitch({ budget }: { budget: Switched }) {
  return budget.paused ? <ResumeButton budget={budget} /> : <PauseButton product={budget.productId} />;
}

function ResumeButton({ budget }: { budget: Switched }) {
  const product = budget.productId;
  const client = useQueryClient();
  const ceiling = budget.paused?.cause === 'ceiling';
  const resume = async () => {
    const after = await answer(
      api.POST('/api/fleet/budgets/{product}/resume', { params: { path: { product } } }),
    );
    await client.invalidateQueries({ queryKey: keys.budgets });
    const still = pauseWords(after);
    if (still) throw new Error(`${still.why}, so nothing is started ${still.until}`);
  };
  return (
    <ActionButton
      label="Resume"
      aria-label={`Resume ${product}`}
      role="operator"
      leftSection={<Icon name="play" size={12} />}
      run={resume}
      done={`Jobs of ${product} are started again`}
      command={`giga budget resume ${shellWord(product)}`}
      confirm={{
        title: `Resume ${product}?`,
        text: ceiling
          ? 'A ceiling is reached: it stays paused until that is raised, or until its period is over.'
          : 'Its queued jobs are started again as seats become free.',
        yes: 'Resume it',
      }}
    />
  );
}

function PauseButton({ product }: { product: string }) {
  const may = useMay('operator');
  const client = useQueryClient();
  const [opened, { open, close }] = useDisclosure();
  const [reason, setReason] = useState('');
  const [stopRunning, setStopRunning] = useState(false);
  const [busy, setBusy] = useState(false);
  const why = reason.trim();
  const command = `giga budget pause ${shellWord(product)}${why ? ` -m ${shellWord(why)}` : ''}${stopRunning ? ' --stop-running' : ''}`;
  const pause = async () => {
    setBusy(true);
    try {
      const { stopped } = await answer(
        api.POST('/api/fleet/budgets/{product}/pause', {
          params: { path: { product } },
          body: { reason: why || null, stopRunning },
        }),
      );
      const letGo = stopRunning ? `; ${plural(stopped, 'running job')} asked to let go` : '';
      tellDone(`${product} is paused${letGo}`);
      setReason('');
      setStopRunning(false);
      close();
      await client.invalidateQueries({ queryKey: keys.budgets });
    } catch (error) {
      tellProblem(`Pausing ${product} did not work`, error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Tooltip label={may ? command : 'needs the role operator'}>
        <Button
          size="xs"
          variant="default"
          leftSection={<Icon name="pause" size={12} />}
          disabled={!may}
          onClick={open}
          aria-label={`Pause… ${product}`}
        >
          Pause…
        </Button>
      </Tooltip>
      <Modal opened={opened} onClose={close} title={`Pause ${product}?`} centered>
        <Stack>
          <Text size="sm">Nothing more of this product is started until somebody resumes it.</Text>
          <Checkbox
            label="Also stop what runs"
            description="Running jobs save their work and let go of their seats. They go on from there when it is resumed."
            checked={stopRunning}
            onChange={(event) => setStopRunning(event.currentTarget.checked)}
          />
          <Textarea
            label="Why"
            description="Optional; it stands in the history of the product"
            value={reason}
            maxLength={4_000}
            autosize
            minRows={2}
            maxRows={6}
            onChange={(event) => setReason(event.currentTarget.value)}
            data-autofocus
          />
          <CommandLine command={command} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Leave it as it is
            </Button>
            <Button color="red" loading={busy} onClick={() => void pause()}>
              {stopRunning ? 'Pause it and stop what runs' : 'Pause it'}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

/// That nothing of the product is started, why, since when and until when.
export function PauseNote({ budget }: { budget: Budget }) {
  const words = pauseWords(budget);
  if (!words || !budget.paused) return null;
  return (
    <p className={classes.pauseNote}>
      <Icon name="pause" size={14} />
      <span>
        <b>{words.why}</b>, <Ago at={budget.paused.at} />. Nothing is started {words.until}.
      </span>
    </p>
  );
}
