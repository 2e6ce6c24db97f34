import { Alert, Button, Group, NativeSelect, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { answer, api } from '../../api/client';
import { Problem } from '../../api/problem';
import { keys, poolQuery } from '../../api/queries';
import type { Pool } from '../../api/types';
import { POOL_DRIVER, wordsOf } from '../../api/vocabulary';
import { Hint, SmallButton } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { notifyDone } from '../../ui/Confirm';
import { Panel } from '../../ui/Panel';
import { ProblemAlert } from '../../ui/States';
import {
  commandOf,
  DEFAULTS,
  errorsOf,
  type Field,
  nameError,
  sameSettings,
  settingsOf,
  typedFrom,
} from './fields';
import classes from './Pools.module.css';
import { useMayPools } from './useMayPools';

const LABELS: Record<Exclude<Field, 'driver'>, [string, string]> = {
  command: ['Program', 'With its arguments, one word a line'],
  image: ['Image', 'Of the factory'],
  namespace: ['Namespace', 'Of its Jobs; empty: where the coordinator runs'],
  url: ['Coordinator', 'Where its factories find it; empty: where it listens'],
  capabilities: ['Capabilities', 'Beside what its factories detect, such as gpu:a100=1'],
  products: ['Products', 'Whose jobs they take; empty: every product’s'],
  seats: ['Seats', 'Jobs at a time on one factory'],
  min: ['At least', 'So many factories at all times'],
  max: ['At most', 'So many factories'],
  warm: ['Warm', 'So many beyond those that work'],
  idle: ['Idle', 'One without work for so long leaves'],
  startTimeout: ['Time to start', 'One that has not enrolled by then has failed'],
  cost: ['Cost per hour', 'Of one factory, in dollars'],
  chargeTo: ['Paid by', 'The product whose budget pays its hours'],
  args: ['Arguments', 'Of giga factory run, one word a line'],
};
const OF_DRIVER: Partial<Record<Field, string>> = {
  command: 'command',
  image: 'kubernetes',
  namespace: 'kubernetes',
};
const LONG: readonly Field[] = ['command', 'args'];
const ORDER = Object.keys(LABELS) as (keyof typeof LABELS)[];

interface PoolFormProps {
  /// The pool to change; without it a new one is made.
  pool?: Pool;
  /// The names that a new one cannot have.
  taken?: readonly string[];
  onDone: (pool: Pool) => void;
  onCancel: () => void;
}

/// Makes a pool, or changes one, but only if it is still as the form showed it.
export function PoolForm({ pool, taken = [], onDone, onCancel }: PoolFormProps) {
  const may = useMayPools('admin');
  const client = useQueryClient();
  const [base, setBase] = useState(pool);
  const before = base?.settings ?? DEFAULTS;
  const [newName, setName] = useState('');
  const [typed, setTyped] = useState(() => typedFrom(before));
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const name = base?.name ?? newName.trim();
  const errors = errorsOf(typed);
  const badName = base ? undefined : nameError(name, taken);
  const wrong = badName !== undefined || Object.keys(errors).length > 0;
  const next = settingsOf(typed, before);
  const changed = !base || !sameSettings(next, before);
  const outdated =
    !busy && base && pool && pool.rev > base.rev && !sameSettings(pool.settings, base.settings);
  // A pause or a resume does not concern this form, but the request carries it.
  if (!busy && base && pool && pool.rev > base.rev && !outdated) setBase(pool);
  const command = wrong || !changed ? undefined : commandOf(name, next, before);

  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (!may || busy || outdated || wrong || !changed) return;
    setBusy(true);
    try {
      const saved = await answer(
        api.PUT('/api/fleet/pools/{name}', {
          params: { path: { name } },
          body: next,
          headers: base ? { 'If-Match': `"rev-${base.rev}"` } : {},
        }),
      );
      client.setQueryData(poolQuery(name).queryKey, saved);
      notifyDone(base ? `${name} was changed` : `${name} was made`);
      onDone(saved);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
      await client.invalidateQueries({ queryKey: keys.pools });
    }
  };

  const field = (key: (typeof ORDER)[number]) => {
    if (OF_DRIVER[key] !== undefined && OF_DRIVER[key] !== typed.driver) return null;
    const [label, description] = LABELS[key];
    const props = {
      label,
      description,
      value: typed[key],
      error: errors[key],
      readOnly: !may,
      autoComplete: 'off',
      onChange: (event: { currentTarget: { value: string } }) => {
        const { value } = event.currentTarget;
        setTyped((now) => ({ ...now, [key]: value }));
      },
    };
    if (LONG.includes(key)) return <Textarea key={key} {...props} rows={2} resize="vertical" />;
    return <TextInput key={key} {...props} leftSection={key === 'cost' ? '$' : undefined} />;
  };

  return (
    <Panel title={base ? 'Change' : 'New pool'}>
      <form onSubmit={(event) => void save(event)} noValidate>
        <Stack gap="sm">
          <Hint>
            Factories of the pool are started while jobs wait that could run on one more of them, and leave
            when they have nothing to do.
          </Hint>
          <div className={classes.fields}>
            {!base && (
              <TextInput
                label="Name"
                description="Its factories are named after it"
                value={newName}
                error={newName === '' ? undefined : badName}
                autoComplete="off"
                readOnly={!may}
                onChange={(event) => setName(event.currentTarget.value)}
              />
            )}
            <NativeSelect
              label="Driver"
              description="Who starts and stops its factories"
              value={typed.driver}
              disabled={!may}
              data={wordsOf(POOL_DRIVER).map((word) => ({
                value: word,
                label: `${POOL_DRIVER[word].label}: ${POOL_DRIVER[word].about}`,
              }))}
              onChange={(event) => {
                const { value } = event.currentTarget;
                setTyped((now) => ({ ...now, driver: value }));
              }}
            />
            {ORDER.map(field)}
          </div>
          {outdated && (
            <Alert color="orange" title="Somebody else changed this pool">
              <Stack gap="xs" align="flex-start">
                <Text size="sm">Your changes are not saved, and would undo theirs.</Text>
                <SmallButton
                  onClick={() => {
                    setBase(pool);
                    setTyped(typedFrom(pool.settings));
                    setProblem(undefined);
                  }}
                >
                  Use the new settings
                </SmallButton>
              </Stack>
            </Alert>
          )}
          {problem !== undefined && !outdated && <ProblemAlert error={Problem.from(problem)} />}
          {!may && <Hint>Requires the admin role, and a token for all products.</Hint>}
          {command && <CommandLine command={command} />}
          {!command && changed && !wrong && (
            <Hint>No giga line does this: its options replace these values but cannot take them away.</Hint>
          )}
          <Group>
            <Button type="submit" loading={busy} disabled={!may || wrong || !changed || Boolean(outdated)}>
              {base ? 'Save' : 'Make the pool'}
            </Button>
            <Button variant="default" onClick={onCancel}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}
