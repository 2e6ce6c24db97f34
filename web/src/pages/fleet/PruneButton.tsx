import { Button, Group, Modal, NativeSelect, Stack, Text, Tooltip } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { keys, whoamiQuery } from '../../api/queries';
import { useMay } from '../../session/useSession';
import { CommandLine } from '../../ui/CommandLine';
import { tellDone, tellProblem } from '../../ui/Confirm';

const IDLE = [
  { value: '1h', label: 'an hour' },
  { value: '24h', label: 'a day' },
  { value: '7d', label: 'a week' },
];

/// Forgets those that were silent for long. Offered where there are any.
export function PruneButton({ anySilent }: { anySilent: boolean }) {
  const operator = useMay('operator');
  const { data: me } = useQuery(whoamiQuery());
  const may = operator && me?.everyProduct === true;
  const client = useQueryClient();
  const [opened, { open, close }] = useDisclosure();
  const [idle, setIdle] = useState('24h');
  const [busy, setBusy] = useState(false);
  if (!anySilent) return null;
  const prune = async () => {
    setBusy(true);
    try {
      const { pruned } = await answer(api.POST('/api/fleet/factories/prune', { body: { idle } }));
      tellDone(pruned.length === 0 ? 'None was silent for so long' : `Forgot ${pruned.join(', ')}`);
      close();
      await client.invalidateQueries({ queryKey: keys.factories });
    } catch (error) {
      tellProblem('Forgetting did not work', error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Tooltip label="needs the role operator for every product" disabled={may}>
        <Button size="xs" variant="default" disabled={!may} onClick={open}>
          Forget silent ones…
        </Button>
      </Tooltip>
      <Modal opened={opened} onClose={close} title="Forget silent factories?" centered>
        <Stack>
          <Text size="sm">
            Every factory that was not heard of for so long and holds no job is forgotten, and its tokens end.
            To come back it has to be enrolled again.
          </Text>
          <NativeSelect
            label="Silent for at least"
            data={IDLE}
            value={idle}
            onChange={(event) => setIdle(event.currentTarget.value)}
          />
          <CommandLine command={`giga factory prune --idle ${idle}`} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Leave it as it is
            </Button>
            <Button color="red" loading={busy} onClick={() => void prune()}>
              Forget them
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
