// Actions: disabled without the role they need, confirmed first where they are destructive, and shown as a `giga …` line.

import { Button, type ButtonProps, Group, Modal, Stack, Text, Tooltip } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { createContext, type ReactNode, useCallback, useContext, useState } from 'react';
import { Problem } from '../api/problem';
import type { Role } from '../api/vocabulary';
import { useMay } from '../session/useSession';
import { CommandLine } from './CommandLine';

export interface Question {
  title: string;
  text: ReactNode;
  /// What the confirming button says: the action, not "OK".
  yes: string;
  danger?: boolean;
  command?: string;
}

type Ask = (question: Question) => Promise<boolean>;
const AskContext = createContext<Ask | null>(null);

export function ConfirmProvider({ children }: { children: ReactNode }) {
  const [asked, setAsked] = useState<{ question: Question; settle: (yes: boolean) => void } | null>(null);
  const ask = useCallback<Ask>((question) => new Promise((settle) => setAsked({ question, settle })), []);
  const answer = (yes: boolean) => {
    asked?.settle(yes);
    setAsked(null);
  };
  return (
    <AskContext value={ask}>
      {children}
      <Modal opened={asked !== null} onClose={() => answer(false)} title={asked?.question.title} centered>
        {asked && (
          <Stack>
            <Text size="sm" component="div">
              {asked.question.text}
            </Text>
            {asked.question.command && <CommandLine command={asked.question.command} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={() => answer(false)} data-autofocus>
                Keep
              </Button>
              <Button color={asked.question.danger ? 'red' : undefined} onClick={() => answer(true)}>
                {asked.question.yes}
              </Button>
            </Group>
          </Stack>
        )}
      </Modal>
    </AskContext>
  );
}

export function useConfirm(): Ask {
  const ask = useContext(AskContext);
  if (!ask) throw new Error('useConfirm needs a ConfirmProvider');
  return ask;
}

/// Notifications in the corner of the page.
export function notifyDone(message: string): void {
  notifications.show({ message, color: 'green' });
}

export function notifyProblem(title: string, error: unknown): void {
  notifications.show({ title, message: Problem.from(error).message, color: 'red', autoClose: 15_000 });
}

interface ActionButtonProps extends ButtonProps {
  label: string;
  /// The role it takes at least.
  role: Role;
  run: () => Promise<unknown>;
  /// What to say when it worked.
  done: string;
  /// Asks first.
  confirm?: Question;
  command?: string;
}

export function ActionButton({ label, role, run, done, confirm, command, ...button }: ActionButtonProps) {
  const may = useMay(role);
  const ask = useConfirm();
  const [busy, setBusy] = useState(false);
  const act = async () => {
    if (confirm && !(await ask({ command, ...confirm }))) return;
    setBusy(true);
    try {
      await run();
      notifyDone(done);
    } catch (error) {
      notifyProblem(`${label.replace('…', '')} failed`, error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Tooltip label={may ? command : `requires the ${role} role`} disabled={may && !command}>
      <Button
        size="xs"
        variant="default"
        {...button}
        loading={busy}
        disabled={!may || button.disabled}
        onClick={() => void act()}
      >
        {label}
      </Button>
    </Tooltip>
  );
}
