import { Button, Group, Modal, NativeSelect, Stack, Text, Tooltip } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { keys, whoamiQuery } from '../../api/queries';
import { useMay } from '../../session/useSession';
import { SmallButton } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { notifyDone, notifyProblem } from '../../ui/Confirm';

const IDLE = [
  { value: '1h', label: 'an hour' },
  { value: '24h', label: 'a day' },
  { value: '7d', label: 'a week' },
];

/// Removes factories that have been offline for long. Shown while there are any.
export function PruneButton({ anyOffline }: { anyOffline: boolean }) {
  const operator = useMay('operator');
  const { data: me } = useQuery(whoamiQuery());
  const may = operator && me?.everyProduct === true;
  const client = useQueryClient();
  const [opened, { open, close }] = useDisclosure();
  const [idle, setIdle] = useState('24h');
  const [busy, setBusy] = useState(false);
  if (!anyOffline) return null;
  const prune = async () => {
    setBusy(true);
    try {
      const { pruned } = await answer(api.POST('/api/fleet/factories/prune', { body: { idle } }));
      notifyDone(pruned.length === 0 ? 'No factory was offline that long' : `Removed ${pruned.join(', ')}`);
      close();
      await client.invalidateQueries({ queryKey: keys.factories });
    } catch (error) {
      notifyProblem('Could not remove the offline factories', error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Tooltip label="requires the operator role for every product" disabled={may}>
        <SmallButton disabled={!may} onClick={open}>
          Remove offline…
        </SmallButton>
      </Tooltip>
      <Modal opened={opened} onClose={close} title="Remove offline factories?" centered>
        <Stack>
          <Text size="sm">
            Removes every factory that has been offline this long and holds no job, and revokes its tokens. To
            come back it has to be enrolled again.
          </Text>
          <NativeSelect
            label="Offline for at least"
            data={IDLE}
            value={idle}
            onChange={(event) => setIdle(event.currentTarget.value)}
          />
          <CommandLine command={`giga factory prune --idle ${idle}`} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Keep
            </Button>
            <Button color="red" loading={busy} onClick={() => void prune()}>
              Remove
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
