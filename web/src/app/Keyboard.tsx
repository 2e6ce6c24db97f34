import { Button, Kbd, Modal, Table } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { type Keys, useKeys } from './keys';
import { PLACES } from './places';

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
            {PLACES.map(({ letter, label }) => (
              <Key key={letter} does={label}>
                <Kbd>g</Kbd> <Kbd>{letter}</Kbd>
              </Key>
            ))}
            <Key does="Filter or search this page">
              <Kbd>/</Kbd>
            </Key>
            <Key does="Move down or up a list">
              <Kbd>j</Kbd> <Kbd>k</Kbd>
            </Key>
            <Key does="Select the job">
              <Kbd>x</Kbd>
            </Key>
            <Key does="Open">
              <Kbd>Enter</Kbd>
            </Key>
            <Key does="Close a dialog, leave a field">
              <Kbd>Esc</Kbd>
            </Key>
            <Key does="Show this list">
              <Kbd>?</Kbd>
            </Key>
          </Table.Tbody>
        </Table>
      </Modal>
    </>
  );
}

function Key({ does, children }: { does: string; children: ReactNode }) {
  return (
    <Table.Tr>
      <Table.Td>{children}</Table.Td>
      <Table.Td>{does}</Table.Td>
    </Table.Tr>
  );
}

function focusFilter(event: KeyboardEvent): void {
  const filter = document.querySelector<HTMLElement>('[data-filter]');
  if (!filter) return;
  // Otherwise the slash would be typed into it.
  event.preventDefault();
  filter.focus();
}
