import { Button, Kbd, Modal, Table } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import { Fragment } from 'react';
import { type Keys, useKeys } from './keys';
import { PLACES } from './places';

const KEYS: [does: string, ...keys: string[]][] = [
  ...PLACES.map(({ letter, label }): [string, string, string] => [label, 'g', letter]),
  ['Filter or search this page', '/'],
  ['Move down or up a list', 'j', 'k'],
  ['Select the job', 'x'],
  ['Open', 'Enter'],
  ['Close a dialog, leave a field', 'Esc'],
  ['Show this list', '?'],
];

/// The shortcuts that work everywhere, and the list of all of them.
export function KeyboardHelp() {
  const [opened, { open, close }] = useDisclosure();
  const navigate = useNavigate();
  const jumps: Keys = Object.fromEntries(
    PLACES.map(({ letter, to }) => [letter, () => void navigate({ to })]),
  );
  useKeys({ '?': open, '/': focusFilter }, jumps);
  return (
    <>
      <Button variant="subtle" color="gray" size="xs" mt="md" onClick={open} fullWidth visibleFrom="sm">
        Shortcuts&nbsp;<Kbd size="xs">?</Kbd>
      </Button>
      <Modal opened={opened} onClose={close} title="Keyboard shortcuts">
        <Table>
          <Table.Tbody>
            {KEYS.map(([does, ...keys]) => (
              <Table.Tr key={does}>
                <Table.Td>
                  {keys.map((key) => (
                    <Fragment key={key}>
                      <Kbd>{key}</Kbd>{' '}
                    </Fragment>
                  ))}
                </Table.Td>
                <Table.Td>{does}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Modal>
    </>
  );
}

function focusFilter(event: KeyboardEvent): void {
  const filter = document.querySelector<HTMLElement>('[data-filter]');
  if (!filter) return;
  // Otherwise the slash would be typed into it.
  event.preventDefault();
  filter.focus();
}
