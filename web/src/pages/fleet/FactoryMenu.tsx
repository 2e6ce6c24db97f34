import { ActionIcon, Menu } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { keys } from '../../api/queries';
import type { Factory } from '../../api/types';
import { useMay } from '../../session/useSession';
import { tellDone, tellProblem, useConfirm } from '../../ui/Confirm';
import { plural, shellWord } from '../../ui/format';

/// What an operator can do to a factory. Each asks first and shows itself as a command.
export function FactoryMenu({ factory }: { factory: Factory }) {
  const may = useMay('operator');
  const ask = useConfirm();
  const client = useQueryClient();
  const clipboard = useClipboard();
  const { id } = factory;
  const word = shellWord(id);
  const drains = factory.state === 'draining';
  const needs = may ? '' : ' (needs the role operator)';
  const path = { params: { path: { id } } };

  const perform = async (done: string, call: () => Promise<unknown>) => {
    try {
      await call();
      tellDone(done);
      await client.invalidateQueries({ queryKey: keys.factories });
    } catch (error) {
      tellProblem(`That did not work for ${id}`, error);
    }
  };

  const drain = async () => {
    const yes = await ask({
      title: `Drain ${id}?`,
      text: `It finishes the ${plural(factory.seatsUsed, 'job')} that it holds and takes nothing new until you undo it.`,
      yes: 'Drain it',
      command: `giga factory drain ${word}`,
    });
    if (!yes) return;
    await perform(`${id} drains`, () =>
      answer(api.POST('/api/fleet/factories/{id}/drain', { ...path, body: {} })),
    );
  };

  const undo = async () => {
    const yes = await ask({
      title: `Let ${id} take jobs again?`,
      text: 'It is given jobs again as soon as it is heard of.',
      yes: 'Let it take jobs',
      command: `giga factory drain ${word} --undo`,
    });
    if (!yes) return;
    await perform(`${id} takes jobs again`, () =>
      answer(api.POST('/api/fleet/factories/{id}/drain', { ...path, body: { undo: true } })),
    );
  };

  const forget = async () => {
    const yes = await ask({
      title: `Forget ${id}?`,
      text: 'Its tokens end at once, and what it holds comes back when its leases end. To come back it has to be enrolled again.',
      yes: 'Forget it',
      danger: true,
      command: `giga factory deregister ${word}`,
    });
    if (!yes) return;
    await perform(`${id} is forgotten`, () => answer(api.DELETE('/api/fleet/factories/{id}', path)));
  };

  // Only as a command: the new token is shown once, and belongs into a file on that machine.
  const copyRotation = () => {
    const command = `giga factory rotate-token ${word}`;
    clipboard.copy(command);
    tellDone(`Copied, for a terminal: ${command}`);
  };

  return (
    <Menu position="bottom-end" withArrow width={280}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Actions for ${id}`} data-row>
          <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
            <path
              d="M3 8h.01M8 8h.01M13 8h.01"
              stroke="currentColor"
              strokeWidth="2.500"
              strokeLinecap="round"
            />
          </svg>
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {drains ? (
          <Menu.Item disabled={!may} onClick={() => void undo()}>
            Let it take jobs again…{needs}
          </Menu.Item>
        ) : (
          <Menu.Item disabled={!may} onClick={() => void drain()}>
            Drain…{needs}
          </Menu.Item>
        )}
        <Menu.Item disabled={!may} c="var(--giga-bad)" onClick={() => void forget()}>
          Forget…{needs}
        </Menu.Item>
        <Menu.Item onClick={copyRotation}>Copy the command for a new token</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
