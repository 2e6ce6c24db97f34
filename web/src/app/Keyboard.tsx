import { Button, Kbd, Modal, Table } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import { useRef } from 'react';

/// `g` and then a letter goes somewhere; the same letters as the pages begin with.
const PLACES = {
  f: ['/', 'Fleet'],
  j: ['/jobs', 'Jobs'],
  n: ['/new', 'New job'],
  b: ['/budgets', 'Budgets'],
  t: ['/topics', 'Topics'],
  l: ['/flags', 'Flags'],
} as const;
type Letter = keyof typeof PLACES;
/// How long `g` is remembered.
const PATIENCE = 1_500;

export function KeyboardHelp() {
  const [opened, { open, close }] = useDisclosure();
  const navigate = useNavigate();
  const pressedG = useRef(0);
  useHotkeys([
    ['?', open],
    ['shift+/', open],
    [
      '/',
      () => {
        document.querySelector<HTMLElement>('[data-filter]')?.focus();
      },
    ],
    [
      'g',
      () => {
        pressedG.current = Date.now();
      },
    ],
    ...(Object.keys(PLACES) as Letter[]).map((letter): [string, () => void] => [
      letter,
      () => {
        if (Date.now() - pressedG.current > PATIENCE) return;
        pressedG.current = 0;
        void navigate({ to: PLACES[letter][0] });
      },
    ]),
  ]);
  return (
    <>
      <Button variant="subtle" color="gray" size="xs" mt="md" onClick={open} fullWidth>
        Keys&nbsp;<Kbd size="xs">?</Kbd>
      </Button>
      <Modal opened={opened} onClose={close} title="Keys">
        <Table>
          <Table.Tbody>
            {(Object.keys(PLACES) as Letter[]).map((letter) => (
              <Table.Tr key={letter}>
                <Table.Td>
                  <Kbd>g</Kbd> <Kbd>{letter}</Kbd>
                </Table.Td>
                <Table.Td>{PLACES[letter][1]}</Table.Td>
              </Table.Tr>
            ))}
            <Table.Tr>
              <Table.Td>
                <Kbd>/</Kbd>
              </Table.Td>
              <Table.Td>Filter or search on this page</Table.Td>
            </Table.Tr>
            <Table.Tr>
              <Table.Td>
                <Kbd>?</Kbd>
              </Table.Td>
              <Table.Td>This list</Table.Td>
            </Table.Tr>
          </Table.Tbody>
        </Table>
      </Modal>
    </>
  );
}
