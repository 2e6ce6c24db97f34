import { ActionIcon, Menu } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { keys } from '../../api/queries';
import type { Factory } from '../../api/types';
import { useMay } from '../../session/useSession';
import { notifyDone, notifyProblem, type Question, useConfirm } from '../../ui/Confirm';
import { plural, shellWord } from '../../ui/format';

/// What an operator can do to a factory. Each asks first and shows itself as a command.
export function FactoryMenu({ factory }: { factory: Factory }) {
  const may = useMay('operator');
  const ask = useConfirm();
  const client = useQueryClient();
  const clipboard = useClipboard();
  const { id } = factory;
  const word = shellWord(id);
  const isDraining = factory.state === 'draining';
  const needs = may ? '' : ' (requires the operator role)';
  const path = { params: { path: { id } } };

  const offer = async (question: Question, done: string, call: () => Promise<unknown>) => {
    if (!(await ask(question))) return;
    try {
      await call();
      notifyDone(done);
      await client.invalidateQueries({ queryKey: keys.factories });
    } catch (error) {
      notifyProblem(`Could not change ${id}`, error);
    }
  };

  const drain = () => {
    const question = {
      title: `Drain ${id}?`,
      text: `It finishes its ${plural(factory.seatsUsed, 'running job')} and takes no new ones until you stop draining it.`,
      yes: 'Drain',
      command: `giga factory drain ${word}`,
    };
    const call = () => answer(api.POST('/api/fleet/factories/{id}/drain', { ...path, body: {} }));
    return offer(question, `${id} is draining`, call);
  };

  const undo = () => {
    const question = {
      title: `Stop draining ${id}?`,
      text: 'It gets jobs again as soon as it is online.',
      yes: 'Stop draining',
      command: `giga factory drain ${word} --undo`,
    };
    const call = () => answer(api.POST('/api/fleet/factories/{id}/drain', { ...path, body: { undo: true } }));
    return offer(question, `${id} accepts jobs again`, call);
  };

  const remove = () => {
    const question = {
      title: `Remove ${id}?`,
      text: 'Its tokens are revoked at once, and its jobs are queued again when their leases end. To come back it has to be enrolled again.',
      yes: 'Remove',
      danger: true,
      command: `giga factory deregister ${word}`,
    };
    const call = () => answer(api.DELETE('/api/fleet/factories/{id}', path));
    return offer(question, `${id} was removed`, call);
  };

  // Only as a command: the new token is shown once, and belongs into a file on that machine.
  const copyRotation = () => {
    const command = `giga factory rotate-token ${word}`;
    clipboard.copy(command);
    notifyDone(`Copied: ${command}`);
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
        <Menu.Item disabled={!may} onClick={() => void (isDraining ? undo() : drain())}>
          {isDraining ? 'Stop draining…' : 'Drain…'}
          {needs}
        </Menu.Item>
        <Menu.Item disabled={!may} c="var(--giga-bad)" onClick={() => void remove()}>
          Remove…{needs}
        </Menu.Item>
        <Menu.Item onClick={copyRotation}>Copy the command that rotates its token</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
