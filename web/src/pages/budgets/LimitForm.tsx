import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { answer, api } from '../../api/client';
import { Problem } from '../../api/problem';
import { budgetQuery, keys } from '../../api/queries';
import type { Budget } from '../../api/types';
import { useMay } from '../../session/useSession';
import { Hint, SmallButton } from '../../ui/Basics';
import { CommandLine } from '../../ui/CommandLine';
import { notifyDone } from '../../ui/Confirm';
import { Panel } from '../../ui/Panel';
import { ProblemAlert } from '../../ui/States';
import {
  changedFields,
  commandOf,
  errorsOf,
  FIELDS,
  type Field,
  rebased,
  requestOf,
  sameFigures,
  type Typed,
  typedFrom,
} from './fields';

const LABELS: Record<Field, [string, string]> = {
  day: ['Per day', 'From 00:00 to 24:00 UTC'],
  week: ['Per week', 'From Monday'],
  month: ['Per month', 'Calendar month'],
  total: ['Total', 'For all time'],
  job: ['Per job without its own limit', 'Reserved while the job runs, so that the limits above hold'],
};

function figure(field: Field, budget: Budget): string {
  const text = typedFrom(budget)[field];
  return `${LABELS[field][0].toLowerCase()}: ${text === '' ? 'none' : `$${text}`}`;
}

/// Replaces all limits, but only if they are still as the form showed them: nobody else's change is overwritten.
export function LimitForm({ budget }: { budget: Budget }) {
  const may = useMay('admin');
  const client = useQueryClient();
  const [base, setBase] = useState(budget);
  const [typed, setTyped] = useState<Typed>(() => typedFrom(budget));
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const errors = errorsOf(typed);
  const changed = changedFields(typed, base);
  const start = (from: Budget) => {
    setBase(from);
    setTyped(typedFrom(from));
    setProblem(undefined);
  };
  const newer = budget.rev > base.rev && !busy;
  // A pause or a resume does not concern this form.
  if (newer && sameFigures(budget, base)) setBase(budget);
  // Nothing was typed, so the newer figures simply replace the old ones.
  else if (newer && changed.length === 0) start(budget);
  const outdated = newer && !sameFigures(budget, base);
  const theirs = changedFields(typedFrom(budget), base);
  const product = budget.productId;
  const keepMine = () => {
    setTyped((now) => rebased(now, typedFrom(base), typedFrom(budget)));
    setBase(budget);
    setProblem(undefined);
  };

  const put = (rev: number) =>
    answer(
      api.PUT('/api/fleet/budgets/{product}', {
        params: { path: { product }, header: { 'if-match': `"rev-${rev}"` } },
        body: requestOf(typed),
      }),
    );
  // The other change may have been a pause: then there is no conflict.
  const putAgain = async (error: unknown) => {
    if (Problem.from(error).code !== 'rev_mismatch') throw error;
    const now = await client.fetchQuery({ ...budgetQuery(product), staleTime: 0 });
    if (!sameFigures(now, base)) throw error;
    return put(now.rev);
  };

  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (!may || busy || outdated || changed.length === 0 || Object.keys(errors).length > 0) return;
    setBusy(true);
    try {
      const saved = await put(base.rev).catch(putAgain);
      setBase(saved);
      // What was typed since it was sent is the next change.
      setTyped((now) => rebased(now, typed, typedFrom(saved)));
      setProblem(undefined);
      client.setQueryData(budgetQuery(product).queryKey, saved);
      notifyDone(`The limits of ${product} were saved`);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
      await client.invalidateQueries({ queryKey: keys.budgets });
    }
  };

  return (
    <Panel title="Limits">
      <form onSubmit={(event) => void save(event)} noValidate>
        <Stack gap="sm">
          <Hint>
            In dollars; leave a field empty for no limit. A job starts only while the amount spent, the amount
            reserved and its own limit fit within all of them.
          </Hint>
          {FIELDS.map((field) => (
            <TextInput
              key={field}
              label={LABELS[field][0]}
              description={LABELS[field][1]}
              value={typed[field]}
              error={errors[field]}
              placeholder="none"
              leftSection="$"
              inputMode="decimal"
              autoComplete="off"
              readOnly={!may}
              onChange={(event) => {
                const { value } = event.currentTarget;
                setTyped((now) => ({ ...now, [field]: value }));
              }}
            />
          ))}
          {outdated && (
            <Alert color="orange" title="Somebody else changed this budget">
              <Stack gap="xs" align="flex-start">
                <Text size="sm">
                  It now has {theirs.map((field) => figure(field, budget)).join(', ')}. Your changes are not
                  saved yet.
                </Text>
                <Group gap="xs">
                  <SmallButton onClick={keepMine}>Keep my changes</SmallButton>
                  <SmallButton onClick={() => start(budget)}>Use the new limits</SmallButton>
                </Group>
              </Stack>
            </Alert>
          )}
          {problem !== undefined && !outdated && <ProblemAlert error={Problem.from(problem)} />}
          {!may && <Hint>Changing limits requires the admin role.</Hint>}
          {changed.length > 0 && Object.keys(errors).length === 0 && (
            <CommandLine command={commandOf(product, typed, changed)} />
          )}
          <Group>
            <Button
              type="submit"
              loading={busy}
              disabled={!may || outdated || changed.length === 0 || Object.keys(errors).length > 0}
            >
              Save limits
            </Button>
            {changed.length > 0 && (
              <Button variant="default" onClick={() => start(budget)}>
                Undo
              </Button>
            )}
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}
