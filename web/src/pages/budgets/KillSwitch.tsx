// The switch that pauses a product. Pausing asks first, and whether to stop running jobs too.

import { Button, Checkbox, Group, Modal, Stack, Text, Textarea, Tooltip } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { keys } from '../../api/queries';
import type { Budget } from '../../api/types';
import { useActorName, useMay } from '../../session/useSession';
import { Ago } from '../../ui/Ago';
import { CommandLine } from '../../ui/CommandLine';
import { ActionButton, notifyDone, notifyProblem } from '../../ui/Confirm';
import { plural, shellWord } from '../../ui/format';
import { Icon } from '../../ui/Icon';
import classes from './Budgets.module.css';
import { pauseWords } from './spending';

export function KillSwitch({ budget }: { budget: Budget }) {
  return budget.paused ? <ResumeButton budget={budget} /> : <PauseButton product={budget.productId} />;
}

function ResumeButton({ budget }: { budget: Budget }) {
  const product = budget.productId;
  const client = useQueryClient();
  const isLimit = budget.paused?.cause === 'ceiling';
  const resume = async () => {
    const after = await answer(
      api.POST('/api/fleet/budgets/{product}/resume', { params: { path: { product } } }),
    );
    await client.invalidateQueries({ queryKey: keys.budgets });
    const still = pauseWords(after);
    if (still) throw new Error(`${still.why}, so no new jobs start ${still.until}`);
  };
  return (
    <ActionButton
      label="Resume"
      aria-label={`Resume ${product}`}
      role="operator"
      leftSection={<Icon name="play" size={12} />}
      run={resume}
      done={`${product} was resumed`}
      command={`giga budget resume ${shellWord(product)}`}
      confirm={{
        title: `Resume ${product}?`,
        text: isLimit
          ? 'A limit is reached: the product stays paused until it is raised, or until its period ends.'
          : 'Its queued jobs start again as seats become free.',
        yes: 'Resume',
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
      const stopping = stopRunning ? `; stopping ${plural(stopped, 'running job')}` : '';
      notifyDone(`${product} was paused${stopping}`);
      setReason('');
      setStopRunning(false);
      close();
      await client.invalidateQueries({ queryKey: keys.budgets });
    } catch (error) {
      notifyProblem(`Could not pause ${product}`, error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Tooltip label={may ? command : 'requires the operator role'}>
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
          <Text size="sm">No new jobs of this product start until somebody resumes it.</Text>
          <Checkbox
            label="Also stop running jobs"
            description="They save a checkpoint and free their seats, and continue from there when the product is resumed."
            checked={stopRunning}
            onChange={(event) => setStopRunning(event.currentTarget.checked)}
          />
          <Textarea
            label="Reason"
            description="Optional; shown in the history of the product"
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
              Keep
            </Button>
            <Button color="red" loading={busy} onClick={() => void pause()}>
              {stopRunning ? 'Pause and stop running jobs' : 'Pause'}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

/// That the product is paused: why, since when and until when.
export function PauseNote({ budget }: { budget: Budget }) {
  const words = pauseWords(budget, useActorName());
  if (!words || !budget.paused) return null;
  return (
    <p className={classes.pauseNote}>
      <Icon name="pause" size={14} />
      <span>
        <b>{words.why}</b>, <Ago at={budget.paused.at} />. No new jobs start {words.until}.
      </span>
    </p>
  );
}
